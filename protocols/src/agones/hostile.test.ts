// A server that sends anything: the process stays, and the lobby beside it is untouched.
import assert from 'node:assert/strict'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { ProtocolSockets } from '../serve.ts'
import { CALLS } from './calls.ts'
import { startEndpoint } from './test-endpoint.ts'

const REQUESTS = 2000
const AT_ONCE = 20
const HEAP_GROWTH_BYTES_MAX = 100 * 1024 * 1024
const SEED = 20_260_701

/** Numbers from 0 to 1, the same in each run (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const random = randomNumbers(SEED)
const below = (limit: number) => Math.floor(random() * limit)
const pick = <T>(all: readonly T[]): T => all[below(all.length)]!
const bytes = (length: number) => Buffer.from(Array.from({ length }, () => below(256)))

function randomJson(depth = 0): unknown {
  const scalars = [null, true, -1, 1.5, 2 ** 60, '9223372036854775807', 'x'.repeat(below(5000)), 'test0', '', 'players']
  if (depth > 2 || random() < 0.5) return pick(scalars)
  if (random() < 0.2) return Array.from({ length: below(5) }, () => randomJson(depth + 1))
  const names = ['key', 'value', 'seconds', 'name', 'count', 'capacity', 'countDiff', 'values', 'playerID', '__proto__']
  return Object.fromEntries(Array.from({ length: below(6) }, () => [pick(names), randomJson(depth + 1)]))
}

/** All but the one that ends the server, so that later ones still meet it. */
const ROUTES = [
  ...CALLS.map(({ verb, path }) => `${verb} ${path.replace('{name}', 'players').replace('{playerID}', '%00')}`),
  'POST /health',
  'GET /watch/gameserver',
  'GET /%',
  'GET //',
  'OPTIONS *',
].filter((route) => route !== 'POST /shutdown')
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD']

/** Sends bytes, reads a little, and leaves, sometimes in the middle. */
function sendRaw(port: number, content: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket: Socket = connect(port, '127.0.0.1')
    const leave = setTimeout(() => socket.destroy(), 20)
    socket.on('error', () => undefined)
    socket.on('data', () => random() < 0.5 && socket.destroy())
    socket.on('close', () => {
      clearTimeout(leave)
      resolve()
    })
    socket.write(content)
  })
}

/** Some of them mean something to each call, so that states and players change meanwhile. */
function randomBody(): Buffer {
  if (random() < 0.2) return bytes(below(300))
  const meant = {
    key: 'a',
    value: `player-${below(100)}`,
    seconds: below(3),
    countDiff: 1,
    playerID: `player-${below(9)}`,
  }
  return Buffer.from(JSON.stringify(random() < 0.3 ? meant : randomJson()))
}

function sendRest(port: number): Promise<void> {
  const body = randomBody()
  const length = random() < 0.9 ? body.length : below(100_000)
  const upgrade = random() < 0.1 ? 'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n' : ''
  const [verb, path] = pick(ROUTES).split(' ')
  const method = random() < 0.2 ? pick(METHODS) : verb
  const head = `${method} ${path} HTTP/1.1\r\nhost: x\r\n${upgrade}content-length: ${length}\r\n\r\n`
  return sendRaw(port, Buffer.concat([Buffer.from(head), body]))
}

function sendGrpc(port: number): Promise<void> {
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  return new Promise((resolve) => {
    session.on('close', resolve)
    const { method } = pick(CALLS)
    const name = pick([method.name, 'Health', 'WatchGameServer', 'Nothing', '..', method.name])
    const stream = session.request({
      ':method': pick(['POST', 'POST', 'POST', 'GET']),
      ':path': `/${method.parent.typeName}/${name === 'Shutdown' ? 'Ready' : name}`,
      'content-type': pick([
        'application/grpc',
        'application/grpc+proto',
        'application/grpc+json',
        'application/grpc-web',
      ]),
      'grpc-encoding': pick(['identity', 'gzip', 'none']),
      'grpc-timeout': pick(['1S', '0n', '99999999H', 'x']),
      te: 'trailers',
    })
    stream.on('error', () => undefined)
    stream.on('close', () => session.destroy())
    setTimeout(() => session.destroy(), 20)
    const message = bytes(below(200))
    const frame = Buffer.concat([Buffer.alloc(5), message])
    frame[0] = pick([0, 0, 0, 1, 255])
    frame.writeUInt32BE(pick([message.length, message.length, 0, 0xffff_ffff, 70_000]), 1)
    stream.write(frame)
    if (random() < 0.5) stream.end()
  })
}

function sendGarbage(port: number): Promise<void> {
  const beginning = pick(['', 'PRI', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'GET / HTTP/1.1\r\n', '\x16\x03\x01'])
  return sendRaw(port, Buffer.concat([Buffer.from(beginning, 'latin1'), bytes(below(2000))]))
}

test(`${REQUESTS} hostile requests end nothing, and do not touch the lobby beside`, { timeout: 120_000 }, async (t) => {
  const sockets = new ProtocolSockets()
  const hostile = await startEndpoint(t, { sockets })
  const beside = await startEndpoint(t, { sockets })
  const faults: unknown[] = []
  const onFault = (error: unknown) => faults.push(error)
  process.on('unhandledRejection', onFault)
  t.after(() => process.off('unhandledRejection', onFault))

  const heap = process.memoryUsage().heapUsed
  for (let sent = 0; sent < REQUESTS; sent += AT_ONCE)
    await Promise.all(
      Array.from({ length: AT_ONCE }, () => pick([sendRest, sendRest, sendGrpc, sendGarbage])(hostile.port)),
    )
  assert.ok(process.memoryUsage().heapUsed - heap < HEAP_GROWTH_BYTES_MAX, 'the heap has grown')

  assert.deepEqual(faults, [])
  for (const call of ['ready', 'setClosed true', 'setClosed false', 'setPlayers ', 'setState'])
    assert.ok(hostile.lobby.calls.includes(call), `no request has led to ${call}`)
  assert.deepEqual(beside.lobby.calls, [])
  assert.deepEqual(beside.lobby.reports.length, 1)
  for (const { url } of [hostile, beside]) assert.equal((await fetch(`${url}/gameserver`)).status, 200)
  const state = JSON.stringify(hostile.lobby.state)
  assert.ok(state === 'null' || Buffer.byteLength(state) <= 16 * 1024)
  assert.deepEqual(
    hostile.lobby.lines.filter((line) => line.startsWith('agones: a call failed')),
    [],
  )
})
