import assert from 'node:assert'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { until } from '../support/until.ts'
import { errorOf, rawClient, startBackend, startTestEdge, type TestEdge } from './platform.ts'

type HttpResponse = { status: number; headers: IncomingMessage['headers']; body: string }

async function ask(edge: Pick<TestEdge, 'port'>, options: RequestOptions, body = ''): Promise<HttpResponse> {
  const req = request({ host: '127.0.0.1', port: edge.port, ...options })
  req.end(body)
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  return { status: res.statusCode ?? 0, headers: res.headers, body: await text(res) }
}

test('the main domain serves the matchmaker under two path segments, and the api elsewhere', async (t) => {
  const api = await startBackend(t, 'api')
  const matchmaker = await startBackend(t, 'matchmaker')
  const edge = await startTestEdge(t, { api_port: api.port, matchmaker_port: matchmaker.port })
  const cases = {
    '/': 'api',
    '/cloud/games': 'api',
    '/matchmaker': 'matchmaker',
    '/matchmaker/lobbies/find': 'matchmaker',
    '/matchmaker?a=b': 'matchmaker',
    '/v1/lobbies/list': 'matchmaker',
    '/v10/lobbies': 'api',
    '/matchmakers': 'api',
    '//v1': 'api',
  }
  for (const host of ['localhost', 'LOCALHOST:8000', 'localhost.', '127.0.0.1', `[::1]:${edge.port}`]) {
    for (const [path, name] of Object.entries(cases)) {
      const response = await ask(edge, { path, headers: { host } })
      assert.deepEqual([response.status, response.body], [200, name], `${host} ${path}`)
    }
  }
  assert.equal(matchmaker.seen.find((item) => item.url.includes('?'))?.url, '/matchmaker?a=b')
})

test('method, body, query and headers arrive unchanged, and only the edge sets the client address', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const headers = {
    host: 'localhost',
    'x-forwarded-for': '6.6.6.6',
    x_forwarded_for: '6.6.6.6',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'https',
    'x-real-ip': '6.6.6.6',
    forwarded: 'for=6.6.6.6',
    'cf-connecting-ip': '6.6.6.6',
    connection: 'x-forwarded-for, x-secret',
    'x-secret': 'of this connection',
    te: 'trailers',
    'x-kept': 'yes',
    'x-ray-id': 'of the client',
    'x-muster-park': 'of the client',
    'x-muster-claim': '1',
    'x-muster-trunk': '1-1',
  }
  const response = await ask(edge, { method: 'PATCH', path: '/a%20b?c=%2F', headers }, 'the body')
  assert.equal(response.status, 200)
  const [seen] = api.seen
  assert.deepEqual([seen?.method, seen?.url, seen?.body], ['PATCH', '/a%20b?c=%2F', 'the body'])
  assert.equal(seen?.headers['x-forwarded-for'], '127.0.0.1')
  assert.equal(seen?.headers['x-forwarded-proto'], 'http')
  assert.equal(seen?.headers['x-kept'], 'yes')
  const kept = [
    'connection',
    'content-length',
    'host',
    'x-forwarded-for',
    'x-forwarded-proto',
    'x-kept',
    'x-muster-edge',
    'x-ray-id',
  ]
  assert.deepEqual(Object.keys(seen?.headers ?? {}).sort(), kept)
  assert.match(String(seen?.headers['x-ray-id']), /^[0-9a-f]{8}-[0-9a-f]{4}-4/)
})

test('requests to a lobby and its responses have no ray; responses of the edge itself have one', async (t) => {
  const red = await startBackend(t, 'red')
  const edge = await startTestEdge(t)
  const host = `${await edge.lobby({ default: red.port })}-default.lobby.local.localhost`
  const response = await ask(edge, { path: '/', headers: { host, 'x-ray-id': 'of the client' } })
  assert.equal(response.body, 'red')
  assert.deepEqual([response.headers['x-ray-id'], red.seen[0]?.headers['x-ray-id']], [undefined, undefined])
  const refused = await ask(edge, { path: '/', headers: { host: `a${host}` } })
  assert.match(String(refused.headers['x-ray-id']), /^[0-9a-f]{8}-[0-9a-f]{4}-4/)
})

test('a trusted proxy may name its client, and the client may not name itself', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port, env: { MUSTER_TRUSTED_PROXIES: '127.0.0.0/8' } })
  await ask(edge, { path: '/', headers: { host: 'localhost', 'x-forwarded-for': '6.6.6.6, 203.0.113.9' } })
  assert.equal(api.seen[0]?.headers['x-forwarded-for'], '203.0.113.9')
})

test('each request of a connection is routed by its own host', async (t) => {
  const api = await startBackend(t, 'api')
  const [red, blue] = [await startBackend(t, 'red'), await startBackend(t, 'blue')]
  const edge = await startTestEdge(t, { api_port: api.port })
  const hostOf = async (port: number) => `${await edge.lobby({ default: port })}-default.lobby.local.localhost`
  const hosts = { red: await hostOf(red.port), blue: await hostOf(blue.port), api: 'localhost' }
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  for (const name of ['red', 'blue', 'api', 'blue', 'red'] as const) {
    const response = await ask(edge, { agent, path: '/', headers: { host: hosts[name] } })
    assert.equal(response.body, name)
  }

  const client = rawClient(t, edge.port)
  const pipelined = ['blue', 'red', 'api', 'red'] as const
  client.write(
    pipelined.map((name) => `POST /${name} HTTP/1.1\r\nHost: ${hosts[name]}\r\nContent-Length: 2\r\n\r\nhi`).join(''),
  )
  const responses = await client.read((bytes) => bytes.split('HTTP/1.1 200').length === 5 && bytes.endsWith('red'))
  assert.deepEqual(responses.match(/^(?:red|blue|api)(?=\r?$|HTTP)/gm) ?? [], pipelined)
  assert.ok(red.seen.every((item) => item.url === '/' || item.url === '/red'))
  assert.ok(blue.seen.every((item) => item.url === '/' || item.url === '/blue'))
})

test('a pipelined request is begun only after the response before it has been sent', async (t) => {
  const release = Promise.withResolvers<void>()
  const started: string[] = []
  const api = await startBackend(t, 'api', (req, res) => {
    started.push(req.url ?? '')
    release.promise.then(() => res.end('done'))
  })
  const edge = await startTestEdge(t, { api_port: api.port })
  const client = rawClient(t, edge.port)
  client.write('GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /2 HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await until('the first request arrives', () => started.length > 0)
  // The round trip of another connection's request gives the second one enough time to arrive wrongly.
  const other = rawClient(t, edge.port)
  other.write('GET /3 HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await until('the other request arrives', () => started.includes('/3'))
  assert.deepEqual(started, ['/1', '/3'])
  release.resolve()
  await client.read((bytes) => bytes.split('done').length === 3)
  assert.deepEqual(started, ['/1', '/3', '/2'])
})

test('a pipelined request that breaks off is refused, and not begun', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const whole = 'GET /whole HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const broken = 'POST /broken HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n'
  const client = rawClient(t, edge.port)
  client.write(`${whole}${broken}`)
  const response = await client.end()
  assert.match(response, /^HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 400 API_BAD_REQUEST\r\n/)
  assert.deepEqual(
    api.seen.map(({ url }) => url),
    ['/whole'],
  )
})

test('an invalid host, two hosts, and a target with another host are refused', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const bad = {
    'no host': 'GET / HTTP/1.1\r\n\r\n',
    'two hosts': 'GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n',
    'an empty host': 'GET / HTTP/1.1\r\nHost:\r\n\r\n',
    'a name beyond ASCII': 'GET / HTTP/1.1\r\nHost: m\xfcster.localhost\r\n\r\n',
    'an underscore': 'GET / HTTP/1.1\r\nHost: a_b.localhost\r\n\r\n',
    'a user': 'GET / HTTP/1.1\r\nHost: me@localhost\r\n\r\n',
    'a path': 'GET / HTTP/1.1\r\nHost: localhost/x\r\n\r\n',
    'a list': 'GET / HTTP/1.1\r\nHost: localhost, localhost\r\n\r\n',
    'an absolute target elsewhere': 'GET http://169.254.169.254/ HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'an authority': 'GET localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'a star': 'OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'another scheme': 'GET file:///etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n',
    CONNECT: 'CONNECT localhost:22 HTTP/1.1\r\nHost: localhost:22\r\n\r\n',
  }
  for (const [what, bytes] of Object.entries(bad)) {
    const client = rawClient(t, edge.port)
    client.write(Buffer.from(bytes, 'latin1'))
    const response = await client.read((all) => /\r\n\r\n\{.*\}$/.test(all))
    const { status, code } = errorOf(response)
    assert.deepEqual([status, code], [400, 'API_BAD_REQUEST'], what)
  }
  const unknown = [
    'example.com',
    'cdn.localhost',
    '10.0.0.1',
    'xn--mster-kva.localhost',
    'lobby.local.localhost',
    'a.localhost',
  ]
  for (const host of unknown) {
    const response = await ask(edge, { path: '/', headers: { host } })
    assert.equal(response.status, 404, host)
    const { code, documentation } = JSON.parse(response.body) as { code: string; documentation: string }
    assert.equal(code, 'API_NOT_FOUND')
    assert.equal(documentation, `http://localhost:${edge.port}/docs/errors/API_NOT_FOUND`)
  }
  assert.equal(api.seen.length, 0)

  const client = rawClient(t, edge.port)
  client.write('GET http://LOCALHOST/x?y HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await client.read((bytes) => bytes.includes('api'))
  assert.equal(api.seen[0]?.url, '/x?y')
})

test('too many, too large and too late headers are refused', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  for (const lines of ['a: b\r\n'.repeat(200), `a: ${'x'.repeat(20_000)}\r\n`]) {
    const client = rawClient(t, edge.port)
    client.write(`GET / HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n`)
    const { status, code } = errorOf(await client.read((all) => all.endsWith('}')))
    assert.deepEqual([status, code], [431, 'API_HEADERS_TOO_LARGE'])
  }
  assert.equal(api.seen.length, 0)
})

test('the refusal of a malformed HEAD has no body, whichever part is malformed', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const broken = [
    'HEAD / HTTP/1.1\r\nHost: localhost\r\nX : y\r\n\r\n',
    'HEAD / HTTP/1.1\r\nHost: localhost\r\nX\n',
    `HEAD / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}`,
    'HEAD / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n',
    'HEAD / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n',
  ]
  for (const bytes of broken) {
    const client = rawClient(t, edge.port)
    client.write(bytes)
    assert.match(await client.end(), /^HTTP\/1\.1 4[03][01] [\s\S]*\r\ncontent-length: \d+\r\n[\s\S]*\r\n\r\n$/)
  }
})

test('a request for a role that is down waits until the role is back', async (t) => {
  const before = await startBackend(t, 'before')
  const edge = await startTestEdge(t, { matchmaker_port: before.port })
  await before.close()
  const body = 'x'.repeat(100_000)
  const response = ask(edge, { method: 'POST', path: '/matchmaker/lobbies/find', headers: { host: 'localhost' } }, body)
  await new Promise((resolve) => setImmediate(resolve))
  const after = await startBackend(t, 'after', undefined, before.port)
  assert.equal((await response).body, 'after')
  assert.deepEqual(
    after.seen.map((item) => item.body.length),
    [body.length],
  )
})

test('a request to a role that stays down, or that ends during the request, is refused with 503', async (t) => {
  let requests = 0
  const api = await startBackend(t, 'api', (req) => {
    requests++
    req.socket.resetAndDestroy()
  })
  const edge = await startTestEdge(t, { api_port: api.port })
  const died = await ask(edge, { method: 'POST', path: '/x', headers: { host: 'localhost' } }, 'a body')
  assert.equal(died.status, 503)
  assert.equal(died.headers['retry-after'], '1')
  assert.equal((JSON.parse(died.body) as { code: string }).code, 'API_NOT_AVAILABLE')
  assert.equal(requests, 1)
  await api.close()
  const down = await ask(edge, { path: '/x', headers: { host: 'localhost' } })
  assert.deepEqual([down.status, down.headers['retry-after']], [503, '1'])
})

test('a response that breaks off breaks off for the client too, and does not look complete', async (t) => {
  const api = await startBackend(t, 'api', (req, res) => {
    if (req.url === '/length') res.writeHead(200, { 'content-length': '100' })
    res.write('a part', () => req.socket.resetAndDestroy())
  })
  const edge = await startTestEdge(t, { api_port: api.port })
  for (const path of ['/length', '/chunked']) {
    const client = rawClient(t, edge.port)
    client.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    const response = await client.end()
    assert.ok(!response.endsWith('\r\n0\r\n\r\n'), response)
  }
})

test('the backend learns at once that a client has disconnected', async (t) => {
  const hung_up = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  const api = await startBackend(t, 'api', (_req, res) => {
    arrived.resolve()
    res.once('close', () => hung_up.resolve())
  })
  const edge = await startTestEdge(t, { api_port: api.port })
  const client = rawClient(t, edge.port)
  client.write('GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await arrived.promise
  client.socket.destroy()
  await hung_up.promise
})

test('neither a large body nor a large response is buffered for a peer that does not read it', async (t) => {
  const SENT_MAX = 64 * 1024 * 1024
  const chunk = Buffer.alloc(64 * 1024)
  let produced = 0
  let stuck: IncomingMessage | undefined
  const api = await startBackend(t, 'api', (req, res) => {
    if (req.method === 'POST') {
      stuck = req
      return
    }
    const produce = () => {
      while (produced < SENT_MAX) {
        produced += chunk.length
        if (!res.write(chunk)) return void res.once('drain', produce)
      }
      res.end()
    }
    produce()
  })
  const edge = await startTestEdge(t, { api_port: api.port })
  const settled = async (value: () => number) => {
    // The value is settled when many polls in a row return the same.
    let [last, same] = [-1, 0]
    await until('the value is settled', () => {
      same = value() === last ? same + 1 : 0
      last = value()
      return same > 40
    })
    return last
  }

  const slow_reader = rawClient(t, edge.port)
  slow_reader.socket.pause()
  slow_reader.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await until('the backend sends bytes', () => produced > 0)
  assert.ok((await settled(() => produced)) < SENT_MAX / 2)

  const uploader = rawClient(t, edge.port)
  uploader.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${SENT_MAX}\r\n\r\n`)
  for (let sent = 0; sent < SENT_MAX; sent += chunk.length) uploader.socket.write(chunk)
  await until('the backend has the request', () => stuck !== undefined)
  await settled(() => uploader.socket.writableLength)
  assert.ok(uploader.socket.writableLength > SENT_MAX / 2)
})

test('a client reads an early response to a body that it is still sending', async (t) => {
  const api = await startBackend(t, 'api', (_req, res) => {
    res.writeHead(413, { 'content-length': '9' })
    res.end('too large')
  })
  const edge = await startTestEdge(t, { api_port: api.port })
  const client = rawClient(t, edge.port)
  client.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500000\r\n\r\n')
  client.write(Buffer.alloc(250_000))
  const response = await client.read((bytes) => bytes.includes('too large'))
  assert.match(response, /^HTTP\/1\.1 413 /)
})

test('after a large upload is refused, the connection announces its close and is not reset', async (t) => {
  const LENGTH = 256 * 1024 * 1024
  const api = await startBackend(t, 'api', (_req, res) => {
    res.writeHead(413, { 'content-length': '9' })
    res.end('too large')
  })
  const edge = await startTestEdge(t, { api_port: api.port })
  const chunk = Buffer.alloc(64 * 1024)
  const upload = async (host: string, framing: string) => {
    const client = rawClient(t, edge.port)
    const { socket } = client
    let error: Error | null = null
    socket.once('error', (cause) => {
      error = cause
    })
    client.write(`PUT / HTTP/1.1\r\nHost: ${host}\r\n${framing}\r\n\r\n`)
    // Sends as fast as possible until the server ends its side.
    let sent = 0
    const send = () => {
      while (sent < LENGTH && !socket.readableEnded && !socket.destroyed) {
        sent += chunk.length
        if (!socket.write(framing.startsWith('T') ? CHUNK : chunk)) return void socket.once('drain', send)
      }
    }
    const CHUNK = Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')])
    send()
    await once(socket, 'end')
    assert.equal(error, null)
    socket.destroy()
    return await client.end()
  }
  for (const framing of [`Content-Length: ${LENGTH}`, 'Transfer-Encoding: chunked']) {
    const by_backend = await upload('localhost', framing)
    assert.match(by_backend, /^HTTP\/1\.1 413 [\s\S]*\r\nConnection: close\r\n[\s\S]*too large$/)
    const by_edge = errorOf(await upload('example.com', framing))
    assert.deepEqual([by_edge.status, by_edge.closes], [404, true])
  }
})

test('the edge does not wait for a body whose 100 Continue it has not sent', async (t) => {
  const edge = await startTestEdge(t)
  const client = rawClient(t, edge.port)
  client.write('POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n')
  const { status, closes } = errorOf(await client.end())
  assert.deepEqual([status, closes], [404, true])
})

/** A process of its own, because timing matters. It responds once a body has begun to arrive, and reads none of it. */
const HASTY_BACKEND = `
const response = 'HTTP/1.1 413 No\\r\\nConnection: close\\r\\nContent-Length: 4\\r\\n\\r\\nno!!'
const server = require('node:net').createServer({ pauseOnConnect: true }, (socket) => {
  socket.on('error', () => {})
  setTimeout(() => socket.end(response, () => socket.destroy()), 2)
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
`

test('the response of a backend that closes without reading the body arrives, however large the body is', async (t) => {
  const ROUNDS = 40
  const body = Buffer.alloc(1_000_000)
  const backend = spawn(process.execPath, ['-e', HASTY_BACKEND], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => backend.kill('SIGKILL'))
  const [port] = await once(backend.stdout, 'data')
  const edge = await startTestEdge(t, { api_port: Number(port) })
  for (let round = 0; round < ROUNDS; round++) {
    const response = await fetch(`http://localhost:${edge.port}/`, { method: 'PUT', body })
    assert.deepEqual([response.status, await response.text()], [413, 'no!!'])
  }
})

test('100 Continue is sent once the backend is ready for the body', async (t) => {
  const api = await startBackend(t, 'api')
  const edge = await startTestEdge(t, { api_port: api.port })
  const client = rawClient(t, edge.port)
  client.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n')
  await client.read((bytes) => bytes === 'HTTP/1.1 100 Continue\r\n\r\n')
  client.write('hi')
  await client.read((bytes) => bytes.includes('api'))
  const unrouted = rawClient(t, edge.port)
  unrouted.write('POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n')
  assert.equal(errorOf(await unrouted.read((bytes) => bytes.endsWith('}'))).status, 404)
})
