// Several edge processes of one machine. The first runs in this process, the others are small-edge.ts.
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { socketInodesOf } from '../../src/node/procfs.ts'
import { until } from '../support/until.ts'
import { RAW_HOST, startBackend, startTestEdge, type TestEdge } from './platform.ts'

const PROCESSES = 3
const WEB_SOCKETS = 30
const RAW_LOBBIES = 6
/** pino's number for the level. */
const INFO = 30
const DESCRIPTORS_MAX = 10_000
/** ROLE_POOLS.call of one client. */
const CALLS_MAX = 256
const CALLS = 700

/** A connection whose server returns every byte. `port`: of this end. */
type Echo = { port: number; is_open: () => boolean; isEchoed: () => Promise<boolean> }

test('kill -9 of one of three edge processes breaks only its own connections', async (t) => {
  const edge = await startTestEdge(t, { processes: PROCESSES })
  const lobby_id = await edge.lobby({ game: await startUpgradeServer(t) })
  const web = await Promise.all(
    Array.from({ length: WEB_SOCKETS }, () => openWebSocket(t, edge.port, `/lobbies/${lobby_id}/game/`)),
  )
  const tcp: Echo[] = []
  const udp: (Echo & { number: number })[] = []
  const [tcp_port, udp_port] = [await startTcpServer(t), await startUdpServer(t)]
  for (let index = 0; index < RAW_LOBBIES; index++) {
    const { number } = await rawAt(edge, 'tcp', tcp_port, index % PROCESSES)
    tcp.push(await openTcp(t, number))
    const datagrams = await rawAt(edge, 'udp', udp_port, index % PROCESSES)
    udp.push({ ...(await openUdp(t, datagrams.number)), number: datagrams.number })
  }
  const all = [...web, ...tcp, ...udp]
  for (const one of all) assert.ok(await one.isEchoed())
  const pids = [process.pid, ...edge.further.map(({ child }) => child.pid!)]
  const portsBefore = pids.map((pid) => clientPortsOf(pid, edge.port))
  for (const [index, ports] of portsBefore.entries()) {
    assert.ok(
      web.some(({ port }) => ports.has(port)),
      `process ${index} has connections of its own`,
    )
  }

  const [killed] = edge.further
  killed!.child.kill('SIGKILL')
  await killed!.exit
  const own = portsBefore[1]!
  await until('its connections to close', () => web.every(({ port, is_open }) => is_open() !== own.has(port)))
  for (const one of web) if (!own.has(one.port)) assert.ok(await one.isEchoed())
  for (const [index, one] of tcp.entries()) {
    if (index % PROCESSES === 1) await until('the raw connection to close', () => !one.is_open())
    else assert.ok(await one.isEchoed())
  }
  for (const one of udp) if (one.number % PROCESSES !== 1) assert.ok(await one.isEchoed())
  // New connections go to the processes that live.
  for (let index = 0; index < PROCESSES; index++) {
    const fresh = await openWebSocket(t, edge.port, `/lobbies/${lobby_id}/game/`)
    assert.ok(await fresh.isEchoed())
  }
  const again = await edge.restart(t, 1)
  assert.deepEqual(
    again.log.filter(({ level }) => Number(level) > INFO),
    [],
    'it can hand its connections over to a successor',
  )
  for (const one of udp) assert.ok(await one.isEchoed())
})

test('a client has its limit over all edge processes together', async (t) => {
  let waiting: (() => void)[] = []
  const api = await startBackend(t, 'api', (_request, response) => void waiting.push(() => response.end('done')))
  const edge = await startTestEdge(t, { processes: PROCESSES, api_port: api.port })
  let refused = 0
  let served = 0
  const sockets: Socket[] = []
  t.after(() => {
    for (const socket of sockets) socket.destroy()
  })
  const ask = (): void => {
    const socket = connect(edge.port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      if (String(bytes).startsWith('HTTP/1.1 429')) refused++
      else served++
    })
    socket.write('GET /cloud/games HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer none\r\n\r\n')
  }
  for (let count = 0; count < CALLS; count++) ask()
  await until('the requests beyond the limit to be refused', () => refused >= CALLS - CALLS_MAX)
  assert.equal(served, 0)
  const admitted = CALLS - refused
  assert.ok(admitted <= CALLS_MAX && admitted >= CALLS_MAX * 0.9, `${admitted} requests of one client are under way`)
  // What the client gives back, it may use again.
  await until('all requests to be served', () => {
    for (const serve of waiting.splice(0)) serve()
    return served >= admitted
  })
  waiting = []
  refused = 0
  ask()
  await until('one more request at the role', () => waiting.length === 1)
  assert.equal(refused, 0)
})

/** A lobby with a raw port of this process. */
async function rawAt(edge: TestEdge, transport: 'tcp' | 'udp', port: number, of_process: number) {
  const { rows } = await edge.ctx.pool.query<{ port: number }>(
    `select port from edge_ports as open where transport = $1 and port % $2 = $3 and not exists (
      select from lobbies, jsonb_array_elements(lobbies.edge_ports) as taken
      where taken->>'transport' = $1 and (taken->>'port')::integer = open.port
    ) limit 1`,
    [transport, PROCESSES, of_process],
  )
  return edge.raw(transport, port, { number: rows[0]!.port })
}

/** The ports of clients whose connections to `port` a process has. */
function clientPortsOf(pid: number, port: number): Set<number> {
  const inodes = new Set(socketInodesOf(pid, DESCRIPTORS_MAX))
  const local = port.toString(16).toUpperCase().padStart(4, '0')
  const lines = readFileSync(`/proc/${pid}/net/tcp`, 'latin1').split('\n').slice(1)
  return new Set(
    lines
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[1]?.endsWith(`:${local}`) && inodes.has(fields[9]!))
      .map(([, , remote = '']) => Number.parseInt(remote.split(':')[1] ?? '', 16)),
  )
}

async function openWebSocket(t: TestContext, port: number, path: string): Promise<Echo> {
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
  const [head] = (await once(socket, 'data')) as [Buffer]
  assert.match(String(head), /^HTTP\/1\.1 101 /)
  return echoOver(t, socket)
}

async function openTcp(t: TestContext, number: number): Promise<Echo> {
  const socket = connect(number, RAW_HOST)
  await once(socket, 'connect')
  return echoOver(t, socket)
}

function echoOver(t: TestContext, socket: Socket): Echo {
  socket.on('error', () => {})
  t.after(() => void socket.destroy())
  let is_open = true
  socket.once('close', () => {
    is_open = false
  })
  socket.once('end', () => {
    is_open = false
  })
  return {
    port: socket.localPort!,
    is_open: () => is_open,
    async isEchoed() {
      socket.write('x')
      const [bytes] = (await once(socket, 'data')) as [Buffer]
      return String(bytes) === 'x'
    },
  }
}

async function openUdp(t: TestContext, number: number): Promise<Echo> {
  const socket = createSocket('udp4')
  t.after(() => socket.close())
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  return {
    port,
    is_open: () => true,
    async isEchoed() {
      socket.send('x', number, RAW_HOST)
      const [bytes] = (await once(socket, 'message')) as [Buffer]
      return String(bytes) === 'x'
    },
  }
}

/** Accepts any upgrade, and returns every byte after it. */
async function startUpgradeServer(t: TestContext): Promise<number> {
  return listening(
    t,
    createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
        socket.pipe(socket)
      })
    }),
  )
}

async function startTcpServer(t: TestContext): Promise<number> {
  return listening(
    t,
    createServer((socket) => {
      socket.on('error', () => {})
      socket.pipe(socket)
    }),
  )
}

async function listening(t: TestContext, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as { port: number }).port
}

async function startUdpServer(t: TestContext): Promise<number> {
  const server = createSocket('udp4')
  server.on('message', (datagram, { address, port }) => server.send(datagram, port, address))
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return server.address().port
}
