// A planned restart of the edge: the next edge takes over while players play. Every flow counts its messages in both directions,
// so that a lost, doubled or late byte shows. ROUNDS and FLOWS make the test as large as a busy edge.
import assert from 'node:assert/strict'
import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import type { Context } from '../../src/context.ts'
import { HandleChannel } from '../../src/edge/hand-over/channel.ts'
import { isKind } from '../../src/edge/hand-over/messages.ts'
import { HAND_OVER_VERSION } from '../../src/wire/compatibility.ts'
import { until } from '../support/until.ts'
import { type EdgeProcess, RAW_HOST, startEdgeProcess, startTestEdge, type TestEdge } from './platform.ts'

const ROUNDS = Number(process.env.ROUNDS ?? 2)
/** WebSockets; a fifth of it TCP connections, and a fifth UDP sources. */
const FLOWS = Number(process.env.FLOWS ?? 50)
/** Many players share the processors of this machine. */
const SEND_EVERY_MS = Math.max(50, FLOWS)
const SEND_TIMER_MS = 5
/** Messages of one turn, as a multiple of what one turn has when none is late. */
const SEND_AT_ONCE_FACTOR = 4
/** Of a line of /proc/net/udp. */
const UDP_COLUMNS = 13
/** Bytes of the buffer of a server of this test, which shares its event loop with all players. */
const RECEIVE_BYTES = 4 * 1024 * 1024
const FAULTS_SHOWN_MAX = 10
/** One client may have 128 connections to a raw port. */
const PER_PORT = 100
const TIMEOUT = { timeout: 60_000 + ROUNDS * 30_000 }

/** One player: what it has sent, and what came back, in order. `fault`: the first thing that went wrong. */
type Player = {
  name: string
  sent: number
  received: number
  fault: string | null
  send: () => void
  close: () => void
}

test('a planned restart of the edge closes no connection and loses no byte', TIMEOUT, async (t) => {
  const edge = await startTestEdge(t)
  const web = await startWebSocketLobby(t)
  const tcp = await startTcpLobby(t)
  const udp = await startUdpLobby(t)
  const lobby_id = await edge.lobby({ game: web })
  const udp_number = (await edge.raw('udp', udp)).number
  // From here on each edge is a process of its own, and the players do not share its event loop.
  const first = await startNext(t, edge.ctx)
  const running: EdgeProcess[] = [first, ...edge.further]
  await edge.role.retired
  await edge.role.stop({ end_lobbies: false })
  let tcp_number = 0
  const url = `ws://127.0.0.1:${first.port}/lobbies/${lobby_id}/game/`
  const players: Player[] = []
  for (let index = 0; index < FLOWS; index++) players.push(await playWebSocket(url))
  for (let index = 0; index < FLOWS / 5; index++) {
    if (index % PER_PORT === 0) tcp_number = (await edge.raw('tcp', tcp)).number
    players.push(await playTcp(tcp_number))
  }
  const udp_players = await Promise.all(Array.from({ length: FLOWS / 5 }, () => playUdp(udp_number)))
  players.push(...udp_players)
  const sending = sendInTurns(players)
  t.after(() => {
    sending.stop()
    for (const player of players) player.close()
  })
  const visitor = visit(`http://127.0.0.1:${first.port}/lobbies/${lobby_id}/game/`)
  /** A datagram that had no room at a player or a server of this test is no loss of the edge, so there must be none. */
  const requireRoom = (round: number): void => {
    const ports = [udp, ...udp_players.map(({ port }) => port)]
    assert.equal(
      datagramsDropped(({ local }) => ports.includes(local)),
      0,
      `round ${round}: this test was too slow`,
    )
  }

  for (let round = 0; round < ROUNDS; round++) {
    // With several edge processes, each round replaces another one.
    const number = round % running.length
    const next = await startNext(t, edge.ctx, number)
    await running[number]!.exit
    const now = players.map(({ received }) => received)
    const silent = (): string[] =>
      players.flatMap(({ name, received, fault }, index) => (fault === null && received <= now[index]! + 2 ? name : []))
    await until('every player has heard from the server again', () => silent().length === 0).catch(() => {})
    assert.deepEqual(silent().slice(0, FAULTS_SHOWN_MAX), [], `round ${round}: these players hear nothing`)
    requireRoom(round)
    const edge_dropped = datagramsDropped(({ local, remote }) => local === udp_number || remote === udp)
    const faults = players.flatMap(({ fault }) => fault ?? [])
    assert.deepEqual(
      { edge_dropped, faults: faults.slice(0, FAULTS_SHOWN_MAX) },
      { edge_dropped: 0, faults: [] },
      `round ${round}`,
    )
    const { connections, connections_pause_ms, datagrams_pause_ms } = next.taken()
    t.diagnostic(
      `round ${round}: ${players.length} flows continue; ${connections} connections paused for ${connections_pause_ms} ms, ` +
        `datagrams for ${datagrams_pause_ms} ms`,
    )
    running[number] = next
  }
  const { failures, visits } = await visitor.stop()
  assert.deepEqual(failures, [])
  assert.ok(visits > ROUNDS)

  sending.stop()
  await until('all that was sent has come back', () => players.every(({ sent, received }) => sent === received))
  requireRoom(ROUNDS)
  await until('one edge is registered for each process, with every connection', async () => {
    const { rows } = await edge.ctx.pool.query<{ edges: number; count: number }>(
      `select (select count(*) from edges)::int as edges,
        (select sum(connection_count) from lobby_connections)::int as count`,
    )
    return rows[0]!.edges === running.length && rows[0]!.count === players.length
  })
  const sent = players.reduce((sum, player) => sum + player.sent, 0)
  t.diagnostic(`${sent} messages in ${ROUNDS} restarts, each returned once and in order`)
})

test('a successor that dies before it has taken over costs nobody a byte', TIMEOUT, async (t) => {
  const edge = await startTestEdge(t)
  const raw = await edge.raw('tcp', await startTcpLobby(t))
  const datagrams = await edge.raw('udp', await startUdpLobby(t))
  const players = [await playTcp(raw.number), await playUdp(datagrams.number)]
  t.after(() => {
    for (const player of players) player.close()
  })
  for (const player of players) player.send()
  await until('the first replies', () => players.every(({ received }) => received === 1))
  const channel = await HandleChannel.connect(socketOf(edge.ctx))
  await channel!.send({ kind: 'hello', version: HAND_OVER_VERSION })
  let handles = 0
  for (
    let one = await channel!.receive();
    one !== null && !isKind(one.message, 'end');
    one = await channel!.receive()
  ) {
    if (one.handle !== null) handles++
    one.handle?.close()
  }
  assert.ok(handles >= 2)
  for (const player of players) player.send()
  channel!.close()
  await until('the replies after it', () => players.every(({ received }) => received === 2))
  assert.deepEqual(
    players.map(({ fault }) => fault),
    [null, null],
  )
  // The edge still hands over to a successor that lives.
  const next = await startNext(t, edge.ctx)
  await edge.role.retired
  for (const player of players) player.send()
  await until('the replies of the next edge', () => players.every(({ received }) => received === 3))
  assert.equal(next.child.exitCode, null)
})

test('a successor of another version is refused, and the edge continues', TIMEOUT, async (t) => {
  const edge = await startTestEdge(t)
  const channel = await HandleChannel.connect(socketOf(edge.ctx))
  await channel!.send({ kind: 'hello', version: HAND_OVER_VERSION + 1 })
  const answer = await channel!.receive()
  assert.ok(isKind(answer?.message, 'refused'))
  channel!.close()
  const player = await playTcp((await edge.raw('tcp', await startTcpLobby(t))).number)
  t.after(() => player.close())
  player.send()
  await until('a reply', () => player.received === 1)
})

const socketOf = ({ config }: Context): string => join(config.data_dir, 'edge', 'hand-over.sock')

type Taken = { connections: number; connections_pause_ms: number | null; datagrams_pause_ms: number | null }
/** `taken`: how its hand-over went, from its log. */
type NextEdge = EdgeProcess & { taken: () => Taken }

/** Starts the next edge as a process. It has taken over when this resolves. */
async function startNext(t: TestContext, { config }: TestEdge['ctx'], number = 0): Promise<NextEdge> {
  const next = await startEdgeProcess(t, {
    MUSTER_DATA: config.data_dir,
    DATABASE_URL: config.database_url!,
    MUSTER_EDGE_HTTP_PORT: String(config.edge_http_port),
    MUSTER_EDGE_HTTPS_PORT: String(config.edge_https_port),
    MUSTER_PROCESS: `${number}/${config.process.count}`,
    MUSTER_API_PORT: '1',
    MUSTER_MATCHMAKER_PORT: '1',
  })
  const taken = (): Taken => next.log.find(({ msg }) => msg === 'this edge reads from now on') as unknown as Taken
  return { ...next, taken }
}

/**
 * Each player sends once in SEND_EVERY_MS. The players are spread over that time, as real ones are. Where this process is late,
 * their messages are late too: real players do not all send at once because one of them was slow.
 */
function sendInTurns(players: readonly Player[]): { stop: () => void } {
  const at_once_max = Math.ceil((SEND_AT_ONCE_FACTOR * players.length * SEND_TIMER_MS) / SEND_EVERY_MS)
  let last_ms = performance.now()
  let due = 0
  let sent = 0
  const timer = setInterval(() => {
    const now_ms = performance.now()
    due = Math.min(due + ((now_ms - last_ms) / SEND_EVERY_MS) * players.length, sent + at_once_max)
    last_ms = now_ms
    for (; sent < due; sent++) players[sent % players.length]!.send()
  }, SEND_TIMER_MS)
  return { stop: () => clearInterval(timer) }
}

type UdpSocket = { local: number; remote: number; dropped: number }

/** The datagrams for which the buffers of sockets had no room, as the kernel counts them. */
function datagramsDropped(isMeant: (socket: UdpSocket) => boolean): number {
  const lines = ['/proc/net/udp', '/proc/net/udp6'].flatMap((file) => readFileSync(file, 'utf8').split('\n').slice(1))
  const sockets = lines.flatMap((line): UdpSocket[] => {
    const columns = line.trim().split(/\s+/)
    if (columns.length < UDP_COLUMNS) return []
    const portOf = (address: string): number => Number.parseInt(address.split(':')[1]!, 16)
    return [{ local: portOf(columns[1]!), remote: portOf(columns[2]!), dropped: Number(columns.at(-1)) }]
  })
  return sockets.filter(isMeant).reduce((sum, { dropped }) => sum + dropped, 0)
}

async function startWebSocketLobby(t: TestContext): Promise<number> {
  const { createServer: createHttpServer } = await import('node:http')
  const http = createHttpServer((_req, res) => res.end('here'))
  const server = new WebSocketServer({ server: http })
  server.on('connection', (socket) => {
    const check = createCheck()
    socket.on('message', (data) => socket.send(check(String(data))))
    socket.on('error', () => {})
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  t.after(() => {
    for (const socket of server.clients) socket.terminate()
    http.closeAllConnections()
    http.close()
  })
  return (http.address() as { port: number }).port
}

async function startTcpLobby(t: TestContext): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    const check = createCheck()
    const lines = createInterface({ input: socket })
    lines.on('error', () => {})
    lines.on('line', (line) => socket.write(`${check(line)}\n`))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as { port: number }).port
}

async function startUdpLobby(t: TestContext): Promise<number> {
  const checks = new Map<string, (text: string) => string>()
  const server = createSocket('udp4')
  server.on('message', (datagram, { address, port }: RemoteInfo) => {
    const key = `${address} ${port}`
    const check = checks.get(key) ?? createCheck()
    checks.set(key, check)
    server.send(check(String(datagram)), port, address)
  })
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  server.setRecvBufferSize(RECEIVE_BYTES)
  t.after(() => server.close())
  return server.address().port
}

/** Of one connection of a server: returns a message that is the next one of the same player, or else says what came. */
function createCheck(): (text: string) => string {
  let player: string | null = null
  let next = 0
  return (text) => {
    const [from, number] = text.split(' ') as [string, string]
    player ??= from
    const is_next = from === player && Number(number) === next
    next++
    return is_next ? text : `the server received ${text} instead of ${player} ${next - 1}`
  }
}

let player_count = 0

function createPlayer(send: (text: string) => void, close: () => void): Player & { onReply: (text: string) => void } {
  const name = `player-${player_count++}`
  const player = {
    name,
    sent: 0,
    received: 0,
    fault: null as string | null,
    send: () => send(`${name} ${player.sent++}`),
    close,
    onReply(text: string) {
      if (text !== `${name} ${player.received}`) player.fault ??= `${text} instead of ${name} ${player.received}`
      player.received++
    },
  }
  return player
}

async function playWebSocket(url: string): Promise<Player> {
  const socket = new WebSocket(url)
  const player = createPlayer(
    (text) => socket.send(text),
    () => socket.terminate(),
  )
  socket.on('message', (data) => player.onReply(String(data)))
  socket.on('error', () => {})
  await once(socket, 'open')
  socket.on('close', () => {
    player.fault ??= 'the WebSocket was closed'
  })
  return player
}

async function playTcp(port: number): Promise<Player> {
  const socket = connect(port, RAW_HOST)
  const player = createPlayer(
    (text) => socket.write(`${text}\n`),
    () => socket.destroy(),
  )
  socket.on('error', () => {})
  const lines = createInterface({ input: socket })
  lines.on('error', () => {})
  lines.on('line', (line) => player.onReply(line))
  await once(socket, 'connect')
  socket.on('close', () => {
    player.fault ??= 'the connection was closed'
  })
  return player
}

/** `port`: its own. */
async function playUdp(to_port: number): Promise<Player & { port: number }> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  // A datagram that this machine did not send (ENOBUFS) is not lost by the edge: it is sent again.
  const send = (text: string): void =>
    socket.send(text, to_port, RAW_HOST, (error) => {
      if (error !== null) setTimeout(() => send(text), SEND_TIMER_MS)
    })
  const player = createPlayer(send, () => socket.close())
  socket.on('message', (datagram) => player.onReply(String(datagram)))
  return Object.assign(player, { port: socket.address().port })
}

/** Opens one connection after the other, as new players do. */
function visit(url: string): { stop: () => Promise<{ visits: number; failures: string[] }> } {
  const failures: string[] = []
  let visits = 0
  let is_over = false
  const visiting = (async () => {
    while (!is_over) {
      try {
        const response = await fetch(url, { headers: { connection: 'close' } })
        if ((await response.text()) !== 'here') failures.push(`status ${response.status}`)
      } catch (error) {
        failures.push(String((error as Error).cause ?? error))
      }
      visits++
    }
  })()
  return {
    async stop() {
      is_over = true
      await visiting
      return { visits, failures }
    },
  }
}
