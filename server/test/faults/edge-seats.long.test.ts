// A thousand players of lobbies whose seats the edge checks, while edge, matchmaker, runner and PostgreSQL are killed.
// Runs while no other file does: a thousand players connect.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGameVersion, updateGameNamespaceVersion, type VersionConfig } from '@musterhost/contract'
import { uploadBuild } from '../support/builds.ts'
import { until } from '../support/until.ts'
import { verify } from './checks/check.ts'
import { EdgePlayer, type EdgeSeat, Faults, LISTING_SERVER, SEAT_HOLD_MS } from './edge-players.ts'
import { type Strike, strike } from './kill.ts'
import { FaultyPlatform } from './platform.ts'
import { createRandom } from './random.ts'

const SEED = 15
const PLAYERS = 1_000
const LOBBY_PLAYERS = 250
/** Players that request their first seat at once. */
const ENTERING_AT_ONCE = 50
const LONG_MS = 3_600_000
const GAP_MS_MAX = 1_000
const BETWEEN_MS_MAX = 2_000

const STRIKES: readonly Strike['victims'][] = [
  ['edge'],
  ['matchmaker'],
  ['runner'],
  ['edge', 'matchmaker'],
  ['matchmaker', 'runner', 'edge'],
  ['runner', 'edge'],
  ['PostgreSQL'],
  ['PostgreSQL', 'edge'],
]

test('seats and connections agree after edge, matchmaker, runner and PostgreSQL were killed under a thousand players', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-faults-'))
  const platform = await FaultyPlatform.start({ folder })
  t.after(async () => {
    await platform.close()
    await rm(folder, { recursive: true, force: true })
  })
  await deploy(platform)
  const random = createRandom(SEED)
  const faults = new Faults()
  const players = Array.from(
    { length: PLAYERS },
    (_, number) => new EdgePlayer(platform, faults, number + 1, random.fork(`player ${number}`)),
  )
  t.after(() => {
    for (const player of players) player.end()
  })
  let is_over = false
  const plays: Promise<unknown>[] = []
  for (let first = 0; first < PLAYERS; first += ENTERING_AT_ONCE) {
    const group = players.slice(first, first + ENTERING_AT_ONCE)
    await Promise.all(group.map((player) => player.enter()))
    for (const player of group) plays.push(player.play(() => is_over).catch((error: unknown) => error))
  }
  t.diagnostic(`${PLAYERS} players are connected`)
  for (const victims of STRIKES) {
    await sleep(random.int(BETWEEN_MS_MAX))
    await faults.during(strike(platform, { victims, gap_ms: random.int(GAP_MS_MAX) }, random))
    t.diagnostic(`killed ${victims.join(', ')}`)
  }
  is_over = true
  const failures = (await Promise.all(plays)).filter((failure) => failure !== undefined)
  assert.deepEqual(failures.map(String), [], 'a held seat was lost')
  const broken_count = players.reduce((sum, player) => sum + player.broken_count, 0)
  assert.ok(broken_count > 0, 'no connection was broken by a fault')

  const seats = players.flatMap(({ seat }) => seat ?? [])
  const left = players.flatMap(({ left }) => left)
  t.diagnostic(`${seats.length} stay, ${left.length} seats were given up, ${broken_count} connections were broken`)
  const kept = seats.map(({ player_id }) => player_id).toSorted()
  const sides = await agreement(platform, seats, kept)
  assert.deepEqual(sides, { book: kept, edge: kept, servers: kept })
  const reasons = await reasonsOf(platform, left)
  assert.deepEqual([...new Set(reasons)], ['disconnected'])
  assert.equal(reasons.length, left.length)
  assert.deepEqual(await verify(platform), [])
})

async function deploy({ admin, edge_url, game }: FaultyPlatform): Promise<void> {
  const { game_id } = game
  const params = { game_id }
  const files = { 'server.mjs': LISTING_SERVER }
  const image_id = await uploadBuild(admin, { api_url: edge_url, game_id, files })
  const docker: NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']> = {
    image_id,
    args: ['node', 'server.mjs'],
    ports: { raw: { protocol: 'tcp', proxy_protocol: true }, web: { protocol: 'http' } },
    ready: 'listening',
    seats: 'edge',
    hold_ms: SEAT_HOLD_MS,
  }
  const mode = { max_players: LOBBY_PLAYERS, idle_grace_ms: LONG_MS }
  const config: VersionConfig = { matchmaker: { docker, game_modes: { default: mode } } }
  const { version_id } = await admin.call(createGameVersion, { params, body: { display_name: 'Seats', config } })
  const path = { game_id, namespace_id: game.namespaces.staging }
  await admin.call(updateGameNamespaceVersion, { params: path, body: { version_id } })
}

type Sides = { book: string[]; edge: string[]; servers: string[] }

/** Who is connected, for the book, the edge and the servers, as soon as all have `kept`, or as of the last read. */
async function agreement(
  platform: FaultyPlatform,
  seats: readonly EdgeSeat[],
  kept: readonly string[],
): Promise<Sides> {
  let sides: Sides = { book: [], edge: [], servers: [] }
  const is_agreed = until('book, edge and servers to agree', async () => {
    // A lobby's list is not available until its edge and its runner have settled.
    const found = await sidesOf(platform, seats).catch(() => null)
    sides = found ?? sides
    return found !== null && Object.values(found).every((side) => side.join() === kept.join())
  })
  await is_agreed.catch(() => undefined)
  return sides
}

async function sidesOf(platform: FaultyPlatform, seats: readonly EdgeSeat[]): Promise<Sides> {
  const byLobby = new Map(seats.map((seat) => [seat.lobby_id, seat]))
  const lists = await Promise.all(
    [...byLobby.values()].map(async ({ web_url, token }) => {
      const response = await fetch(`${web_url}?player_token=${token}`, { headers: { connection: 'close' } })
      assert.equal(response.status, 200)
      return (await response.json()) as string[]
    }),
  )
  const namespace_id = platform.game.namespaces.staging
  return platform.withDatabase(async (db) => {
    const idsOf = async (text: string, values: string[] = []): Promise<string[]> => {
      const { rows } = await db.query<{ player_id: string }>(text, values)
      return rows.map(({ player_id }) => player_id).toSorted()
    }
    return {
      book: await idsOf('select player_id from players where namespace_id = $1 and remove_ts is null', [namespace_id]),
      edge: await idsOf('select player_id from edge_players where is_open'),
      servers: lists.flat().toSorted(),
    }
  })
}

async function reasonsOf(platform: FaultyPlatform, player_ids: readonly string[]): Promise<string[]> {
  return platform.withDatabase(async (db) => {
    const { rows } = await db.query<{ remove_reason: string }>(
      'select remove_reason from players where player_id = any($1)',
      [player_ids],
    )
    return rows.map(({ remove_reason }) => remove_reason)
  })
}
