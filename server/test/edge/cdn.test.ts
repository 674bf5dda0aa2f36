import assert from 'node:assert'
import { createHash, randomBytes } from 'node:crypto'
import { Agent } from 'node:http'
import { test } from 'node:test'
import { brotliDecompressSync } from 'node:zlib'
import { MEMORY_FILE_BYTES_MAX, PREVIOUS_SITE_MS, SITE_HOST_AGE_MS_MAX } from '../../src/edge/limits.ts'
import { until } from '../until.ts'
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
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE']) {
    assert.deepEqual((await get(edge, '/', { method })).code, 'API_METHOD_NOT_ALLOWED', method)
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

test('a site can read its game and the address of the matchmaker from its own host', async (t) => {
  const edge = await startTestEdge(t)
  const game = await edge.game('puddle')
  const response = await get(edge, '/.well-known/muster.json')
  assert.equal(response.status, 200)
  assert.equal(response.headers['cache-control'], 'no-store')
  assert.deepEqual(JSON.parse(response.body.toString()), {
    matchmaker_url: `http://localhost:${edge.port}`,
    game_id: game.game_id,
    namespace_id: game.namespace_id,
  })
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
