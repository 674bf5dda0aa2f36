// A platform and a joined node on one machine, both with a runner and an edge: each edge serves the lobbies of both.
import assert from 'node:assert'
import { once } from 'node:events'
import { chmodSync, readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  ApiError,
  cancelNodeDrain,
  createNodeInvitation,
  drainNode,
  findLobby,
  listNodes,
  type ResponseOf,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { createMuster } from '../../../cli/test/program.ts'
import { adminFile } from '../../src/supervisor/folders.ts'
import { freeSettings, processesOf, roleOf, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { createTestGame, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { ECHO_SERVER } from './echo-server.ts'
import { stayOnTcp, stayOnWebSocket } from './flows.ts'
import { type RawPort, talk, talkTcp, talkUdp } from './talk.ts'

type Client = ReturnType<typeof createClient>
type Seat = ResponseOf<typeof findLobby>
/** `at`: the address of its HTTP, and the host of its raw ports. */
type EdgeAt = { url: string; raw_host: string }

/** Of the platform's edge in development, and of the node's. */
const PLATFORM_RAW_HOST = '127.0.0.2'
const NODE_HOST = '127.0.0.3'
/** An edge that stops reporting is named to players for this long. */
const SILENT_MS_MAX = 30_000
const STATES_POLL_MS = 500

test('each of two edges serves the lobbies of both machines, and players are sent to the nearer one', async (t) => {
  const world = await openWorld(t)
  const { platform_edge, node_edge, admin, game, node_folder } = world
  const find = (): Promise<Seat> => game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const lobbyCount = async (node_id: string): Promise<number> => {
    const { nodes } = await admin.call(listNodes, {})
    return nodes.find((node) => node.node_id === node_id)?.lobby_count ?? 0
  }
  /** A seat in a new lobby on this node. */
  const findOn = async (node_id: string): Promise<Seat> => {
    await admin.call(cancelNodeDrain, { body: { node_id } })
    await admin.call(drainNode, { body: { node_id: node_id === 'attic' ? 'main' : 'attic' } })
    return until(`a lobby on ${node_id}`, async () => {
      const before = await lobbyCount(node_id)
      // The matchmaker reads the states of nodes about once a second.
      const seat = await find().catch((error: unknown) => {
        if (error instanceof ApiError && error.code === 'MATCHMAKER_REGION_FULL') return sleep(STATES_POLL_MS, null)
        throw error
      })
      return (await lobbyCount(node_id)) > before && seat
    })
  }

  const on_node = await findOn('attic')
  await t.test('a lobby on the node is given out with the addresses of its own edge', async () => {
    assert.ok(on_node.ports.game!.url.startsWith(`${node_edge.url}/lobbies/`), on_node.ports.game!.url)
    assert.strictEqual(on_node.ports.raw!.hostname, NODE_HOST)
    assert.strictEqual(on_node.ports.voice!.hostname, NODE_HOST)
    await talkAsTold(on_node)
  })
  await t.test('it is reached through the edge of the platform too', () => talkThrough(platform_edge, on_node))

  const on_platform = await findOn('main')
  await t.test('a lobby on the platform is given out with the addresses of the platform', async () => {
    assert.ok(on_platform.ports.game!.url.startsWith(`${platform_edge.url}/lobbies/`), on_platform.ports.game!.url)
    assert.strictEqual(on_platform.ports.raw!.hostname, PLATFORM_RAW_HOST)
    await talkAsTold(on_platform)
  })
  await t.test('it is reached through the edge of the node too', () => talkThrough(node_edge, on_platform))

  await t.test('players through either edge stay connected while both are restarted', async (t) => {
    const muster = createMuster(t)
    const tcpAt = ({ raw_host }: EdgeAt, seat: Seat) =>
      stayOnTcp(t, { hostname: raw_host, port: seat.ports.raw!.port! })
    const webAt = ({ url }: EdgeAt, { lobby }: Seat) => stayOnWebSocket(t, `${url}/lobbies/${lobby.lobby_id}/game`)
    const flows = await Promise.all([
      ...[tcpAt(platform_edge, on_node), webAt(platform_edge, on_node), tcpAt(node_edge, on_node)],
      ...[tcpAt(node_edge, on_platform), webAt(node_edge, on_platform), tcpAt(platform_edge, on_platform)],
    ])
    for (const env of [world.settings, world.node_settings]) {
      const { code, stderr } = await muster.run(['restart'], { env })
      assert.strictEqual(code, 0, stderr)
      for (const flow of flows) await flow.requireAlive()
      await talkThrough(platform_edge, on_node)
      await talkThrough(node_edge, on_platform)
    }
    await Promise.all(flows.map((flow) => flow.finish()))
    const edges = () => processesOf(node_folder).filter(({ command }) => /(main\.ts|role\.js) edge$/.test(command))
    await until('the former edge of the node has ended', () => edges().length === 1)
  })

  await t.test('the edge of the node serves the API and the matchmaker, and its own host only lobbies', async () => {
    const api = await get(node_edge.url, '/nodes', { host: 'localhost', authorization: `Bearer ${world.token}` })
    assert.match(api, /"node_id":"attic"/)
    const seat = await post(node_edge.url, '/matchmaker/lobbies/find', game.public_token)
    await talkAsTold(JSON.parse(seat) as Seat)
    assert.match(
      await get(node_edge.url, '/nodes', { authorization: `Bearer ${world.token}` }),
      /This host has lobbies only/,
    )
  })

  await t.test('when the edge of the node stops, players are sent to the platform, and reach the node', async (t) => {
    assert.strictEqual((await findOn('attic')).ports.raw!.hostname, NODE_HOST)
    const pid = roleOf(node_folder, 'edge')!
    process.kill(pid, 'SIGSTOP')
    t.after(() => process.kill(pid, 'SIGCONT'))
    const begin_ms = performance.now()
    let seat = await find()
    while (seat.ports.raw!.hostname === NODE_HOST && performance.now() - begin_ms < SILENT_MS_MAX) seat = await find()
    t.diagnostic(`the platform is named ${Math.round(performance.now() - begin_ms)} ms after the edge stopped`)
    assert.ok(seat.ports.game!.url.startsWith(`${platform_edge.url}/lobbies/`), seat.ports.game!.url)
    assert.strictEqual(seat.ports.raw!.hostname, PLATFORM_RAW_HOST)
    await talkAsTold(seat)
    await talkThrough(platform_edge, on_node)
  })
})

type World = {
  admin: Client
  token: string
  game: TestGame
  platform_edge: EdgeAt
  node_edge: EdgeAt
  node_folder: string
  settings: Record<string, string>
  node_settings: Record<string, string>
}

async function openWorld(t: TestContext): Promise<World> {
  const [folder, node_folder] = [temporaryFolder(t), temporaryFolder(t)]
  // Lobbies run as other users, who must find their builds.
  for (const one of [folder, node_folder]) chmodSync(one, 0o711)
  const shared = { MUSTER_LOBBY_NETWORK: 'machine', MUSTER_RATE_LIMIT_SEATS: '0', MUSTER_CAPACITY_CORES: '0' }
  const settings = { ...(await freeSettings(folder)), ...shared, MUSTER_NODE: 'main' }
  await placeCluster(folder)
  await startMuster(settings).ready
  const url = `http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`
  const token = readFileSync(adminFile(folder), 'utf8').trim()
  const as = (bearer: string): Client => createClient({ url, token: bearer })
  const admin = as(token)
  const game = await createTestGame(
    { client: admin, api_url: `http://127.0.0.1:${settings.MUSTER_API_PORT}`, as },
    {
      files: { 'server.mjs': ECHO_SERVER },
      docker: { ports: { game: { protocol: 'http' }, raw: { protocol: 'tcp' }, voice: { protocol: 'udp' } } },
      matchmaker: { max_players: 1, game_modes: { default: {} } },
      limits: { lobby_count_max: 64, max_players_per_client: 64 },
    },
  )
  const { invitation } = await admin.call(createNodeInvitation, { body: { name: 'attic', roles: ['runner', 'edge'] } })
  const node_settings = {
    ...(await freeSettings(node_folder)),
    ...shared,
    MUSTER_EDGE_HOST: NODE_HOST,
    MUSTER_EDGE_PORTS_HOST: NODE_HOST,
    MUSTER_EDGE_PUBLIC_HOST: NODE_HOST,
  }
  await startMuster(node_settings, ['join', url, invitation]).ready
  return {
    ...{ admin, token, game, node_folder, settings, node_settings },
    platform_edge: { url, raw_host: PLATFORM_RAW_HOST },
    node_edge: { url: `http://${NODE_HOST}:${node_settings.MUSTER_EDGE_HTTP_PORT}`, raw_host: NODE_HOST },
  }
}

/** At the addresses of the response. */
async function talkAsTold(seat: Seat): Promise<void> {
  const port = (name: string): RawPort => ({ hostname: seat.ports[name]!.hostname, port: seat.ports[name]!.port! })
  assert.match(await talk(seat.ports.game!.url, 'as told'), /^\d+ as told$/)
  assert.strictEqual(await talkTcp(port('raw'), 'over tcp'), 'over tcp')
  assert.strictEqual(await talkUdp(port('voice'), 'over udp'), 'over udp')
}

/** Through one edge, whatever the response says. An edge opens the raw ports of a new lobby within a moment. */
async function talkThrough({ url, raw_host }: EdgeAt, seat: Seat): Promise<void> {
  const port = (name: string): RawPort => ({ hostname: raw_host, port: seat.ports[name]!.port! })
  const succeeds = (work: () => Promise<string>) => work().catch(() => null)
  const { lobby_id } = seat.lobby
  assert.match(await talk(`${url}/lobbies/${lobby_id}/game`, 'through it'), /^\d+ through it$/)
  await until('tcp', async () => (await succeeds(() => talkTcp(port('raw'), 'over tcp'))) === 'over tcp')
  await until('udp', async () => (await succeeds(() => talkUdp(port('voice'), 'over udp'))) === 'over udp')
}

function get(url: string, path: string, headers: Record<string, string>): Promise<string> {
  return textOf(request(`${url}${path}`, { headers }).end())
}

function post(url: string, path: string, token: string): Promise<string> {
  const headers = { host: 'localhost', authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return textOf(request(`${url}${path}`, { method: 'POST', headers }).end('{"game_modes":["default"]}'))
}

async function textOf(sent: ReturnType<typeof request>): Promise<string> {
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) text += chunk
  return text
}
