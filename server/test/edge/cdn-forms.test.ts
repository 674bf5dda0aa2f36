import assert from 'node:assert'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync, constants as zlib } from 'node:zlib'
import { COMPRESSED_BYTES_MIN, MEMORY_FILE_BYTES_MAX, UNPACKED_POOL } from '../../src/edge/limits.ts'
import { until } from '../support/until.ts'
import { get, HOST, type HttpResponse } from './get.ts'
import { rawClient, startTestEdge } from './platform.ts'

/** More than the system holds for one connection. */
const ZEROS_BYTES = 32 * 1024 * 1024
const packZeros = () => brotliCompressSync(Buffer.alloc(ZEROS_BYTES), { params: { [zlib.BROTLI_PARAM_QUALITY]: 1 } })

const addHeaders = (headers: Record<string, string>) => [
  { kind: { custom_headers: { headers: Object.entries(headers).map(([name, value]) => ({ name, value })) } } },
]

test('the forms of a file: ranges, encodings, headers of routes', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const small = Buffer.from('0123456789')
  const large = randomBytes(MEMORY_FILE_BYTES_MAX + 10)
  const zeros = Buffer.alloc(300_000, '0')
  const script = 'let a = 1;\n'.repeat(1_000)
  const files = {
    'index.html': 'page',
    'small.bin': small,
    'large.bin': large,
    'empty.bin': '',
    'script.js': script,
    'tiny.js': 'x',
    'both.js': 'plain',
    'both.js.br': brotliCompressSync('brotli'),
    'both.js.gz': gzipSync('gzip'),
    'Build/only.wasm.br': brotliCompressSync('wasm'),
    'Build/only.data.gz': gzipSync('data'),
    'only.wasm.br': brotliCompressSync('wasm'),
    'only.data.gz': gzipSync('data'),
    'zeros.bin.gz': gzipSync(zeros),
    'zeros.data.br': packZeros(),
    'false.js.br': 'let a',
    'pack.tar.gz': 'archive',
  }
  const routes = [
    {
      glob: '**',
      priority: 1,
      middlewares: addHeaders({ 'X-One': 'all', 'Cross-Origin-Opener-Policy': 'same-origin' }),
    },
    { glob: '*.bin', priority: 50, middlewares: addHeaders({ 'x-one': 'bin', 'cache-control': 'public, max-age=60' }) },
    { glob: '**/*.bin', priority: 50, middlewares: addHeaders({ 'x-one': 'second of equals' }) },
    { glob: 'Build/**', priority: 2, middlewares: addHeaders({ 'content-type': 'text/plain', 'x-build': 'yes' }) },
  ]
  await game.deploy(await game.site(files), routes)

  await t.test('a single range gets its bytes, from memory and from the store', async () => {
    const cases: [string, number, number][] = [
      ['bytes=0-0', 0, 0],
      ['bytes=2-5', 2, 5],
      ['bytes=7-', 7, Number.POSITIVE_INFINITY],
      ['bytes=5-9999999999', 5, Number.POSITIVE_INFINITY],
      ['bytes=-3', -3, Number.POSITIVE_INFINITY],
      ['bytes=-99999999999', 0, Number.POSITIVE_INFINITY],
      ['Bytes=0-', 0, Number.POSITIVE_INFINITY],
    ]
    for (const [path, bytes] of [
      ['/small.bin', small],
      ['/large.bin', large],
    ] as const) {
      for (const [range, from, to] of cases) {
        const start = from < 0 ? bytes.length + from : from
        const end = Math.min(to, bytes.length - 1)
        const response = await get(edge, path, { headers: { range } })
        assert.equal(response.status, 206, `${path} ${range}`)
        assert.ok(response.body.equals(bytes.subarray(start, end + 1)), `${path} ${range}`)
        assert.equal(response.headers['content-range'], `bytes ${start}-${end}/${bytes.length}`)
        assert.equal(response.headers['content-length'], String(end + 1 - start))
        assert.equal(response.headers['accept-ranges'], 'bytes')
      }
    }
  })

  await t.test('an unsupported range gets the whole file, and an impossible one is refused', async () => {
    const whole = [
      'bytes=0-1,3-4',
      'bytes=5-2',
      'bytes=-',
      'bytes=a-b',
      'items=0-1',
      'bytes 0-1',
      'bytes=0-1x',
      'bytes=9999999999999999999-',
    ]
    for (const range of whole) {
      const response = await get(edge, '/small.bin', { headers: { range } })
      assert.deepEqual([response.status, response.body.toString()], [200, '0123456789'], range)
      assert.equal(response.headers['content-range'], undefined)
    }
    for (const [path, range] of [
      ['/small.bin', 'bytes=10-'],
      ['/small.bin', 'bytes=-0'],
      ['/empty.bin', 'bytes=0-'],
      ['/empty.bin', 'bytes=-1'],
    ] as const) {
      const response = await get(edge, path, { headers: { range } })
      assert.deepEqual([response.status, response.code], [416, 'CDN_RANGE_NOT_SATISFIABLE'], `${path} ${range}`)
      assert.equal(response.headers['content-range'], `bytes */${path === '/empty.bin' ? 0 : 10}`)
      assert.equal(response.headers['cache-control'], 'no-store')
    }
    const head = await get(edge, '/small.bin', { method: 'HEAD', headers: { range: 'bytes=0-1' } })
    assert.deepEqual([head.status, head.headers['content-length']], [200, '10'])
  })

  await t.test('If-Range compares only the tag; If-None-Match comes first; dates are ignored', async () => {
    const { etag = '' } = (await get(edge, '/small.bin')).headers
    const part = (if_range: string) =>
      get(edge, '/small.bin', { headers: { range: 'bytes=0-1', 'if-range': if_range } })
    assert.equal((await part(etag)).status, 206)
    for (const other of [`W/${etag}`, '"other"', 'Wed, 21 Oct 2035 07:28:00 GMT']) {
      const response = await part(other)
      assert.deepEqual([response.status, response.body.length], [200, 10], other)
    }
    const known = await get(edge, '/small.bin', { headers: { range: 'bytes=0-1', 'if-none-match': etag } })
    assert.equal(known.status, 304)
    const dated = await get(edge, '/small.bin', { headers: { 'if-modified-since': 'Wed, 21 Oct 2035 07:28:00 GMT' } })
    assert.deepEqual([dated.status, dated.headers['last-modified']], [200, undefined])
  })

  await t.test('the smallest accepted one of the uploaded encodings is sent', async () => {
    const ask = (path: string, accept?: string, more: Record<string, string> = {}) =>
      get(edge, path, { headers: { ...(accept === undefined ? {} : { 'accept-encoding': accept }), ...more } })
    const plain = { body: 'plain', encoding: undefined }
    const cases: [string | undefined, { body: string; encoding: string | undefined }][] = [
      [undefined, plain],
      ['', plain],
      ['identity', plain],
      ['deflate, br;q=0', plain],
      ['gzip, deflate, br', { body: 'brotli', encoding: 'br' }],
      ['GZIP;q=0.5', { body: 'gzip', encoding: 'gzip' }],
      ['br;q=0.0, *;q=0.1', { body: 'gzip', encoding: 'gzip' }],
      ['*', { body: 'brotli', encoding: 'br' }],
    ]
    const tags = new Set()
    for (const [accept, { body, encoding }] of cases) {
      const response = await ask('/both.js', accept)
      assert.equal(response.headers['content-encoding'], encoding, String(accept))
      const text =
        encoding === 'br' ? brotliDecompressSync(response.body) : encoding ? gunzipSync(response.body) : response.body
      assert.equal(text.toString(), body, String(accept))
      assert.equal(response.headers['content-type'], 'text/javascript; charset=utf-8')
      assert.equal(response.headers.vary, 'Accept-Encoding')
      tags.add(response.headers.etag)
    }
    assert.equal(tags.size, 3, 'every form has a tag of its own')
    const part = await ask('/both.js', 'br', { range: 'bytes=0-1' })
    assert.deepEqual([part.status, part.body.toString(), part.headers['content-encoding']], [206, 'pl', undefined])
  })

  await t.test('a file that exists only compressed is decompressed for who does not accept its encoding', async () => {
    const ask = (path: string, accept?: string, more: Record<string, string> = {}) =>
      get(edge, path, { headers: { ...(accept === undefined ? {} : { 'accept-encoding': accept }), ...more } })
    const files = [
      ['/only.wasm', 'wasm', 'br', 'application/wasm', brotliDecompressSync],
      ['/only.wasm.br', 'wasm', 'br', 'application/wasm', brotliDecompressSync],
      ['/only.data', 'data', 'gzip', 'application/octet-stream', gunzipSync],
      ['/only.data.gz', 'data', 'gzip', 'application/octet-stream', gunzipSync],
      ['/both.js.br', 'brotli', 'br', 'text/javascript; charset=utf-8', brotliDecompressSync],
      ['/zeros.bin.gz', zeros.toString(), 'gzip', 'application/octet-stream', gunzipSync],
    ] as const
    for (const [path, text, encoding, type, unpack] of files) {
      const other = encoding === 'br' ? 'gzip' : 'br'
      const tags = new Set()
      const check = (response: HttpResponse, accept: string | undefined, is_plain: boolean) => {
        const what = `${path} ${accept}`
        const { headers, status } = response
        assert.deepEqual([status, headers.vary, headers['content-type']], [200, 'Accept-Encoding', type], what)
        assert.equal(headers['content-encoding'], is_plain ? undefined : encoding, what)
        assert.equal((is_plain ? response.body : unpack(response.body)).toString(), text, what)
        tags.add(headers.etag)
      }
      for (const accept of [encoding, '*', `${other}, ${encoding};q=0.1`, 'identity;q=0, *'])
        check(await ask(path, accept), accept, false)
      for (const accept of [undefined, '', other, 'identity', `${encoding};q=0`, '*;q=0, identity', 'deflate'])
        check(await ask(path, accept), accept, true)
      assert.equal(tags.size, 2, 'each form has a tag of its own')
      for (const accept of [`${other}, identity;q=0`, '*;q=0']) {
        const response = await ask(path, accept)
        assert.deepEqual([response.status, response.code], [406, 'CDN_NOT_ACCEPTABLE'], accept)
        assert.deepEqual([response.headers.vary, response.headers['cache-control']], ['Accept-Encoding', 'no-store'])
      }

      // A range of the compressed bytes says so. The decompressed file has no ranges.
      const whole = await ask(path, encoding)
      const part = await ask(path, encoding, { range: 'bytes=1-3' })
      assert.deepEqual(
        [part.status, part.headers['content-encoding'], part.headers.etag],
        [206, encoding, whole.headers.etag],
      )
      assert.deepEqual(part.body, whole.body.subarray(1, 4))
      const plain = await ask(path, 'identity', { range: 'bytes=1-3', 'if-range': String(whole.headers.etag) })
      assert.deepEqual([plain.status, plain.body.toString(), plain.headers['accept-ranges']], [200, text, undefined])

      const { etag = '' } = plain.headers
      const head = await get(edge, path, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } })
      assert.deepEqual([head.status, head.headers.etag, head.headers['content-encoding']], [200, etag, undefined])
      assert.deepEqual([head.body.length, head.headers['content-length']], [0, undefined])
      assert.equal((await ask(path, 'identity', { 'if-none-match': etag })).status, 304)
      assert.equal((await ask(path, encoding, { 'if-none-match': etag })).status, 200)
    }
    assert.equal((await ask('/pack.tar', 'gzip')).status, 404)
    assert.equal(
      (await ask('/false.js.br')).code,
      'CDN_NOT_ACCEPTABLE',
      'a site that was uploaded before its bytes were checked',
    )
  })

  await t.test('a decompressed file reaches a client of HTTP/1.0, and the next request of a connection', async () => {
    const ask = (version: string, more: string) => `GET /only.wasm.br HTTP/${version}\r\nHost: ${HOST}\r\n${more}\r\n`
    const old = rawClient(t, edge.port)
    old.write(ask('1.0', ''))
    assert.match(await old.end(), /^HTTP\/1\.1 200 (?!.*chunked)[\s\S]*\r\n\r\nwasm$/i)
    const kept = rawClient(t, edge.port)
    kept.write(ask('1.1', '').repeat(2) + ask('1.1', 'Connection: close\r\n'))
    assert.equal((await kept.end()).match(/\r\n\r\n4\r\nwasm\r\n0\r\n\r\n/g)?.length, 3)
  })

  await t.test(
    'what a small file becomes stays out of memory, and a client that does not read holds a place',
    async (t) => {
      const idle = () => {
        const socket = connect({ port: edge.port, host: '127.0.0.1' })
        t.after(() => void socket.destroy())
        socket.write(`GET /zeros.data HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)
        return once(socket, 'readable').then(() => socket)
      }
      // The process may hold buffers of other test files.
      const before = process.memoryUsage().arrayBuffers
      const sockets = await Promise.all(Array.from({ length: UNPACKED_POOL.client_max }, idle))
      const refused = await get(edge, '/zeros.data')
      assert.deepEqual([refused.status, refused.code], [429, 'API_RATE_LIMIT'])
      const added = process.memoryUsage().arrayBuffers - before
      assert.ok(added < ZEROS_BYTES, `${added} bytes for ${sockets.length} files of ${ZEROS_BYTES}`)
      sockets[0]!.destroy()
      const served = await until('a place is free', async () => {
        const response = await get(edge, '/zeros.data')
        return response.status === 200 ? response : null
      })
      assert.equal(served.body.length, ZEROS_BYTES)
    },
  )

  await t.test('text that was only uploaded plain is compressed', async () => {
    assert.ok(script.length >= COMPRESSED_BYTES_MIN)
    const tags = new Set()
    for (const [accept, unpack] of [
      ['br', brotliDecompressSync],
      ['gzip', gunzipSync],
      ['identity', (bytes: Buffer) => bytes],
    ] as const) {
      for (let round = 0; round < 2; round++) {
        const response = await get(edge, '/script.js', { headers: { 'accept-encoding': accept } })
        assert.equal(unpack(response.body).toString(), script)
        assert.equal(response.headers['content-encoding'], accept === 'identity' ? undefined : accept)
        assert.equal(response.headers.vary, 'Accept-Encoding')
        assert.ok(accept === 'identity' || response.body.length < script.length / 10)
        tags.add(response.headers.etag)
        const head = await get(edge, '/script.js', { method: 'HEAD', headers: { 'accept-encoding': accept } })
        assert.equal(head.headers['content-length'], String(response.body.length))
        const { etag = '' } = response.headers
        const known = await get(edge, '/script.js', { headers: { 'accept-encoding': accept, 'if-none-match': etag } })
        assert.equal(known.status, 304)
      }
    }
    assert.equal(tags.size, 3)
    for (const path of ['/tiny.js', '/small.bin', '/large.bin']) {
      const response = await get(edge, path, { headers: { 'accept-encoding': 'br' } })
      assert.deepEqual([response.headers['content-encoding'], response.headers.vary], [undefined, undefined], path)
    }
  })

  await t.test('routes add headers to matching files, and the higher priority wins', async () => {
    const page = await get(edge, '/')
    assert.equal(page.headers['x-one'], 'all')
    assert.equal(page.headers['cross-origin-opener-policy'], 'same-origin')
    const { etag = '' } = (await get(edge, '/small.bin')).headers
    for (const headers of [{}, { range: 'bytes=0-1' }, { 'if-none-match': etag }]) {
      const response = await get(edge, '/small.bin', { headers })
      assert.equal(response.headers['x-one'], 'bin')
      assert.equal(response.headers['cache-control'], 'public, max-age=60')
    }
    const build = await get(edge, '/Build/only.wasm.br')
    assert.deepEqual([build.headers['x-build'], build.headers['x-one']], ['yes', 'all'])
    assert.equal(build.headers['content-type'], 'text/plain; charset=utf-8')
    assert.equal(build.headers['x-content-type-options'], 'nosniff')
    assert.equal((await get(edge, '/nothing.bin')).headers['x-one'], undefined)
    assert.equal((await get(edge, '/.well-known/muster.json')).headers['x-one'], undefined)
  })
})
