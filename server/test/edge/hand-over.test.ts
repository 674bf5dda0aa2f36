// A planned restart of the edge: the next edge takes over while players play. Every flow counts its messages in both directions,
// so that a lost, doubled or late byte shows. ROUNDS and FLOWS make the test as large as a busy edge.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import type { Context } from '../../src/context.ts'
import { HandleChannel } from '../../src/edge/hand-over/channel.ts'
import { HAND_OVER_VERSION, isKind } from '../../src/edge/hand-over/messages.ts'
import { until } from '../until.ts'
import { RAW_HOST, startTestEdge, type TestEdge } from './platform.ts'

const ROUNDS = Number(process.env.ROUNDS ?? 3)
/** WebSockets; a fifth of it TCP connections, and a fifth UDP sources. */
const FLOWS = Number(process.env.FLOWS ?? 50)
/** Many players share the processors of this machine. */
const SEND_EVERY_MS = Math.max(50, FLOWS)
const FAULTS_SHOWN_MAX = 10
/** One client may have 128 connections to a raw port. */
const PER_PORT = 100
const TIMEOUT = { timeout: 60_000 + ROUNDS * 30_000 }
const PROGRAM = join(import.meta.dirname, 'small-edge.ts')

/** One player: what it has sent, and what came back, in order. `fault`: the first thing that went wrong. */
type Player = { sent: number; received: number; fault: string | null; send: () => void; close: () => void }

test('a planned restart of the edge closes no connection and loses no byte', TIMEOUT, async (t) => {
  const edge = await startTestEdge(t)
  const web = await startWebSocketLobby(t)
  const tcp = await startTcpLobby(t)
  const udp = await startUdpLobby(t)
  const lobby_id = await edge.lobby({ game: web })
  const udp_number = (await edge.raw('udp', udp)).number
  let tcp_number = 0
  const url = `ws://127.0.0.1:${edge.port}/lobbies/${lobby_id}/game/`
  const players: Player[] = []
  for (let index = 0; index < FLOWS; index++) players.push(await playWebSocket(url))
  for (let index = 0; index < FLOWS / 5; index++) {
    if (index % PER_PORT === 0) tcp_number = (await edge.raw('tcp', tcp)).number
    players.push(await playTcp(tcp_number))
  }
  for (let index = 0; index < FLOWS / 5; index++) players.push(playUdp(udp_number))
  const sending = setInterval(() => {
    for (const player of players) player.send()
  }, SEND_EVERY_MS)
  t.after(() => {
    clearInterval(sending)
    for (const player of players) player.close()
  })
  const visitor = visit(`http://127.0.0.1:${edge.port}/lobbies/${lobby_id}/game/`)
  const progress = (): number[] => players.map(({ received }) => received)

  let before: { retired: Promise<unknown> } = { retired: edge.role.retired! }
  for (let round = 0; round < ROUNDS; round++) {
    const next = await startNext(t, edge.ctx)
    await before.retired
    if (round === 0) await edge.role.stop({ end_lobbies: false })
    const now = progress()
    await until('every player has heard from the server again', () =>
      players.every(({ received, fault }, index) => fault !== null || received > now[index]! + 2),
    )
    assert.deepEqual(players.flatMap(({ fault }) => fault ?? []).slice(0, FAULTS_SHOWN_MAX), [], `round ${round}`)
    t.diagnostic(`round ${round}: every flow continues`)
    before = { retired: once(next, 'exit') }
  }
  const { failures, visits } = await visitor.stop()
  assert.deepEqual(failures, [])
  assert.ok(visits > ROUNDS)

  clearInterval(sending)
  await until('all that was sent has come back', () => players.every(({ sent, received }) => sent === received))
  await until('one edge is registered, with every connection', async () => {
    const { rows } = await edge.ctx.pool.query<{ edges: number; count: number }>(
      `select (select count(*) from edges)::int as edges,
        (select sum(connection_count) from lobby_connections)::int as count`,
    )
    return rows[0]!.edges === 1 && rows[0]!.count === players.length
  })
})

test('a successor that dies before it has taken over costs nobody a byte', TIMEOUT, async (t) => {
  const edge = await startTestEdge(t)
  const raw = await edge.raw('tcp', await startTcpLobby(t))
  const datagrams = await edge.raw('udp', await startUdpLobby(t))
  const players = [await playTcp(raw.number), playUdp(datagrams.number)]
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
  assert.equal(next.exitCode, null)
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

/** Starts the next edge as a process. It has taken over when this resolves. */
async function startNext(t: TestContext, { config }: TestEdge['ctx']): Promise<ChildProcess> {
  const child = spawn(process.execPath, [PROGRAM], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      MUSTER_DATA: config.data_dir,
      DATABASE_URL: config.database_url!,
      MUSTER_EDGE_HTTP_PORT: '0',
      MUSTER_EDGE_HTTPS_PORT: '0',
      MUSTER_API_PORT: '1',
      MUSTER_MATCHMAKER_PORT: '1',
      MUSTER_LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
    },
  })
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
  })
  const lines = createInterface({ input: child.stdout! })
  const [port] = (await Promise.race([once(lines, 'line'), once(child, 'exit').then(() => ['ended'])])) as [string]
  assert.match(port, /^\d+$/, 'the next edge listens')
  return child
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

function playUdp(port: number): Player {
  const socket = createSocket('udp4')
  const player = createPlayer(
    (text) => socket.send(text, port, RAW_HOST),
    () => socket.close(),
  )
  socket.on('message', (datagram) => player.onReply(String(datagram)))
  return player
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
