// What strangers upload, in a real browser: a hosted site is hostile, and tries whatever a page can try to reach the main
// domain, where people's sessions are, and the sites of others.
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gameLogoUploadComplete, gameLogoUploadPrepare, getGameById } from '@musterhost/contract'
import { mainUrl, publicUrl } from '../../src/config/addresses.ts'
import { apiAddress } from '../cloud/steps.ts'
import { startBackend, startTestEdge } from '../edge/platform.ts'
import { makeAuthority } from '../support/certificates.ts'
import { HTML, pngChunk, pngOf } from '../support/images.ts'
import { startPlatform } from '../support/platform.ts'
import { openBrowser } from './browser.ts'
import { deploySite } from './site.ts'

const PRODUCTION = {
  MUSTER_DOMAIN_MAIN: 'muster.example',
  MUSTER_DOMAIN_CDN: 'sites.example.net',
  MUSTER_DOMAIN_JOB: 'play.example.org',
}
const HOSTILE_SITE = new URL('hostile-site/', import.meta.url)
const VICTIM_FILES = { 'index.html': '<!doctype html><title>victim</title>', 'sw.js': '' }

async function hostileFiles(): Promise<Record<string, string>> {
  const names = await readdir(HOSTILE_SITE)
  const read = names.map(async (name) => [name, await readFile(new URL(name, HOSTILE_SITE), 'utf8')])
  return Object.fromEntries(await Promise.all(read))
}

/** With certificates of an authority that the browser's settings exclude. */
async function productionEnv(t: TestContext): Promise<Record<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-isolation-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const { MUSTER_DOMAIN_MAIN: main, MUSTER_DOMAIN_CDN: cdn } = PRODUCTION
  const { cert, key } = await (await makeAuthority()).issue([main, `*.${cdn}`])
  await writeFile(join(folder, 'all.key'), key)
  await writeFile(join(folder, 'all.crt'), cert)
  return { ...PRODUCTION, MUSTER_TLS_CERTIFICATES: folder }
}

const RUNS = [
  { where: 'on a laptop', envOf: async () => ({}), session: 'muster_session', flags: [] },
  {
    where: 'in production',
    envOf: productionEnv,
    session: '__Host-muster_session',
    flags: ['--host-resolver-rules=MAP * 127.0.0.1', '--ignore-certificate-errors'],
  },
]

for (const { where, envOf, session, flags } of RUNS) {
  test(`a hosted site reaches neither the main domain nor other sites, ${where}`, async (t) => {
    const browser = await openBrowser(t, flags)
    if (browser === null) return
    const platform = await startPlatform(t, { roles: 'api,edge', env: await envOf(t) })
    const { config } = platform.ctx
    const main = mainUrl(config)
    const originOf = (game: string) => publicUrl(config, `${game}.${config.domains.cdn}`)
    const [evil, victim] = [originOf('evil'), originOf('victim')]
    await deploySite(platform, 'evil', await hostileFiles())
    await deploySite(platform, 'victim', VICTIM_FILES)

    // A person who is logged in on the main domain and has played another game opens the evil one.
    const context = await browser.newContext()
    await context.addCookies([
      { name: session, value: 'main-secret', url: main, secure: where === 'in production' },
      { name: 'progress', value: 'victim-secret', url: victim },
    ])
    const playing = await context.newPage()
    await playing.goto(victim)
    await playing.evaluate("localStorage.setItem('progress', 'secret'); sessionStorage.setItem('progress', 'secret')")
    await playing.evaluate("new Promise((resolve) => { indexedDB.open('progress').onsuccess = resolve })")
    const page = await context.newPage()
    await page.goto(evil)
    assert.equal(await page.evaluate('isSecureContext'), true)
    /** Calls a function of hostile.js. */
    const tries = (name: string, ...values: unknown[]): Promise<unknown> =>
      page.evaluate(`${name}(...${JSON.stringify(values)})`)

    await t.test('stores of others are not there, not even in a frame of theirs', async () => {
      assert.deepEqual(await tries('ownStores'), { cookies: '', storage: 0, session: 0, databases: 0 })
      const denied = 'SecurityError'
      assert.deepEqual(await tries('reachInto', victim), { storage: denied, cookies: denied, code: denied })
    })

    await t.test('no cookie is put on the main domain', async () => {
      const { main: name, cdn, job } = config.domains
      const parents = [name, cdn, job].flatMap((domain) => {
        const labels = domain.split('.')
        return labels.map((_, index) => labels.slice(index).join('.'))
      })
      await tries('toss', ['muster_session', '__Host-muster_session', 'other'], parents)
      const cookies = await context.cookies(main)
      assert.deepEqual(
        cookies.map((cookie) => [cookie.name, cookie.value]),
        [[session, 'main-secret']],
      )
    })

    await t.test('answers of the main domain are not read, nor made a part of the page', async () => {
      const [denied, refused] = ['TypeError', 'refused']
      assert.deepEqual(await tries('ask', main), {
        ...{ page: denied, cookies: denied, opaque: denied, token: denied },
        ...{ script: refused, image: refused },
      })
    })

    await t.test('pages of the main domain are framed by nobody', async () => {
      for (const path of ['/', '/docs/errors/API_NOT_FOUND', '/openapi.json', '/no-such-page']) {
        const address = main + path
        await tries('frame', address)
        const element = await page.waitForSelector(`iframe[src="${address}"]`)
        const inside = await element.contentFrame()
        assert.match(inside?.url() ?? '', /^chrome-error:/, path)
      }
    })

    await t.test('a window of the main domain that the site opens knows nothing of it', async () => {
      const opening = context.waitForEvent('page')
      await tries('openWindow', main)
      const opened = await opening
      await opened.waitForLoadState()
      assert.equal(new URL(opened.url()).origin, main)
      assert.equal(await opened.evaluate('window.opener'), null)
      await opened.evaluate('heard = 0; addEventListener("message", () => { heard++ })')
      assert.deepEqual(await tries('reachIntoOpened'), { closed: true, frames: 0 })
      // A message of its own comes last: by then another would have been there.
      await opened.evaluate('new Promise((resolve) => { addEventListener("message", resolve); postMessage("own") })')
      assert.equal(await opened.evaluate('heard'), 1)
      await opened.close()
    })

    await t.test('a service worker is for the own host alone', async () => {
      for (const host of [main, victim]) {
        assert.equal(await tries('register', `${host}/sw.js`, `${host}/`), 'SecurityError')
        assert.equal(await tries('register', '/sw.js', `${host}/`), 'SecurityError')
      }
      assert.equal(await tries('register', '/sw.js', '/'), `${evil}/`)
      await page.evaluate('navigator.serviceWorker.ready.then(() => {})')
      const visiting = await context.newPage()
      await visiting.goto(victim)
      assert.equal(await visiting.title(), 'victim')
      await visiting.goto(main)
      assert.notEqual(await visiting.textContent('body'), 'stolen')
    })
  })
}

test('a picture that is opened as a page is nothing but a picture', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const platform = await startPlatform(t, { roles: 'api,edge' })
  const { client, ctx } = platform
  const { game_id } = await deploySite(platform, 'puddle', VICTIM_FILES)
  const bytes = pngOf(3, 2, pngChunk('tEXt', Buffer.from(`Comment\0${HTML}`)))
  const body = { path: 'logo.html', mime: 'text/html', content_length: bytes.length }
  const { upload_id, presigned_request } = await client.call(gameLogoUploadPrepare, { params: { game_id }, body })
  const headers = { 'content-type': 'text/html' }
  const sent = { method: 'PUT', headers, body: new Uint8Array(bytes) }
  assert.equal((await fetch(apiAddress(platform, presigned_request), sent)).status, 200)
  await client.call(gameLogoUploadComplete, { params: { game_id, upload_id } })
  const { game } = await client.call(getGameById, { params: { game_id } })

  const page = await browser.newPage()
  await page.goto(game.logo_url!)
  const found = await page.evaluate('({ type: document.contentType, ran: globalThis.ran, origin: self.origin })')
  assert.deepEqual(found, { type: 'image/png', ran: undefined, origin: 'null' })
  await page.goto(publicUrl(ctx.config, 'puddle.cdn.localhost'))
  const width = page.evaluate(`(async () => {
    const image = new Image()
    image.src = ${JSON.stringify(game.logo_url)}
    await image.decode()
    return image.naturalWidth
  })()`)
  assert.equal(await width, 3, 'other origins show it')
})

test("a lobby's page under the main address has no origin and no scripts", async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const lobby = await startBackend(t, 'lobby', (_req, res) => {
    res.setHeader('content-type', 'text/html')
    res.end('<title>nothing ran</title><script>document.title = "ran" + document.cookie</script>')
  })
  const edge = await startTestEdge(t)
  const lobby_id = await edge.lobby({ default: lobby.port })
  const main = `http://localhost:${edge.port}`
  const context = await browser.newContext()
  await context.addCookies([{ name: 'session', value: 'main-secret', url: main }])
  const page = await context.newPage()
  await page.goto(`${main}/lobbies/${lobby_id}/default/`)
  assert.equal(await page.title(), 'nothing ran')
  assert.equal(await page.evaluate('self.origin'), 'null')
})
