// The time limits of connections of HTTP/2, with ticks that the test makes.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createServer } from 'node:tls'
import { Connections } from '../../../src/edge/http/connections.ts'
import type { Exchange } from '../../../src/edge/http/exchange.ts'
import { beginResponse, sendResponse } from '../../../src/edge/http/response.ts'
import { ticksOf } from '../../../src/edge/http/ticks.ts'
import { Http2Sessions } from '../../../src/edge/http2/sessions.ts'
import {
  DRAIN_MS_MAX,
  HEADER_MS_MAX,
  HTTP2_STREAM_WINDOW_BYTES,
  KEEP_ALIVE_MS_MAX,
  REQUEST_IDLE_MS_MAX,
} from '../../../src/edge/limits.ts'
import { ConnectionLimits } from '../../../src/edge/presence/connection-limits.ts'
import { HTTPS_PROTOCOLS } from '../../../src/edge/tls/tls.ts'
import { makeAuthority } from '../../support/certificates.ts'
import { until } from '../../support/until.ts'
import { begin, read } from './client.ts'

const LARGE_BYTES = 1024 * 1024

async function world(t: TestContext) {
  const exchanges: Exchange[] = []
  const checks: (() => void)[] = []
  const ticks = { now: 0, date_line: '', on: (check: () => void) => void checks.push(check), close: () => {} }
  const connections = new Connections({
    ticks,
    refuse: { request: () => assert.fail(), socket: () => assert.fail() },
    bodies: { take: () => assert.fail(), drop: () => {}, refuseSlow: () => false },
    onRequest: (exchange) => {
      exchanges.push(exchange)
      const path = exchange.head.target
      if (path === '/large')
        sendResponse(exchange, 200, ['content-length', String(LARGE_BYTES)], Buffer.alloc(LARGE_BYTES))
      else if (path === '/small') sendResponse(exchange, 200, ['content-length', '2'], Buffer.from('ok'))
      else if (path === '/begun') beginResponse(exchange, 200, [])
    },
  })
  const sessions = new Http2Sessions({ shared: null, ticks, connections })
  const limits = new ConnectionLimits(100)
  const { cert, key } = await (await makeAuthority()).issue(['localhost'])
  const sockets: Socket[] = []
  const server = createServer({ cert, key, ALPNProtocols: HTTPS_PROTOCOLS, allowHalfOpen: true }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    sessions.serve(socket, limits.admit('http', socket)!)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    exchanges,
    limits,
    sessions,
    /** Lets this time pass, and gives the event loop a turn at each tick. */
    pass: async (ms: number) => {
      for (let tick = 0; tick < ticksOf(ms); tick++) {
        ticks.now++
        for (const check of checks) check()
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
    open: async (settings = {}): Promise<ClientHttp2Session> => {
      const { port } = server.address() as AddressInfo
      const session = connect(`https://localhost:${port}`, { rejectUnauthorized: false, settings })
      session.on('error', () => {})
      t.after(() => session.destroy())
      await once(session, 'remoteSettings')
      return session
    },
  }
}

/** Sends a request whose response is not read. */
function ask(session: ClientHttp2Session, path: string, has_body = false): ClientHttp2Stream {
  return begin(session, { ':path': path, ':method': has_body ? 'POST' : 'GET' }, has_body)
}

test('a connection ends without a first request, and some time after its last one', async (t) => {
  const { open, pass } = await world(t)
  const [silent, used] = [await open(), await open()]
  const goaways: number[] = []
  for (const session of [silent, used]) session.on('goaway', (code: number) => goaways.push(code))
  assert.equal((await read(ask(used, '/small'))).body.toString(), 'ok')
  await pass(HEADER_MS_MAX)
  assert.deepEqual([silent.closed, used.closed], [false, false])
  await pass(1_000)
  await until('the silent connection ends', () => silent.destroyed)
  await pass(KEEP_ALIVE_MS_MAX - HEADER_MS_MAX - 1_000)
  assert.equal(used.closed, false)
  await pass(1_000)
  await until('the used connection ends', () => used.destroyed)
  assert.deepEqual(goaways, [constants.NGHTTP2_NO_ERROR, constants.NGHTTP2_NO_ERROR])
})

test('a client that never opens its window holds what the edge wrote, until the time limit', async (t) => {
  const { open, pass, limits, exchanges } = await world(t)
  const session = await open({ initialWindowSize: 0 })
  const streams = [ask(session, '/large'), ask(session, '/large')]
  const ended = Promise.all(streams.map((stream) => read(stream)))
  await until('both requests arrive', () => exchanges.length === 2)
  await pass(REQUEST_IDLE_MS_MAX)
  assert.equal(limits.open_count, 3)
  await pass(1_000)
  for (const { error } of await ended) assert.match(error ?? '', /INTERNAL_ERROR/)
  await until('their slots are free', () => limits.open_count === 1)
})

test('while a client takes bytes of one response, the others wait for their turn', async (t) => {
  const { open, pass } = await world(t)
  const session = await open()
  const waiting = ask(session, '/large')
  await once(waiting, 'response')
  for (let round = 0; round < 3; round++) {
    await pass(REQUEST_IDLE_MS_MAX - 1_000)
    assert.equal((await read(ask(session, '/small'))).body.toString(), 'ok')
  }
  assert.equal((await read(waiting)).body.length, LARGE_BYTES)
})

test('a request without a response ends after the time limit, and one whose response is written does not end early', async (t) => {
  const { open, pass } = await world(t)
  const session = await open()
  const silent = read(ask(session, '/silent'))
  const begun = ask(session, '/begun')
  await once(begun, 'response')
  await pass(REQUEST_IDLE_MS_MAX + 1_000)
  assert.match((await silent).error ?? '', /INTERNAL_ERROR/)
  await until('the response that never continues is reset', () => begun.destroyed)
  assert.equal(begun.rstCode, constants.NGHTTP2_INTERNAL_ERROR)
})

test('a body after the whole response is read for a while, and then stopped without an error', async (t) => {
  const { open, pass } = await world(t)
  const session = await open()
  const stream = ask(session, '/small', true)
  stream.write(Buffer.alloc(1_000))
  await once(stream, 'response')
  stream.resume()
  await once(stream, 'end')
  assert.equal(stream.destroyed, false)
  await pass(DRAIN_MS_MAX + 2_000)
  await until('the stream is closed', () => stream.destroyed)
  assert.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR)
})

test('a body that nothing takes holds no more than a window of it', async (t) => {
  const { open, exchanges } = await world(t)
  const session = await open()
  const stream = ask(session, '/silent', true)
  let sent = 0
  const CHUNK = Buffer.alloc(64 * 1024)
  const pour = (): void => {
    if (!stream.destroyed) stream.write(CHUNK, () => pour())
    sent += CHUNK.length
  }
  pour()
  await until('the window is full', () => exchanges[0]?.connection.socket.isPaused() === true)
  await new Promise((resolve) => setTimeout(resolve, 200))
  const held = exchanges[0]!.connection.pending!.length
  assert.ok(held + HTTP2_STREAM_WINDOW_BYTES <= HTTP2_STREAM_WINDOW_BYTES * 2, `${held}`)
  assert.ok(sent <= HTTP2_STREAM_WINDOW_BYTES * 2 + 2 * CHUNK.length, `${sent}`)
})

test('a connection that is closed ends its open streams first, and takes no further one', async (t) => {
  const { open, sessions, exchanges, pass } = await world(t)
  const session = await open()
  const stream = ask(session, '/begun')
  await once(stream, 'response')
  const goaway = once(session, 'goaway')
  sessions.retire()
  await goaway
  assert.equal(session.destroyed, false)
  exchanges[0]!.connection.socket.write(Buffer.from('rest'))
  exchanges[0]!.connection.socket.end()
  assert.equal((await read(stream)).body.toString(), 'rest')
  await pass(DRAIN_MS_MAX + 1_000)
  await until('the connection ends', () => session.destroyed)
})
