import assert from 'node:assert'
import { createHash, randomBytes } from 'node:crypto'
import { Agent } from 'node:http'
import { test } from 'node:test'
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib'
import { MEMORY_FILE_BYTES_MAX, PREVIOUS_SITE_MS, SITE_HOST_AGE_MS_MAX } from '../../src/edge/limits.ts'
import { until } from '../support/until.ts'
import { get, HOST } from './get.ts'
import { errorOf, rawClient, startTestEdge } from './platform.ts'

test('a site is served by host, with content types, tags and cache rules', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const large = randomBytes(MEMORY_FILE_BYTES_MAX * 40)
  const files = {
    'index.html': '<h1>puddle</h1>',
    'docs/index.html': 'docs',
    'main.js': 'start()',
    'engine.wasm': Buffer.from([0, 0x61, 0x73, 0x6d]),
    'Build/game.wasm.br': 'packed',
    'Build/game.data.gz': 'packed',
    'download.tar.gz': 'packed',
    'large.bin': large,
    'empty.txt': '',
    'a b/ü.txt': 'spaces',
    noextension: 'bytes',
    'fake.html': 'not html',
    'claims.html': 'utf-7',
    'evil.txt': 'evil',
  }
  const content_types = {
    'fake.html': 'image/png',
    'claims.html': 'text/html; charset=utf-7',
    'evil.txt': 'text/plain\r\nX-Evil: yes',
    'main.js': 'application/octet-stream',
  }
  await game.deploy(await game.site(files, { content_types }))

  const expected: Record<string, { body: string | Buffer; type: string; page?: boolean; encoding?: string }> = {
    '/': { body: files['index.html'], type: 'text/html; charset=utf-8', page: true },
    '/index.html?v=1': { body: files['index.html'], type: 'text/html; charset=utf-8', page: true },
    '/docs/': { body: 'docs', type: 'text/html; charset=utf-8', page: true },
    '/main.js': { body: 'start()', type: 'text/javascript; charset=utf-8' },
    '/%6dain.js': { body: 'start()', type: 'text/javascript; charset=utf-8' },
    '/engine.wasm': { body: files['engine.wasm'], type: 'application/wasm' },
    '/Build/game.wasm.br': { body: 'packed', type: 'application/wasm', encoding: 'br' },
    '/Build/game.data.gz': { body: 'packed', type: 'application/octet-stream', encoding: 'gzip' },
    '/download.tar.gz': { body: 'packed', type: 'application/octet-stream' },
    '/large.bin': { body: large, type: 'application/octet-stream' },
    '/empty.txt': { body: '', type: 'text/plain; charset=utf-8' },
    '/a%20b/%C3%BC.txt': { body: 'spaces', type: 'text/plain; charset=utf-8' },
    '/noextension': { body: 'bytes', type: 'application/octet-stream' },
    '/fake.html': { body: 'not html', type: 'image/png', page: true },
    '/claims.html': { body: 'utf-7', type: 'text/html; charset=utf-8', page: true },
    '/evil.txt': { body: 'evil', type: 'text/plain; charset=utf-8' },
  }
  for (const [path, { body: content, type, page = false, encoding }] of Object.entries(expected)) {
    const body = typeof content === 'string' ? Buffer.from(content) : content
    const options = { headers: encoding === undefined ? {} : { 'accept-encoding': encoding } }
    // The first response comes from the store, the second from memory.
    for (let round = 0; round < 2; round++) {
      const response = await get(edge, path, options)
      assert.equal(response.status, 200, path)
      assert.ok(response.body.equals(body), path)
      assert.equal(response.headers['content-type'], type, path)
      assert.equal(response.headers['content-encoding'], encoding, path)
      assert.equal(response.headers['cache-control'], page ? 'no-cache, no-store' : 'no-cache', path)
      assert.equal(response.headers['x-content-type-options'], 'nosniff')
      assert.equal(response.headers['content-length'], String(body.length))
      assert.equal(response.headers['x-evil'], undefined)
      const hash = createHash('sha256').update(body).digest('hex').slice(0, 32)
      assert.equal(response.headers.etag, `"${hash}"`)
    }
    const head = await get(edge, path, { method: 'HEAD', ...options })
    assert.deepEqual([head.status, head.body.length, head.headers['content-length']], [200, 0, String(body.length)])
  }
  const { etag = '' } = (await get(edge, '/main.js')).headers
  for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    for (const method of ['GET', 'HEAD']) {
      const response = await get(edge, '/main.js', { method, headers: { 'if-none-match': tag } })
      assert.deepEqual([response.status, response.body.length, response.headers.etag], [304, 0, etag], tag)
    }
  }
  assert.equal((await get(edge, '/main.js', { headers: { 'if-none-match': '"other"' } })).status, 200)
  for (const tag of [etag, `"other", ${etag}`, '*']) {
    assert.equal((await get(edge, '/main.js', { headers: { 'if-match': tag } })).status, 200, tag)
  }
  for (const headers of [
    { 'if-match': '"other"' },
    { 'if-match': `W/${etag}` },
    { 'if-match': '"other"', range: 'bytes=0-1' },
  ]) {
    const response = await get(edge, '/main.js', { headers })
    assert.deepEqual([response.status, response.body.length], [412, 0], JSON.stringify(headers))
  }
  assert.equal((await get(edge, '/', { headers: { host: 'puddle--prod.cdn.localhost:80' } })).status, 200)
})

test('no path leads to anything but a file of the site', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  await game.deploy(await game.site({ 'index.html': 'index', 'a/b.txt': 'b' }))
  const not_found = [
    '/nothing',
    '/a',
    '/a/',
    '/A/b.txt',
    '/../../etc/passwd',
    '/..%2f..%2fetc/passwd',
    '/%2e%2e/%2e%2e/etc/passwd',
    '/%252e%252e/etc/passwd',
    '/a/../a/b.txt',
    '/./a/b.txt',
    '/a//b.txt',
    '//a/b.txt',
    '/a%5cb.txt',
    '/a\\b.txt',
    '/a/b.txt%00',
    '/a/b.txt%00.html',
    '/a/b.txt;/..',
    '/;/../a/b.txt',
    '/.git/config',
    '/.well-known/other.json',
    '/__proto__',
    '/constructor',
    '/index.html/',
  ]
  for (const path of not_found) {
    const response = await get(edge, path)
    assert.deepEqual([response.status, response.headers['content-type']], [404, 'text/html; charset=utf-8'], path)
    assert.match(response.body.toString(), /^<!doctype html>.*This site has no such page/s)
    assert.equal(response.headers['cache-control'], 'no-store')
  }
  // Invalid UTF-8 (over-long, truncated, a lone byte), and invalid percent-encoding.
  for (const path of ['/%c0%ae%c0%ae/etc/passwd', '/%e0%80%af', '/%ff', '/%', '/%zz']) {
    const response = await get(edge, path)
    assert.deepEqual([response.status, response.code], [400, 'API_BAD_REQUEST'], path)
  }
  const preflight = { origin: 'https://portal.example', 'access-control-request-method': 'GET' }
  for (const [method, path, headers] of [
    ...['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'].map((name) => [name, '/', {}] as const),
    ['OPTIONS', '/', preflight],
    ['OPTIONS', '/.well-known/muster.json', preflight],
    ['POST', '/nothing', {}],
  ] as const) {
    const { status, code, headers: got } = await get(edge, path, { method, headers })
    assert.deepEqual([status, code, got.allow], [405, 'API_METHOD_NOT_ALLOWED', 'GET, HEAD'], `${method} ${path}`)
  }
})

test('a folder is found with and without its slash, and no redirect leaves the site', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const files = {
    ...{ 'index.html': 'index', 'docs/index.html': 'docs', 'docs/a/index.html': 'a', 'empty/x.txt': 'x' },
    ...{ 'both/index.html': 'folder', both: 'file', 'evil.com/index.html': 'evil', 'packed/index.html.br': 'br' },
    ...{ '/\\evil/index.html': 'backslash', 'ü b?#%/index.html': 'odd', '404.html': 'nothing' },
  }
  const headers = [
    { name: 'cache-control', value: 'public, max-age=60' },
    { name: 'access-control-allow-origin', value: '*' },
  ]
  const middlewares = [{ kind: { custom_headers: { headers } } }]
  const routes = [{ glob: 'docs/**', priority: 1, middlewares }]
  const site = await game.site(files)
  for (const not_found of [undefined, 'index.html'] as const) {
    await game.deploy(site, routes, not_found)
    const status_of_unknown = not_found === undefined ? 404 : 200
    await until('the site is served', async () => (await get(edge, '/nothing')).status === status_of_unknown)
    for (const [path, location] of [
      ['/docs', '/docs/'],
      ['/docs?a=/b&c=//d?e', '/docs/?a=/b&c=//d?e'],
      ['/docs?', '/docs/?'],
      ['/docs/a', '/docs/a/'],
      ['/%64ocs%2fa', '/docs/a/'],
      ['/evil.com', '/evil.com/'],
      ['/%5cevil', '/%5Cevil/'],
      ['/%C3%BC%20b%3F%23%25?q', '/%C3%BC%20b%3F%23%25/?q'],
      ['/u%CC%88%20b%3F%23%25', '/%C3%BC%20b%3F%23%25/'],
    ] as const) {
      for (const method of ['GET', 'HEAD']) {
        const conditions = { 'if-none-match': '*', range: 'bytes=0-1' }
        const response = await get(edge, path, { method, headers: conditions })
        assert.deepEqual([response.status, response.headers.location], [301, location], path)
        assert.equal(response.headers['content-length'], '0')
        assert.equal(response.headers['cache-control'], 'no-cache, no-store', 'a later deploy is visible at once')
        const is_routed = location.startsWith('/docs')
        assert.equal(response.headers['access-control-allow-origin'], is_routed ? '*' : undefined, path)
      }
      assert.equal((await get(edge, location)).status, 200, location)
    }
    assert.equal((await get(edge, '/both')).body.toString(), 'file', 'a file of the name comes first')
    const paths = ['//docs', '//evil.com', '/%2fevil.com', '/%2f/docs', '/empty', '/docs/index.html/x', '/Docs', '/doc']
    for (const path of paths) {
      const response = await get(edge, path)
      assert.deepEqual([response.status, response.headers.location], [status_of_unknown, undefined], path)
    }
  }
})

test('a name with accents is found by links in each Unicode form, with exact case', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const nfc = 'musik/Größe é.ogg'
  const headers = [{ name: 'x-music', value: 'yes' }]
  const glob = 'musik/Größe*'.normalize('NFD')
  await game.deploy(await game.site({ [nfc]: 'sound', ['\u212bng.txt'.normalize('NFC')]: 'angstrom' }), [
    { glob, priority: 1, middlewares: [{ kind: { custom_headers: { headers } } }] },
  ])
  const encoded = (path: string) => `/${path.split('/').map(encodeURIComponent).join('/')}`
  await until('the site is served', async () => (await get(edge, encoded(nfc))).status === 200)
  const nfd = encoded(nfc.normalize('NFD'))
  const mixed = encoded(`${nfc.slice(0, 8).normalize('NFD')}${nfc.slice(8)}`)
  for (const path of [encoded(nfc), nfd, mixed, nfd.toLowerCase().replace('gro', 'Gro')]) {
    const response = await get(edge, path)
    assert.deepEqual([response.status, response.headers['x-music']], [200, 'yes'], path)
  }
  for (const path of [encoded('\u212bng.txt'), encoded('A\u030ang.txt')])
    assert.equal((await get(edge, path)).status, 200)
  for (const path of [nfc.toLowerCase(), nfc.replace('é', 'e'), nfc.replace('ö', 'Ö').normalize('NFD')])
    assert.equal((await get(edge, encoded(path))).status, 404, path)
})

test('a site that allows CORS by a route responds to preflights', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const routeOf = (glob: string, values: Record<string, string>) => ({
    ...{ glob, priority: 1 },
    middlewares: [
      { kind: { custom_headers: { headers: Object.entries(values).map(([name, value]) => ({ name, value })) } } },
    ],
  })
  await game.deploy(await game.site({ 'index.html': 'index', 'data/a.json': '{}', 'own/a.json': '{}' }), [
    routeOf('data/**', { 'Access-Control-Allow-Origin': '*' }),
    routeOf('own/**', {
      ...{ 'Access-Control-Allow-Origin': 'https://portal.example', 'Access-Control-Allow-Headers': 'x-level' },
      ...{ 'Access-Control-Max-Age': '5', 'Cross-Origin-Resource-Policy': 'cross-origin' },
    }),
  ])
  await until('the site is served', async () => (await get(edge, '/')).status === 200)
  const preflight = async (path: string, asked: Record<string, string>) => {
    const headers = { origin: 'https://portal.example', 'access-control-request-headers': 'x-level', ...asked }
    const response = await get(edge, path, { method: 'OPTIONS', headers })
    const names = ['origin', 'methods', 'headers'].map((name) => `access-control-allow-${name}`)
    const values = [...names, 'access-control-max-age'].map((name) => response.headers[name])
    return [response.status, response.body.length === 0, ...values]
  }
  const method = { 'access-control-request-method': 'GET' }
  assert.deepEqual(await preflight('/data/a.json?x=1', method), [204, true, '*', 'GET, HEAD', '*', '600'])
  const own = [204, true, 'https://portal.example', 'GET, HEAD', 'x-level', '5']
  assert.deepEqual(await preflight('/own/a.json', method), own)
  const refused = [405, false, undefined, undefined, undefined, undefined]
  assert.deepEqual(await preflight('/', method), refused, 'no route allows CORS here')
  assert.deepEqual(await preflight('/data/a.json', {}), refused, 'it is no preflight')
})

test('the head of a HEAD is the head of a GET, in each form and for each refusal', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const long = 'text '.repeat(1_000)
  const files = {
    ...{ 'index.html': 'index', 'docs/index.html': 'docs', '404.html': long, 'long.txt': long, 'empty.txt': '' },
    ...{ 'only.js.br': brotliCompressSync(long), 'large.bin': randomBytes(MEMORY_FILE_BYTES_MAX + 1) },
  }
  await game.deploy(await game.site(files))
  await until('the site is served', async () => (await get(edge, '/')).status === 200)
  const paths = ['/', '/docs', '/docs/', '/nothing', '/long.txt', '/empty.txt', '/only.js', '/only.js.br', '/large.bin']
  for (const path of [...paths, '/.well-known/muster.json', '/%ff']) {
    for (const accept of ['identity', 'br', 'gzip', 'identity;q=0', null]) {
      for (const condition of [{}, { 'if-none-match': '*' }, { 'if-match': '"other"' }]) {
        const headers = { ...condition, ...(accept === null ? {} : { 'accept-encoding': accept }) }
        const [whole, head] = await Promise.all([
          get(edge, path, { headers }),
          get(edge, path, { method: 'HEAD', headers }),
        ])
        assert.equal(head.body.length, 0)
        for (const { headers: got } of [whole, head]) {
          // The length of a refusal has that of its ray id, which is the same for both.
          delete got['x-ray-id']
          delete got.date
        }
        assert.deepEqual(
          [head.status, head.headers],
          [whole.status, whole.headers],
          `${path} ${JSON.stringify(headers)}`,
        )
      }
    }
  }
})

test('an unknown path gets the 404.html of the site, or its index.html where the version says so', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const page = `<h1>nothing here</h1>${'<p>long enough to be compressed</p>'.repeat(100)}`
  const files = { 'index.html': '<h1>app</h1>', '404.html': page, 'main.js': 'x' }
  const cached = { name: 'cache-control', value: 'public, max-age=31536000' }
  const routes = [{ glob: '**', priority: 1, middlewares: [{ kind: { custom_headers: { headers: [cached] } } }] }]
  await game.deploy(await game.site(files), routes)
  await until('the site is served', async () => (await get(edge, '/')).status === 200)
  const etag = (await get(edge, '/404.html')).headers.etag ?? ''
  const conditional = { 'if-none-match': etag, range: 'bytes=0-3', 'if-range': etag }
  for (const headers of [{}, conditional]) {
    const response = await get(edge, '/rooms/7?x=1', { headers })
    assert.deepEqual([response.status, response.body.toString()], [404, page])
    assert.equal(response.headers['content-type'], 'text/html; charset=utf-8')
    assert.equal(response.headers['cache-control'], 'no-cache, no-store')
    assert.deepEqual([response.headers.etag, response.headers['accept-ranges']], [undefined, undefined])
  }
  const packed = await get(edge, '/nothing', { headers: { 'accept-encoding': 'br' } })
  assert.deepEqual([packed.status, packed.headers['content-encoding']], [404, 'br'])
  assert.equal(brotliDecompressSync(packed.body).toString(), page)
  const head = await get(edge, '/nothing', { method: 'HEAD' })
  assert.deepEqual([head.status, head.body.length, head.headers['content-length']], [404, 0, String(page.length)])
  assert.equal((await get(edge, '/404.html')).status, 200)

  await game.deploy(await game.site(files), undefined, 'index.html')
  await until('the deploy is visible', async () => (await get(edge, '/rooms/7')).status === 200)
  const index = await get(edge, '/')
  for (const path of ['/rooms/7', '/rooms/', '/a/b/c.js']) {
    const response = await get(edge, path)
    assert.deepEqual([response.status, response.body.toString()], [200, '<h1>app</h1>'], path)
    for (const name of ['etag', 'content-type', 'cache-control']) {
      assert.equal(response.headers[name], index.headers[name], `${path} ${name}`)
    }
  }
  const known = { 'if-none-match': index.headers.etag ?? '' }
  assert.equal((await get(edge, '/rooms/7', { headers: known })).status, 304)
  // Paths that programs request are no pages of the application.
  for (const path of ['/.well-known/assetlinks.json', '/lobbies/0190163d-8694-739b-aea5-966c26f8ad91/http/']) {
    const response = await get(edge, path)
    assert.deepEqual([response.status, response.body.toString()], [404, page], path)
  }
})

test('a host without a game, a namespace or a completed site gets a 404', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  assert.equal((await get(edge, '/')).code, 'SITE_NOT_FOUND')
  await game.deploy(await game.site({ 'index.html': 'not all there' }, { complete: false }))
  await until('the deploy is visible', async () => (await get(edge, '/')).status === 404)
  const other = await edge.game('other')
  await game.deploy(await other.site({ 'index.html': "another game's" }))
  edge.advance(SITE_HOST_AGE_MS_MAX)
  assert.equal((await get(edge, '/')).code, 'SITE_NOT_FOUND')
  for (const host of ['nobody.cdn.localhost', 'puddle--staging.cdn.localhost']) {
    assert.equal((await get(edge, '/', { headers: { host } })).code, 'SITE_NOT_FOUND', host)
  }
  for (const host of [
    'puddle--prod--x.cdn.localhost',
    '--prod.cdn.localhost',
    'puddle---x.cdn.localhost',
    'a.puddle.cdn.localhost',
  ]) {
    const status = (await get(edge, '/', { headers: { host } })).status
    assert.ok(status === 404 || status === 400, host)
  }
  const upgrade = rawClient(t, edge.port)
  upgrade.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
  assert.equal(errorOf(await upgrade.end()).status, 404)
})

test('a site can read its game, its version and the address of the matchmaker from its own host', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const { version_id } = await edge.ctx.db.selectFrom('namespaces').select('version_id').executeTakeFirstOrThrow()
  const response = await get(edge, '/.well-known/muster.json')
  assert.equal(response.status, 200)
  assert.equal(response.headers['cache-control'], 'no-store')
  assert.equal(response.headers['access-control-allow-origin'], '*', 'also from a page in a sandboxed frame')
  assert.deepEqual(JSON.parse(response.body.toString()), {
    matchmaker_url: `http://localhost:${edge.port}`,
    game_id: game.game_id,
    namespace_id: game.namespace_id,
    version_id,
  })
})

test('a page names the version that it is of, also a page of the previous site, and other files name none', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const deployed = async (site_id: string) => {
    await game.deploy(site_id, [], 'index.html')
    const { version_id } = await edge.ctx.db.selectFrom('namespaces').select('version_id').executeTakeFirstOrThrow()
    await until('the deploy is seen', async () => {
      const { body } = await get(edge, '/.well-known/muster.json')
      return JSON.parse(body.toString()).version_id === version_id
    })
    return version_id
  }
  const named = async (path: string, headers = {}) => (await get(edge, path, { headers })).headers['server-timing']
  const headerOf = (version_id: string) => `muster-version;desc="${version_id}"`

  const first_files = { 'index.html': 'one', 'docs/index.html': 'docs', 'level-aaaaaaaa.html': 'level', 'main.js': '1' }
  const first = headerOf(await deployed(await game.site(first_files)))
  for (const path of ['/', '/docs/', '/level-aaaaaaaa.html', '/unknown']) assert.equal(await named(path), first, path)
  for (const path of ['/main.js', '/docs', '/.well-known/nothing']) assert.equal(await named(path), undefined, path)

  const second = headerOf(await deployed(await game.site({ 'index.html': 'two' })))
  assert.notEqual(second, first)
  assert.equal(await named('/'), second)
  assert.equal(await named('/level-aaaaaaaa.html'), first)
  const { etag } = (await get(edge, '/')).headers
  assert.equal(await named('/', { 'if-none-match': etag }), second, 'of a page that a cache has kept')
})

test('a deploy switches the whole site at once, under load, there and back', async (t) => {
  const LOADS = 200
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  t.after(() => agent.destroy())
  const siteOf = (version: string) =>
    game.site({
      'index.html': `${version} assets/app-${version.repeat(8)}.js`,
      [`assets/app-${version.repeat(8)}.js`]: version,
      'style.css': version,
    })
  const sites = [await siteOf('a'), await siteOf('b')] as const
  await game.deploy(sites[0])
  await until('the first version is served', async () => (await get(edge, '/', { agent })).status === 200)

  /** Loads a page, then the files that it names, as a browser does. */
  const load = async () => {
    const page = await get(edge, '/', { agent })
    assert.equal(page.status, 200)
    const [version = '', asset = ''] = page.body.toString().split(' ')
    const script = await get(edge, `/${asset}`, { agent })
    assert.equal(script.status, 200, 'a page that was open during the deploy finds its files')
    assert.equal(script.body.toString(), version)
    const style = await get(edge, '/style.css', { agent })
    assert.match(style.body.toString(), /^[ab]$/)
    return version
  }
  const seen: string[] = []
  let begun = 0
  const deploys = new Map([
    [LOADS / 4, sites[1]],
    [LOADS / 2, sites[0]],
    [(LOADS / 4) * 3, sites[1]],
  ])
  /** Deploys each version once, in order, and waits for each: on a slow machine they might overtake each other. */
  let deploying = Promise.resolve()
  const client = async () => {
    while (begun < LOADS) {
      begun++
      seen.push(await load())
      const site_id = deploys.get(begun)
      deploys.delete(begun)
      if (site_id !== undefined) deploying = deploying.then(() => game.deploy(site_id))
      await deploying
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
  assert.deepEqual([...new Set(seen)].sort(), ['a', 'b'])
  await until('the last version is served', async () => (await load()) === 'b')
  // From here on the old version is never served again.
  for (let round = 0; round < 50; round++) assert.equal(await load(), 'b')
  edge.advance(PREVIOUS_SITE_MS + SITE_HOST_AGE_MS_MAX)
  assert.equal((await get(edge, '/assets/app-aaaaaaaa.js')).status, 404)
})

test('a deploy whose notification is lost is visible within a second', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  await game.deploy(await game.site({ 'index.html': 'one' }))
  await until('the first version is served', async () => (await get(edge, '/')).body.toString() === 'one')
  await edge.ctx.db.deleteFrom('sites').execute()
  edge.advance(SITE_HOST_AGE_MS_MAX)
  assert.equal((await get(edge, '/')).code, 'SITE_NOT_FOUND')
})

test('a known site is served while the database is down', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  await game.deploy(await game.site({ 'index.html': 'one' }))
  await until('the first version is served', async () => (await get(edge, '/')).status === 200)
  await edge.ctx.db.schema.alterTable('games').renameTo('games_away').execute()
  edge.advance(SITE_HOST_AGE_MS_MAX)
  assert.equal((await get(edge, '/')).body.toString(), 'one')
  assert.equal((await get(edge, '/', { headers: { host: 'other.cdn.localhost' } })).status, 503)
})

test('a client that disconnects during a large file leaves no file open', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  await game.deploy(await game.site({ 'large.bin': Buffer.alloc(20 * 1024 * 1024) }))
  await until('the file is served', async () => (await get(edge, '/large.bin', { method: 'HEAD' })).status === 200)
  const files = () => process.getActiveResourcesInfo().filter((name) => /^FS|FileHandle/.test(name)).length
  for (let round = 0; round < 5; round++) {
    const client = rawClient(t, edge.port)
    client.write(`GET /large.bin HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`)
    await client.read((bytes) => bytes.length > 100_000)
    client.socket.destroy()
  }
  await until('no file is open', () => files() === 0)
})
