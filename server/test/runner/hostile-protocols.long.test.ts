// Hostile servers that speak the protocols of other platforms, each in a real lobby beside an honest one of the same protocol:
// they send 10,000 requests each to their own endpoint, and try the addresses of others. All endpoints are served by one
// gateway, so what one of them does could reach all.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  findLobby,
  getLobbyState,
  listMatchmakerLobbyPlayers,
  type ResponseOf,
  type VersionConfig,
} from '@musterhost/contract'
import { type Attachment, gatewayFolder, readAttachment, readState } from '../../src/runner/protocols/attachments.ts'
import { lacking } from '../run/optional-programs.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import type { Report, Target, Task } from './hostile/protocol-attack.ts'
import { NETWORK_NEEDS } from './network-world.ts'
import { PROTOCOL_SERVERS } from './protocol-servers.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>
type Seat = ResponseOf<typeof findLobby>
type Lobby = { name: string; seat: Seat; attachment: Attachment }
/** What a neighbour and the platform know of its lobby. */
type Picture = { known: unknown; state: unknown; players: unknown }

const REQUESTS = 10_000
const SEED = 20_261_130
const LONG_MS = 3_600_000
const PROTOCOLS = ['agones', 'gsdk', 'gamelift', 'multiplay'] as const
/** What each attack receives, among others: requests that have an effect, and refusals. */
const UNDERSTOOD: Record<(typeof PROTOCOLS)[number], string[]> = {
  agones: ['200', '400', '404', 'message'],
  gsdk: ['200', '400', '404'],
  gamelift: ['426', 'message'],
  multiplay: ['200', '204', '404', 'message'],
}
/** Growth of the gateway: its own memory, and its share of pages that others have too. */
const GROWTH_BYTES_MAX = 128 * 1024 * 1024
/** An SDK gives up after 20 s at the earliest. */
const RESPONSE_MS_MAX = 10_000
const STATE_BYTES_MAX = 16 * 1024
const OPTIONS: Partial<Record<string, Partial<Docker>>> = {
  agones: { protocol_options: { counters: { rooms: { capacity: 9 } }, lists: { players: { capacity: 4 } } } },
  multiplay: { seats: 'edge', hold_ms: 300_000 },
}
const AFTER = 'after'
const ATTACK = 'runner/hostile/protocol-attack.ts'
const ATTACK_FILES = [ATTACK, 'faults/random.ts']
/** Where the SDKs of the protocols and players reach a lobby's server. */
const LOBBY_PORTS = [8_086, 9_357, 9_358, 5_757, 56_001, 20_000]

test(`${REQUESTS} hostile requests to each protocol reach no other lobby, and end nothing`, async (t) => {
  const missing = lacking(...NETWORK_NEEDS)
  if (missing !== null) return t.skip(missing)
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  const game = await deploy(platform)
  const find = async (name: string): Promise<Lobby> => {
    const seat = await game.player.call(findLobby, { body: { game_modes: [name] } })
    return { name, seat, attachment: readAttachment(folder, seat.lobby.lobby_id)! }
  }
  const folder = gatewayFolder(join(platform.data_dir, 'lobbies'))
  const neighbours = await Promise.all(PROTOCOLS.map((name) => find(name)))
  const hostile = await Promise.all(PROTOCOLS.map((name) => find(`hostile-${name}`)))
  const pictures = await Promise.all(neighbours.map((lobby) => settled(platform, game, lobby)))
  const gateway = readState(folder)!
  const before_bytes = pssOf(gateway.process.pid)

  for (const [index, { seat }] of hostile.entries()) {
    const task = taskFor(platform, { gateway, neighbours, victim: neighbours[index]! })
    await ask(seat, '/attack', task)
  }
  let peak_bytes = before_bytes
  const reports = await until('the attacks have ended', async () => {
    await Promise.all(neighbours.map((lobby) => askInTime(lobby)))
    peak_bytes = Math.max(peak_bytes, pssOf(gateway.process.pid))
    const all = await Promise.all(hostile.map(({ seat }) => ask<Report>(seat, '/report')))
    return all.every(({ is_done }) => is_done) && all
  })

  t.diagnostic(`gateway: ${megabytes(before_bytes)} MB before, at most ${megabytes(peak_bytes)} MB`)
  for (const [index, { sent, received, leaks, reached, own_ids }] of reports.entries()) {
    const { name, attachment } = hostile[index]!
    t.diagnostic(`${name}: ${sent} requests, ${JSON.stringify(received)}`)
    assert.ok(sent >= REQUESTS, name)
    const [, protocol] = name.split('-') as [string, (typeof PROTOCOLS)[number]]
    for (const what of UNDERSTOOD[protocol]) assert.ok((received[what] ?? 0) > 0, `${name} has no ${what}`)
    assert.deepEqual({ leaks, reached }, { leaks: [], reached: [] }, name)
    const own = attachment.protocol === 'agones' ? attachment.facts.lobby_id : ''
    assert.deepEqual([...new Set(own_ids)], [own], name)
    const state = await game.player.call(getLobbyState, { params: { lobby_id: attachment.facts.lobby_id } })
    assert.ok(Buffer.byteLength(JSON.stringify(state)) <= 2 * STATE_BYTES_MAX, name)
  }
  assert.ok(peak_bytes - before_bytes <= GROWTH_BYTES_MAX, `${megabytes(peak_bytes - before_bytes)} MB more`)
  assert.deepEqual(readState(folder), gateway, 'the gateway is the same process')
  assert.equal(readFileSync(join(folder, 'gateway.err'), 'utf8'), '')
  for (const [index, lobby] of neighbours.entries())
    assert.deepEqual(await pictureOf(platform, game, lobby), pictures[index], lobby.name)
  // The runner starts and serves another lobby.
  await settled(platform, game, await find(AFTER))
})

function deploy(platform: Platform): Promise<TestGame> {
  const mode = (docker: Docker) => ({ max_players: 4, idle_grace_ms: LONG_MS, docker })
  const modes = PROTOCOLS.flatMap((protocol) => {
    const docker: Docker = { protocol, args: ['node', `${protocol}.mjs`], ...OPTIONS[protocol] }
    const attack: Docker = { ...docker, args: ['node', ATTACK, protocol], ready: 'listening' }
    return [
      [protocol, mode(docker)],
      [`hostile-${protocol}`, { ...mode(attack), tier: 'basic-1d1' }],
    ]
  })
  const files = ATTACK_FILES.map((name) => [name, readFileSync(join(import.meta.dirname, '..', name), 'utf8')])
  return platform.game({
    files: { ...PROTOCOL_SERVERS, ...Object.fromEntries(files) },
    docker: { args: ['node', 'game.mjs'], ports: { game: { protocol: 'http' } } },
    matchmaker: {
      game_modes: { ...Object.fromEntries(modes), [AFTER]: mode({ protocol: 'gsdk', args: ['node', 'gsdk.mjs'] }) },
    },
    limits: { max_players_per_client: 1_000 },
  })
}

function taskFor(
  { ctx: { config } }: Platform,
  world: { gateway: NonNullable<ReturnType<typeof readState>>; neighbours: Lobby[]; victim: Lobby },
): Task {
  const { gateway, neighbours, victim } = world
  const others: Target[] = neighbours.flatMap(({ attachment }) =>
    LOBBY_PORTS.map((port) => ({ host: attachment.address!, port })),
  )
  const hidden = [gateway.control_port, config.api_port, config.matchmaker_port, config.edge_http_port]
  return {
    requests: REQUESTS,
    seed: SEED,
    victim_id: victim.attachment.facts.lobby_id,
    secrets: [gateway.secret, ...neighbours.flatMap(({ attachment }) => [attachment.secret, attachment.token])],
    targets: [
      ...others,
      { host: '', port: gateway.port, from: victim.attachment.address! },
      ...['', '127.0.0.1', '127.8.0.8'].flatMap((host) => hidden.map((port) => ({ host, port }))),
    ],
    gateway_port: gateway.port,
  }
}

/** What is known of a lobby whose server has done all that it does at its start. */
async function settled(platform: Platform, game: TestGame, lobby: Lobby): Promise<Picture> {
  return until(`${lobby.name} to be as it stays`, async () => {
    const picture = await pictureOf(platform, game, lobby)
    const text = JSON.stringify(picture.known)
    const word = { agones: 'Allocated', gsdk: 'Active', gamelift: 'PlayerId', multiplay: 'AllocationID' }
    return text.includes(word[lobby.attachment.protocol]) && picture
  })
}

async function pictureOf({ client }: Platform, game: TestGame, { seat }: Lobby): Promise<Picture> {
  const { lobby_id } = seat.lobby
  const params = { game_id: game.game_id, lobby_id }
  return {
    known: await ask(seat, '/'),
    state: await game.player.call(getLobbyState, { params: { lobby_id } }),
    players: (await client.call(listMatchmakerLobbyPlayers, { params })).players,
  }
}

/** The server calls its endpoint for this, where its protocol has calls that read. */
async function askInTime(lobby: Lobby): Promise<void> {
  const start_ms = performance.now()
  const { failed = [] } = await ask<{ failed?: string[] }>(lobby.seat, '/')
  assert.deepEqual(failed, [], lobby.name)
  const took_ms = performance.now() - start_ms
  assert.ok(took_ms < RESPONSE_MS_MAX, `${lobby.name} had its response after ${Math.round(took_ms)} ms`)
}

async function ask<Known>({ ports, player }: Seat, path: string, task?: Task): Promise<Known> {
  const init = task === undefined ? {} : { method: 'POST', body: JSON.stringify(task) }
  const response = await fetch(`${ports.game!.url}${path}?player_token=${player.token}`, init)
  const text = await response.text()
  assert.equal(response.status, 200, text)
  return JSON.parse(text) as Known
}

/** The memory of a process. Pages that others have too count in part. */
function pssOf(pid: number): number {
  const [, kilobytes = '0'] = /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}

function megabytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1)
}
