import assert from 'node:assert'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { readConfig } from '../../src/config/read-config.ts'
import { openContext } from '../../src/context.ts'
import { FIRST_BYTE_MS_MAX, HEADER_CHECK_MS, HEADER_MS_MAX } from '../../src/edge/limits.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { errorOf, insertRawLobby, RAW_HOST, rawClient, startBackend, startTestEdge } from './platform.ts'

test('a head that never ends is refused, and other clients are not affected', async (t) => {
  const SLOW = 200
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const begun = performance.now()
  const slow = Array.from({ length: SLOW }, () => rawClient(t, edge.port))
  for (const client of slow) client.write('GET / HTTP/1.1\r\nHost: localhost\r\nX')
  const silent = rawClient(t, edge.port)
  const drip = setInterval(() => {
    for (const client of slow) if (client.socket.writable) client.write('x')
  }, 500)
  t.after(() => clearInterval(drip))

  const player = rawClient(t, edge.port)
  player.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await player.read((bytes) => bytes.endsWith('api'))

  for (const response of await Promise.all(slow.map((client) => client.end()))) {
    const { status, code, closes } = errorOf(response)
    assert.deepEqual([status, code, closes], [408, 'API_REQUEST_TIMEOUT', true])
  }
  await silent.end()
  // No upper bound: the machine may be busy, and without the limit the connections would never have ended.
  assert.ok(performance.now() - begun >= HEADER_MS_MAX - HEADER_CHECK_MS)
  assert.equal(api.seen.length, 1)
})

test('a raw connection without a byte is closed, and one that has carried bytes may be silent', async (t) => {
  const lobby = await startLobby(t, () => {})
  const edge = await startTestEdge(t)
  const { number } = await edge.raw('tcp', lobby.port)
  const [silent, begun] = [rawClient(t, number, RAW_HOST), rawClient(t, number, RAW_HOST)]
  begun.write('x')
  const start = performance.now()
  const ended = new Promise((resolve) => silent.socket.once('close', resolve))
  await until('both connections reach the lobby', () => lobby.sockets.size === 2)
  await ended
  const took_ms = performance.now() - start
  assert.ok(took_ms >= FIRST_BYTE_MS_MAX - HEADER_CHECK_MS, `after ${took_ms} ms`)
  await until('the lobby sees the close', () => lobby.sockets.size === 1)
  assert.equal(begun.socket.closed, false)
})

test('a raw player who reads nothing slows down the server, and takes no memory of the edge', async (t) => {
  const SLOW = 100
  const BYTES_EACH_MAX = 64 * 1024
  const lobby = await startLobby(t, (socket) => {
    const chunk = Buffer.alloc(64 * 1024)
    const pour = () => {
      while (!socket.destroyed && socket.write(chunk));
    }
    socket.on('drain', pour)
    pour()
  })
  const edge = await startOwnEdge(t)
  const number = await edge.raw(lobby.port)
  const dial = async (): Promise<Socket> => {
    const socket = connect({ port: number, host: RAW_HOST, localAddress: `127.0.4.${1 + (dialled++ % 100)}` })
    socket.on('error', () => {})
    t.after(() => socket.destroy())
    await once(socket, 'connect')
    return socket
  }
  let dialled = 0
  // The first connections load code and buffers, which count once.
  for (let count = 0; count < 20; count++) await dial()
  await rest(lobby)
  const before = await edge.held()
  for (let count = 0; count < SLOW; count++) await dial()
  await rest(lobby)
  const each = ((await edge.held()) - before) / SLOW
  t.diagnostic(`${Math.round(each / 1024)} KB for each`)
  assert.ok(each < BYTES_EACH_MAX, `${each} bytes for each`)

  const player = await dial()
  let got = 0
  player.on('data', ({ length }) => {
    got += length
  })
  await until('a player who reads receives bytes', () => got > 16 * 1024 * 1024)
})

const QUIET_MS = 500

/** Resolves when no byte moves any more: all buffers on the way are full. */
async function rest({ written }: { written: () => number }): Promise<void> {
  let before = -1
  while (written() !== before) {
    before = written()
    await sleep(QUIET_MS)
  }
}

async function startLobby(t: TestContext, onConnection: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    onConnection(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const written = () =>
    [...sockets].reduce((sum, { bytesWritten, writableLength }) => sum + bytesWritten - writableLength, 0)
  return { port: (server.address() as AddressInfo).port, sockets, written }
}

/** Starts an edge as a process of its own, so that its memory can be measured. */
async function startOwnEdge(t: TestContext) {
  const data_dir = await mkdtemp(join(tmpdir(), 'muster-edge-'))
  const env = {
    MUSTER_DATA: data_dir,
    DATABASE_URL: await createDatabase(t),
    MUSTER_EDGE_HTTP_PORT: '0',
    MUSTER_EDGE_HTTPS_PORT: '0',
    MUSTER_LOG_LEVEL: 'silent',
  }
  const ctx = await openContext(readConfig(env))
  const child = spawn(process.execPath, ['--expose-gc', join(import.meta.dirname, 'small-edge.ts')], {
    stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
    env,
  })
  t.after(async () => {
    child.stdin!.end()
    await once(child, 'exit')
    await ctx.close()
    await rm(data_dir, { recursive: true, force: true })
  })
  await once(child.stdout!, 'data')
  return {
    raw: async (port: number) => (await insertRawLobby(ctx, 'tcp', port)).number,
    /** Bytes in use after a garbage collection. */
    held: async (): Promise<number> => {
      child.send('held')
      const [bytes] = await once(child, 'message')
      return bytes as number
    },
  }
}
