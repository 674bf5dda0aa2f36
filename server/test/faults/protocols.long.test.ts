// Servers that speak the protocols of other platforms, while the runner is killed ten times, and then the matchmaker: no call of
// a server fails, and no seat is lost.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  createGameVersion,
  findLobby,
  joinLobby,
  listMatchmakerLobbyPlayers,
  type ResponseOf,
  updateGameNamespaceVersion,
  type VersionConfig,
} from '@musterhost/contract'
import { PROTOCOL_SERVERS } from '../runner/protocol-servers.ts'
import { uploadBuild } from '../support/builds.ts'
import { until } from '../support/until.ts'
import { strike } from './kill.ts'
import { FaultyPlatform } from './platform.ts'
import { createRandom } from './random.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>
type Seat = ResponseOf<typeof findLobby>
/** `names`: how the players name themselves to the server. */
type Pair = { name: string; lobby_id: string; seats: [Seat, Seat]; ids: [string, string]; names: string[] }
type Known = { failed: string[] }

const SEED = 30
const RUNNER_KILLS = 10
const MATCHMAKER_KILLS = 2
const BETWEEN_MS_MAX = 1_000
const LONG_MS = 3_600_000
const LONGEST_HOLD_MS = 300_000
const PLAYER_LISTS = { lists: { players: { capacity: 4 } } }
const DOCKERS: Record<string, Docker> = {
  agones: { protocol: 'agones', protocol_options: PLAYER_LISTS },
  gsdk: { protocol: 'gsdk' },
  gamelift: { protocol: 'gamelift' },
  multiplay: { protocol: 'multiplay', seats: 'edge', hold_ms: LONGEST_HOLD_MS },
}

test('servers of other platforms run on while the runner and the matchmaker are killed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-faults-'))
  const platform = await FaultyPlatform.start({ folder })
  t.after(async () => {
    await platform.close()
    await rm(folder, { recursive: true, force: true })
  })
  await deploy(platform)
  const random = createRandom(SEED)
  const pairs = await Promise.all(Object.keys(DOCKERS).map((name) => pairOf(platform, name)))
  for (const pair of pairs) await come(platform, pair)

  for (let count = 0; count < RUNNER_KILLS; count++) {
    await sleep(random.int(BETWEEN_MS_MAX))
    await strike(platform, { victims: ['runner'], gap_ms: 0 }, random)
  }
  for (let count = 0; count < MATCHMAKER_KILLS; count++) {
    await sleep(random.int(BETWEEN_MS_MAX))
    await strike(platform, { victims: ['matchmaker'], gap_ms: 0 }, random)
  }
  for (const pair of pairs) {
    const { failed = [] } = await ask<Partial<Known>>(pair.seats[0], '/')
    assert.deepEqual(failed, [], pair.name)
    assert.deepEqual(await connections(platform, pair), pair.ids.toSorted(), pair.name)
    // The edge gives a seat back, after the time of the hold.
    if (pair.name === 'multiplay') continue
    await ask(pair.seats[0], `/go?id=${pair.names[0]}`)
    await until(`the seat at ${pair.name} is given back`, async () => {
      return (await connections(platform, pair)).join() === pair.ids[1]
    })
  }
})

async function deploy({ admin, edge_url, game }: FaultyPlatform): Promise<void> {
  const { game_id } = game
  const image_id = await uploadBuild(admin, { api_url: edge_url, game_id, files: PROTOCOL_SERVERS })
  const modes = Object.entries(DOCKERS).map(([name, docker]) => {
    const own: Docker = { ...docker, image_id, args: ['node', `${name}.mjs`], ports: { game: { protocol: 'http' } } }
    return [name, { max_players: 4, idle_grace_ms: LONG_MS, docker: own }]
  })
  const config: VersionConfig = { matchmaker: { game_modes: Object.fromEntries(modes) } }
  const body = { display_name: 'Protocols', config }
  const { version_id } = await admin.call(createGameVersion, { params: { game_id }, body })
  const params = { game_id, namespace_id: game.namespaces.staging }
  await admin.call(updateGameNamespaceVersion, { params, body: { version_id } })
}

/** Two players in one lobby. */
async function pairOf(platform: FaultyPlatform, name: string): Promise<Pair> {
  const player = platform.as(platform.game.public_tokens.staging)
  const one = await player.call(findLobby, { body: { game_modes: [name] } })
  const { lobby_id } = one.lobby
  const two = await player.call(joinLobby, { body: { lobby_id } })
  const idOf = (seat: Seat): string => {
    const token = platform.keys.verify(seat.player.token, Date.now())
    assert.ok(token.kind === 'player')
    return token.player_id
  }
  const ids: [string, string] = [idOf(one), idOf(two)]
  const names = name === 'gamelift' ? [one.player.token, two.player.token] : ids
  return { name, lobby_id, seats: [one, two], ids, names }
}

async function come(platform: FaultyPlatform, pair: Pair): Promise<void> {
  for (const [index, seat] of pair.seats.entries()) await ask(seat, `/come?id=${pair.names[index]}`)
  await until(`both players of ${pair.name} are connected`, async () => {
    return (await connections(platform, pair)).join() === pair.ids.toSorted().join()
  })
}

async function ask<T>({ ports, player }: Seat, path: string): Promise<T> {
  const url = new URL(`${ports.game!.url}${path}`)
  // The edge reads it where it checks the seats.
  url.searchParams.set('player_token', player.token)
  const response = await fetch(url)
  const text = await response.text()
  assert.equal(response.status, 200, text)
  return JSON.parse(text) as T
}

/** The ids of connected players. */
async function connections({ admin, game }: FaultyPlatform, { lobby_id }: Pair): Promise<string[]> {
  const params = { game_id: game.game_id, lobby_id }
  const { players } = await admin.call(listMatchmakerLobbyPlayers, { params })
  return players.flatMap(({ player_id, connect_ts }) => (connect_ts === undefined ? [] : [player_id])).toSorted()
}
