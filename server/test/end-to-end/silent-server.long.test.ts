// Servers that never say who plays: their players lose their seats, and not their game.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  explainRay,
  findLobby,
  getLobbyLogs,
  playerConnected,
  playerDisconnected,
  type ResponseOf,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { ask, bearer, JSON_TYPE } from '../http/ask.ts'

import { createDatabase } from '../support/database.ts'
import { freePorts } from '../support/free-ports.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { dial, openDatagrams } from './raw-server.ts'

/** HTTP with WebSockets, TCP and UDP; it reports nothing to the platform but that it is ready. */
const SILENT_SERVER = `
import { createHash } from 'node:crypto'
import dgram from 'node:dgram'
const http = process.getBuiltinModule('node:http')
import net from 'node:net'
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_WEB, PORT_GAME, PORT_VOICE } = process.env
const web = http.createServer((request, response) => response.end('hello'))
web.on('upgrade', (request, socket) => {
  const key = request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
  const accept = createHash('sha1').update(key).digest('base64')
  socket.on('error', () => {}).on('end', () => socket.end()).resume()
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n')
})
const game = net.createServer((socket) => socket.on('error', () => {}).pipe(socket))
const voice = dgram.createSocket('udp4')
voice.on('message', (datagram, { port, address }) => voice.send(datagram, port, address))
web.listen(Number(PORT_WEB), '127.0.0.1', () =>
  game.listen(Number(PORT_GAME), '127.0.0.1', () =>
    voice.bind(Number(PORT_VOICE), '127.0.0.1', () => {
      const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
      http.request(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }, (answer) => answer.resume()).end()
    })))
process.on('SIGTERM', () => process.exit(0))
`

const OPTIONS = {
  files: { 'server.mjs': SILENT_SERVER },
  docker: {
    ports: {
      web: { protocol: 'http' as const },
      game: { protocol: 'tcp' as const },
      voice: { protocol: 'udp' as const },
    },
  },
  matchmaker: { game_modes: { default: { max_players: 1 }, other: {} } },
}
/** Longer than a seat waits for its player, or than an empty lobby waits for one. */
const SEAT_MS = 121_000
const IDLE_MS = 16_000

type Seat = ResponseOf<typeof findLobby>
type Explained = Seat & { ray_id: string }

/** A seat in a lobby of its own, and the ray of its request. */
async function findAlone(matchmaker_url: string, game: TestGame, mode = 'default'): Promise<Explained> {
  const { text, headers } = await ask(`${matchmaker_url}${findLobby.path}`, {
    method: 'POST',
    headers: { ...bearer(game.public_token), ...JSON_TYPE },
    body: JSON.stringify({ game_modes: [mode] }),
  })
  return { ...(JSON.parse(text) as Seat), ray_id: String(headers['x-ray-id']) }
}

/** Its socket, when the handshake is over. */
async function openWebSocket(t: TestContext, seat: Seat): Promise<Socket> {
  const headers = {
    ...{ connection: 'Upgrade', upgrade: 'websocket' },
    ...{ 'sec-websocket-version': '13', 'sec-websocket-key': randomBytes(16).toString('base64') },
  }
  const asking = request(seat.ports.web!.url!, { headers }).end()
  const [, socket] = (await once(asking, 'upgrade')) as [unknown, Socket]
  socket.on('error', () => {})
  t.after(() => void socket.destroy())
  return socket
}

/** Waits until `count` open connections have been reported to the matchmaker. */
const connections = (platform: Platform, count: number) =>
  until(`${count} connections to be reported`, async () => {
    const { text } = await platform.ctx.metrics.text()
    return text.includes(`muster_lobby_connections ${count}\n`)
  })

const rowOf = (platform: Platform, lobby_id: string) =>
  platform.ctx.db.selectFrom('lobbies').where('lobby_id', '=', lobby_id).selectAll().executeTakeFirstOrThrow()

const expiredSeats = (platform: Platform, lobby_id: string, count: number) =>
  until('the seat to expire', async () => {
    const row = await rowOf(platform, lobby_id)
    return row.player_count === 0 && row.seats_expired_while_connected === count
  })

async function assertRuns(platform: Platform, lobby_ids: readonly string[]): Promise<void> {
  for (const lobby_id of lobby_ids) assert.equal((await rowOf(platform, lobby_id)).stop_reason, null)
}

/** Waits until the lobby's log has the line. */
const logged = (platform: Platform, game: TestGame, lobby_id: string, line: string) =>
  until(`the log to say: ${line}`, async () => {
    const params = { game_id: game.game_id, lobby_id }
    const { lines } = await platform.client.call(getLobbyLogs, { params, query: { stream: 'std_err' } })
    return lines.some((text) => Buffer.from(text, 'base64').toString().includes(line))
  })

/** Its server has reported a player once, who has left: what the edge says does not concern it. */
async function reportOnce(platform: Platform, game: TestGame, seat: Seat, matchmaker_url: string): Promise<string> {
  const { lobby_id } = seat.lobby
  const token = platform.lobbyToken({ lobby_id, namespace_id: game.namespace_id })
  const server = createClient({ url: matchmaker_url, token })
  const body = { player_token: seat.player.token }
  await server.call(playerConnected, { body })
  await server.call(playerDisconnected, { body })
  return lobby_id
}

test('a lobby whose server never reports players lives while a connection to it is open, and says that seats expired', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  const game = await platform.game(OPTIONS)
  const seats: Explained[] = []
  // Of a second the first seat is explained.
  for (let count = 0; count < 5; count++) seats.push(await findAlone(platform.matchmaker_url, game))
  const [web, tcp, udp, reporting, empty] = seats as [Explained, Seat, Seat, Seat, Seat]
  const ids = [web, tcp, udp].map(({ lobby }) => lobby.lobby_id)
  const socket = await openWebSocket(t, web)
  const line = dial(t, tcp.ports.game!.url!)
  line.write('hello')
  assert.equal(await line.line(), 'hello')
  const datagrams = await openDatagrams(t, udp.ports.voice!.url!)
  datagrams.send('ping')
  assert.equal(String(await datagrams.next()), 'ping')
  const stranger = dial(t, reporting.ports.game!.url!)
  stranger.write('hello')
  assert.equal(await stranger.line(), 'hello')
  await connections(platform, 4)
  await logged(platform, game, web.lobby.lobby_id, 'The server has written nothing in 10 s. Most runtimes')
  const reported_id = await reportOnce(platform, game, reporting, platform.matchmaker_url)

  platform.advance(SEAT_MS)
  assert.equal(
    await platform.stopReasonOf(reported_id),
    'idle',
    'a stranger keeps no lobby whose server reports players',
  )
  await logged(platform, game, reported_id, 'the lobby was stopped (idle) while 1 connection to it was open')
  for (const lobby_id of ids) await expiredSeats(platform, lobby_id, 1)
  platform.advance(IDLE_MS)
  assert.equal(await platform.stopReasonOf(empty.lobby.lobby_id), 'idle')
  await assertRuns(platform, ids)
  const warning = '1 seat has expired while connections to the lobby were open'
  for (const lobby_id of ids) await logged(platform, game, lobby_id, warning)
  const { explanation } = await platform.client.call(explainRay, { params: { ray_id: web.ray_id } })
  assert.match(explanation.lobbies[0]!.warnings.join('\n'), new RegExp(warning))

  socket.destroy()
  line.socket.destroy()
  await connections(platform, 1)
  platform.advance(IDLE_MS)
  for (const lobby_id of ids.slice(0, 2)) assert.equal(await platform.stopReasonOf(lobby_id), 'idle')
  await assertRuns(platform, ids.slice(2))
})

/** An edge as a process of its own, on the data of the platform. */
async function startEdgeProcess(t: TestContext, data_dir: string, settings: NodeJS.ProcessEnv): Promise<ChildProcess> {
  const program = join(import.meta.dirname, '../edge/small-edge.ts')
  const edge = spawn(process.execPath, [program], {
    env: {
      ...process.env,
      ...settings,
      MUSTER_DATA: data_dir,
      MUSTER_EDGE_HTTPS_PORT: '0',
      MUSTER_LOG_LEVEL: 'silent',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(() => void edge.kill('SIGKILL'))
  await once(edge.stdout!, 'data')
  return edge
}

test('neither the death of the edge nor a restart of the matchmaker ends a lobby whose server never reports players', async (t) => {
  const database_url = await createDatabase(t)
  const [matchmaker_port, lobby_api_port, edge_port] = await freePorts(3)
  const env = {
    MUSTER_MATCHMAKER_PORT: String(matchmaker_port),
    MUSTER_LOBBY_API_PORT: String(lobby_api_port),
    MUSTER_EDGE_HTTP_PORT: String(edge_port),
  }
  const matchmaker_url = `http://127.0.0.1:${matchmaker_port}`
  const platform = await startPlatform(t, { roles: 'api,runner', has_sandboxes: true, database_url, env })
  const of_platform = { database_url, data_dir: platform.data_dir, env, roles: 'matchmaker' }
  const first = await startPlatform(t, of_platform)
  const edge = await startEdgeProcess(t, platform.data_dir, { DATABASE_URL: database_url, ...env })
  const game = await platform.game(OPTIONS)

  const seat = await findAlone(matchmaker_url, game)
  const { lobby_id } = seat.lobby
  await openWebSocket(t, seat)
  await connections(first, 1)
  first.advance(SEAT_MS)
  await expiredSeats(platform, lobby_id, 1)

  edge.kill('SIGKILL')
  await once(edge, 'exit')
  await endsAsIdle(first)
  await assertRuns(platform, [lobby_id])

  await first.close()
  const second = await startPlatform(t, of_platform)
  await endsAsIdle(second)
  await assertRuns(platform, [lobby_id])

  await startEdgeProcess(t, platform.data_dir, { DATABASE_URL: database_url, ...env })
  const socket = await openWebSocket(t, seat)
  await connections(second, 1)
  await endsAsIdle(second)
  await assertRuns(platform, [lobby_id])
  socket.destroy()
  await connections(second, 0)
  second.advance(IDLE_MS)
  assert.equal(await platform.stopReasonOf(lobby_id), 'idle')

  /** Meanwhile a lobby whose server reports players ends as ever. */
  async function endsAsIdle(matchmaker: Platform): Promise<void> {
    const other = await findAlone(matchmaker_url, game, 'other')
    await reportOnce(platform, game, other, matchmaker_url)
    matchmaker.advance(10 * IDLE_MS)
    assert.equal(await platform.stopReasonOf(other.lobby.lobby_id), 'idle')
  }
})
