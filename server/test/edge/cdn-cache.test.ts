// A cache in front of the edge stores responses by host, path and the headers that Vary names. So no other part of a request
// may influence a response, a path has one spelling, and a response that must not be stored says so.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { get, HOST, type HttpResponse } from './get.ts'
import { rawClient, startTestEdge, type TestEdge } from './platform.ts'

const RUNS = 150
const TEXT = `// ${'a line of code\n'.repeat(200)}`

/** A response without the members that depend on time. */
function kept({ status, headers, body }: HttpResponse): unknown {
  const { date: _, 'x-ray-id': ray_id, ...rest } = headers
  return { status, headers: rest, body: body.toString('latin1').replaceAll(String(ray_id), 'RAY') }
}

async function startSite(t: TestContext): Promise<TestEdge> {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const files = { 'index.html': '<h1>puddle</h1>', 'main.js': TEXT, 'small.bin': '0123456789', 'packed.txt.br': 'x' }
  await game.deploy(await game.site(files))
  const other = await edge.game('lake')
  await other.deploy(await other.site({ 'index.html': '<h1>lake</h1>', 'main.js': 'lake' }))
  return edge
}

/** Headers that select the client or the form. Caches handle them: by the key, by Vary, or by forwarding the request. */
const KEYED = new Set([
  ...[
    'host',
    'accept-encoding',
    'authorization',
    'range',
    'if-range',
    'if-match',
    'if-none-match',
    'expect',
    'upgrade',
  ],
  ...['connection', 'content-length', 'transfer-encoding', 'te', 'trailer', 'keep-alive', 'proxy-connection'],
])
const FAMOUS = {
  'x-forwarded-host': 'evil.example',
  'x-forwarded-proto': 'https',
  'x-forwarded-scheme': 'nothttps',
  'x-forwarded-port': '1337',
  'x-forwarded-for': '6.6.6.6',
  'x-forwarded-prefix': '/evil',
  forwarded: 'host=evil.example;proto=https',
  'x-host': 'evil.example',
  'x-original-url': '/small.bin',
  'x-rewrite-url': '/small.bin',
  'x-original-host': 'lake.cdn.localhost',
  'x-http-method-override': 'POST',
  'x-method-override': 'HEAD',
  accept: 'application/json',
  'accept-language': 'de',
  origin: 'http://evil.example',
  referer: 'http://evil.example/',
  cookie: 'a=b; muster_session=x',
  'user-agent': '<script>alert(1)</script>',
  'cache-control': 'no-cache',
  pragma: 'no-cache',
  'x-middleware-prefetch': '1',
  'x-http-host-override': 'evil.example',
}

test('only parts of a request that caches distinguish influence a response', async (t) => {
  const edge = await startSite(t)
  const paths = ['/', '/main.js', '/small.bin', '/.well-known/muster.json', '/nothing', '/%ff', '/packed.txt']
  const plain = new Map<string, unknown>()
  for (const path of paths) plain.set(path, kept(await get(edge, path)))
  for (const path of paths) {
    for (const [name, value] of Object.entries(FAMOUS)) {
      assert.deepEqual(kept(await get(edge, path, { headers: { [name]: value } })), plain.get(path), `${path} ${name}`)
    }
    assert.deepEqual(kept(await get(edge, path, { headers: FAMOUS })), plain.get(path), `${path}, all of them`)
    for (const query of ['?', '?utm_source=x', '?a=b&c=<script>', '??', '?/small.bin', '?host=evil.example']) {
      assert.deepEqual(kept(await get(edge, path + query)), plain.get(path), path + query)
    }
  }
  const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/).filter((text) => !KEYED.has(text))
  const value = fc.stringMatching(/^[\x21-\x7e]([\x20-\x7e]{0,40}[\x21-\x7e])?$/)
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...paths), fc.dictionary(name, value, { maxKeys: 6 }), async (path, headers) => {
      assert.deepEqual(kept(await get(edge, path, { headers })), plain.get(path))
    }),
    { numRuns: RUNS },
  )
})

test('a path has one spelling, and the host is always a part of the key', async (t) => {
  const edge = await startSite(t)
  for (const path of [
    '//main.js',
    '/./main.js',
    '/a/../main.js',
    '/main.js/',
    '/main.js;v=1',
    '/main.js%3Fv=1',
    '/MAIN.JS',
  ]) {
    const response = await get(edge, path)
    assert.deepEqual([response.status, response.headers['cache-control']], [404, 'no-store'], path)
  }
  for (let round = 0; round < 2; round++) {
    assert.equal((await get(edge, '/main.js')).body.toString(), TEXT)
    assert.equal((await get(edge, '/main.js', { headers: { host: 'lake.cdn.localhost' } })).body.toString(), 'lake')
    const nobody = await get(edge, '/main.js', { headers: { host: 'nobody.cdn.localhost' } })
    assert.deepEqual([nobody.status, nobody.headers['cache-control']], [404, 'no-store'])
  }
  const absolute = rawClient(t, edge.port)
  absolute.write(`GET http://${HOST}/small.bin HTTP/1.1\r\nHost: lake.cdn.localhost\r\n\r\n`)
  assert.match(await absolute.end(), /^HTTP\/1\.1 400 [\s\S]*cache-control: no-store/)
})

test('the body of a GET influences neither the response nor the next request', async (t) => {
  const edge = await startSite(t)
  const client = rawClient(t, edge.port)
  const inner = 'GET /small.bin HTTP/1.1\r\nHost: puddle.cdn.localhost\r\n\r\n'
  client.write(`GET /index.html HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`)
  client.write(`GET /main.js?last HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`)
  const responses = await client.end()
  assert.equal(responses.match(/HTTP\/1\.1 200 /g)?.length, 2)
  assert.ok(
    responses.includes('<h1>puddle</h1>') && responses.includes('a line of code') && !responses.includes('0123456789'),
  )
})

test('a response to a HEAD or a range is never mistaken for the whole file', async (t) => {
  const edge = await startSite(t)
  for (const [path, whole] of [
    ['/small.bin', '0123456789'],
    ['/main.js', TEXT],
    ['/', '<h1>puddle</h1>'],
  ] as const) {
    for (const accept of ['identity', 'br', 'gzip']) {
      const headers = { 'accept-encoding': accept }
      const head = await get(edge, path, { method: 'HEAD', headers })
      const part = await get(edge, path, { headers: { ...headers, range: 'bytes=0-1' } })
      const response = await get(edge, path, { headers })
      const { date, 'x-ray-id': ray_id } = head.headers
      assert.deepEqual(head.headers, { ...response.headers, date, 'x-ray-id': ray_id }, `${path} ${accept}`)
      assert.equal(head.body.length, 0)
      assert.deepEqual([part.status, part.body.toString()], [206, whole.slice(0, 2)])
      assert.equal(part.headers['cache-control'], response.headers['cache-control'])
      assert.equal(part.headers.vary, response.headers.vary)
      // A range is of the uploaded bytes: under another form's tag, a cache would join it with that form.
      const is_packed = response.headers['content-encoding'] !== undefined
      assert.equal(part.headers.etag === response.headers.etag, !is_packed, `${path} ${accept}`)
      assert.equal(response.status, 200)
      if (!is_packed) assert.equal(response.body.toString(), whole)
    }
  }
})

test('no refusal is stored', async (t) => {
  const edge = await startSite(t)
  const refusals: [number, string, Parameters<typeof get>[2]][] = [
    [400, '/%ff', {}],
    [404, '/nothing', {}],
    [405, '/', { method: 'POST' }],
    [404, '/', { headers: { host: 'nobody.cdn.localhost' } }],
    [406, '/packed.txt', { headers: { 'accept-encoding': 'identity' } }],
    [416, '/small.bin', { headers: { range: 'bytes=99-' } }],
    [431, '/', { headers: { 'x-large': 'x'.repeat(20_000) } }],
  ]
  for (const [status, path, options] of refusals) {
    const response = await get(edge, path, options)
    assert.deepEqual([response.status, response.headers['cache-control']], [status, 'no-store'], path)
    assert.equal(response.headers.etag, undefined)
  }
  const after = await get(edge, '/')
  assert.deepEqual([after.status, after.body.toString()], [200, '<h1>puddle</h1>'])
})
