import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants } from 'node:http2'
import { request as requestHttps } from 'node:https'
import { buffer, text } from 'node:stream/consumers'
import { test } from 'node:test'
import { HTTP2_STREAM_WINDOW_BYTES, HTTP2_STREAMS_MAX, STOP_MS_MAX } from '../../../src/edge/limits.ts'
import { findProgram, lacking } from '../../run/optional-programs.ts'
import { until } from '../../support/until.ts'
import { startBackend, startTestEdge, type TestEdge } from '../platform.ts'
import { ask, begin, connectHttp2, read } from './client.ts'
import {
  CANCEL,
  DATA,
  END_HEADERS,
  type Fields,
  FrameClient,
  frame,
  headers,
  NO_ERROR,
  RST_STREAM,
  requestFields,
  u32,
} from './frames.ts'

type Headers = Record<string, string | string[]>
type Compared = { status: number; headers: Record<string, unknown>; body: string }

/** Headers about one connection, and those that differ with each response. */
const UNCOMPARED = ['date', 'connection', 'keep-alive', 'transfer-encoding', 'x-ray-id', ':status']

function comparable(status: number, headers: object, body: Buffer): Compared {
  const compared = Object.entries(headers).filter(([name]) => !UNCOMPARED.includes(name))
  // A ray id is another one for each request.
  const text = body.toString('latin1').replace(/"ray_id":"[^"]*"/, '')
  return { status, headers: Object.fromEntries(compared), body: text }
}

/** The same request over HTTP/1.1 and TLS. */
async function askHttp1(
  edge: TestEdge,
  host: string,
  asked: { method: string; path: string; headers?: Headers; body?: string },
) {
  const { method, path, headers = {}, body = '' } = asked
  const req = requestHttps({
    ...{ host: '127.0.0.1', port: edge.https_port, servername: host, rejectUnauthorized: false, agent: false },
    ...{ method, path, headers: { host: `${host}:${edge.https_port}`, ...headers } },
  })
  req.end(body)
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  return comparable(res.statusCode ?? 0, res.headers, await buffer(res))
}

test('a site over HTTP/2 is the same as over HTTP/1.1', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const large = Buffer.from(Array.from({ length: 700_000 }, (_, index) => index % 251))
  const files = { 'index.html': '<title>puddle</title>', 'text.js': 'abc '.repeat(2_000), 'large.bin': large }
  await game.deploy(await game.site(files))
  const host = 'puddle.cdn.localhost'
  const session = await connectHttp2(t, edge.https_port, host)
  const { etag } = (await ask(session, { ':path': '/text.js' })).headers
  const cases: { method?: string; path: string; headers?: Headers }[] = [
    { path: '/' },
    { path: '/', method: 'HEAD' },
    { path: '/text.js' },
    { path: '/text.js', headers: { 'accept-encoding': 'gzip, deflate, br' } },
    { path: '/text.js', headers: { 'accept-encoding': 'gzip' } },
    { path: '/text.js', headers: { 'if-none-match': String(etag) } },
    { path: '/text.js', headers: { range: 'bytes=10-19' } },
    { path: '/large.bin' },
    { path: '/large.bin', method: 'HEAD' },
    { path: '/large.bin', headers: { range: 'bytes=300000-500000' } },
    { path: '/large.bin', headers: { range: 'bytes=900000-' } },
    { path: '/.well-known/muster.json' },
    { path: '/missing' },
    { path: '/%zz' },
    { path: '/', method: 'POST' },
    { path: '/', method: 'OPTIONS' },
  ]
  for (const { method = 'GET', path, headers = {} } of cases) {
    const got = await ask(session, { ':method': method, ':path': path, ...headers })
    const expected = await askHttp1(edge, host, { method, path, headers })
    assert.deepEqual(
      comparable(got.status, got.headers, got.body),
      expected,
      `${method} ${path} ${JSON.stringify(headers)}`,
    )
    assert.equal(got.error, null)
  }
})

test('a call over HTTP/2 reaches the role as HTTP/1.1', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const session = await connectHttp2(t, edge.https_port)
  const known = { cookie: ['a=1', 'b=2; c=3'], 'x-kept': 'yes', te: 'trailers', 'x-forwarded-for': '6.6.6.6' }
  const bodies = ['', 'short', 'x'.repeat(70_000), 'y'.repeat(1_000_000)]
  for (const body of bodies) {
    for (const length of [{ 'content-length': String(body.length) }, {}] as Headers[]) {
      const headers = { ':method': 'POST', ':path': '/cloud/games?a=b', ...known, ...length }
      const { status, body: response } = await ask(session, headers, body)
      assert.deepEqual([status, response.toString()], [200, 'api'])
    }
  }
  await ask(session, { ':method': 'HEAD', ':path': '/cloud/games' })
  assert.equal((await ask(session, { ':method': 'POST', ':path': '/', expect: '100-continue' }, 'abc')).status, 200)
  // The edge has also asked for a trunk, which this backend does not open.
  const seen = api.seen.filter(({ headers }) => headers.upgrade === undefined)
  assert.deepEqual(
    seen.map(({ body }) => body),
    [...bodies.flatMap((body) => [body, body]), '', 'abc'],
  )
  for (const { headers, url } of seen.slice(0, -2)) {
    assert.equal(url, '/cloud/games?a=b')
    assert.equal(headers.host, `localhost:${edge.https_port}`)
    assert.equal(headers.cookie, 'a=1; b=2; c=3')
    assert.equal(headers['x-forwarded-for'], '127.0.0.1')
    assert.equal(headers['x-forwarded-proto'], 'https')
    assert.equal(headers['x-kept'], 'yes')
    assert.equal(headers.te, undefined)
    assert.ok(headers['x-ray-id'])
  }
})

test('responses of a backend arrive as they are, and a broken one does not look complete', async (t) => {
  const handler = (req: IncomingMessage, res: ServerResponse): void => {
    res.setHeader('set-cookie', ['a=1', 'b=2'])
    if (req.url === '/chunked') {
      res.write('one ')
      res.end('two')
    } else if (req.url === '/broken' || req.url === '/broken-length') {
      if (req.url === '/broken-length') res.setHeader('content-length', '100')
      res.write('one ')
      setTimeout(() => res.destroy(), 50)
    } else if (req.url === '/twice') {
      req.socket.end('HTTP/1.1 200 OK\r\nETag: a\r\nETag: b\r\nContent-Length: 2\r\n\r\nok')
    } else if (req.url === '/status') {
      req.socket.end('HTTP/1.1 799 Odd\r\nContent-Length: 2\r\n\r\nok')
    } else if (req.url === '/hints') {
      res.writeEarlyHints({ link: '</a.css>; rel=preload' })
      res.end('ok')
    } else res.writeHead(204).end()
  }
  const api = await startBackend(t, 'api', handler)
  const edge = await startTestEdge(t, { api_port: api.port })
  const session = await connectHttp2(t, edge.https_port)
  const get = (path: string) => ask(session, { ':path': path })
  const chunked = await get('/chunked')
  assert.deepEqual([chunked.status, chunked.body.toString(), chunked.error], [200, 'one two', null])
  assert.deepEqual(chunked.headers['set-cookie'], ['a=1', 'b=2'])
  assert.deepEqual([chunked.headers.connection, chunked.headers['transfer-encoding']], [undefined, undefined])
  for (const path of ['/broken', '/broken-length']) {
    const { body, error } = await get(path)
    assert.equal(body.toString(), 'one ')
    assert.match(error ?? '', /INTERNAL_ERROR/, path)
  }
  assert.equal((await get('/twice')).body.toString(), 'ok')
  assert.match((await get('/status')).error ?? '', /INTERNAL_ERROR/)
  assert.equal((await get('/hints')).body.toString(), 'ok')
  assert.deepEqual([(await get('/none')).status, (await get('/none')).error], [204, null])
})

test('many streams run at once, and a slow one does not stop the others', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  await game.deploy(await game.site({ 'large.bin': Buffer.alloc(2_000_000, 1), 'small.bin': Buffer.alloc(4_096, 2) }))
  const session = await connectHttp2(t, edge.https_port, 'puddle.cdn.localhost')
  const slow = begin(session, { ':path': '/large.bin' })
  await once(slow, 'response')
  const all = await Promise.all(
    Array.from({ length: HTTP2_STREAMS_MAX - 1 }, () => ask(session, { ':path': '/small.bin' })),
  )
  assert.deepEqual(new Set(all.map(({ body }) => body.length)), new Set([4_096]))
  assert.equal((await read(slow)).body.length, 2_000_000)
})

test('a client that leaves is noticed by the backend, and a backend that does not read stops the client', async (t) => {
  let [aborted, received] = [0, 0]
  const open: IncomingMessage[] = []
  const api = await startBackend(t, 'api', (req, res) => {
    req.on('aborted', () => aborted++)
    req.on('error', () => {})
    open.push(req)
    if (req.url === '/unread') return
    req.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    req.on('end', () => res.end('complete'))
  })
  const edge = await startTestEdge(t, { api_port: api.port })
  for (const length of [[['content-length', '1000000']], []] as const) {
    for (const code of [CANCEL, NO_ERROR]) {
      const [before, read_before] = [aborted, received]
      // Node's own client ends a body before it resets the stream.
      const client = await FrameClient.connect(t, edge.https_port)
      const fields: Fields = [...requestFields('POST', '/objects/x'), ...length]
      client.write(headers(1, fields, END_HEADERS), frame(DATA, 0, 1, Buffer.alloc(16_000)))
      await until('the body arrives', () => received === read_before + 16_000)
      client.write(frame(RST_STREAM, 0, 1, u32(code)))
      await until('the backend sees the end', () => aborted === before + 1)
    }
  }
  assert.equal(open.filter(({ complete }) => complete).length, 0)

  const session = await connectHttp2(t, edge.https_port)
  const CHUNK = Buffer.alloc(256 * 1024)
  const unread = begin(session, { ':method': 'PUT', ':path': '/unread' }, true)
  let sent = 0
  const pour = (): void => {
    unread.write(CHUNK, (error) => {
      if (error != null) return
      sent += CHUNK.length
      pour()
    })
  }
  pour()
  // The buffers of both sockets on the way to the backend, and one window.
  const SYSTEM_BUFFERS_BYTES_MAX = 16 * 1024 * 1024
  let before = -1
  await until('the client is stopped', async () => {
    const is_still = sent === before
    before = sent
    await new Promise((resolve) => setTimeout(resolve, 300))
    return is_still
  })
  assert.ok(sent < SYSTEM_BUFFERS_BYTES_MAX + HTTP2_STREAM_WINDOW_BYTES, `${sent}`)
  assert.equal((await ask(session, { ':path': '/', ':method': 'POST' }, 'x')).body.toString(), 'complete')
  unread.close()
})

test('requests to a lobby count as a connection of the player while the connection is open', async (t) => {
  const lobby = await startBackend(t, 'lobby')
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ game: lobby.port })
  const session = await connectHttp2(t, edge.https_port, `${lobby_id}-game.lobby.local.localhost`)
  assert.equal((await ask(session, { ':path': '/state' })).body.toString(), 'lobby')
  assert.equal((await ask(session, { ':path': '/state', ':method': 'POST' }, 'move')).body.toString(), 'lobby')
  const count = async (): Promise<number> => {
    const rows = await edge.ctx.db
      .selectFrom('lobby_connections')
      .select('connection_count')
      .where('lobby_id', '=', lobby_id)
      .execute()
    return rows[0]?.connection_count ?? 0
  }
  await until('the edge reports one connection', async () => (await count()) === 1)
  session.close()
  await until('the edge reports none', async () => (await count()) === 0)
})

test('an edge that stops ends open streams first', async (t) => {
  let respond = (): void => {}
  const api = await startBackend(t, 'api', (_req, res) => {
    res.write('begun ')
    respond = () => void res.end('ended')
  })
  const edge = await startTestEdge(t, { api_port: api.port })
  const session = await connectHttp2(t, edge.https_port)
  const stream = begin(session, { ':path': '/' })
  await once(stream, 'response')
  const goaway = once(session, 'goaway')
  const begun = performance.now()
  const stopped = edge.role.stop({ end_lobbies: false })
  const [code] = (await goaway) as [number]
  assert.equal(code, constants.NGHTTP2_NO_ERROR)
  respond()
  assert.equal((await read(stream)).body.toString(), 'begun ended')
  await stopped
  assert.ok(performance.now() - begun < 10 * STOP_MS_MAX)
})

test('curl gets a page by HTTP/2', async (t) => {
  const missing = lacking('curl')
  if (missing !== null) {
    t.skip(missing)
    return
  }
  const curl = findProgram('curl')!
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  await game.deploy(await game.site({ 'index.html': '<title>puddle</title>' }))
  const host = 'puddle.cdn.localhost'
  const args = ['-sk', '--http2', '--resolve', `${host}:${edge.https_port}:127.0.0.1`, '-w', ' %{http_version}']
  const child = spawn(curl, [...args, `https://${host}:${edge.https_port}/`], { stdio: ['ignore', 'pipe', 'inherit'] })
  assert.equal(await text(child.stdout), '<title>puddle</title> 2')
})
