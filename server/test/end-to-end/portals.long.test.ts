// docs/portals.md in a browser: a portal of another origin frames a site of the platform, or hosts a copy of its files. The
// browser blocks the storage of frames of other sites.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createGameNamespaceTokenPublic, getGameById, getGames } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import type { Browser, Frame } from 'playwright-core'
import { temporaryFolder } from '../supervisor/started.ts'
import { type Arena, startArena } from './arena.ts'
import { openBrowser, openPage } from './browser.ts'

/** The program of `npm run build -w sdk`. */
const BUILD_SDK = join(import.meta.dirname, '../../../sdk/build.ts')
const SDK_FILES = ['browser.js', 'player.js', 'request.js', 'resume.js', 'error.js']

test('pages in frames, and copies at other origins', async (t) => {
  const browser = await openBrowser(t, [], 'whole-chromium')
  if (browser === null) return
  const arena = await startArena(t, { deploy: [] })
  const files = new Map<string, string>()
  const portal = await startPortal(t, files)
  const copy = await copyOf(arena, portal)
  files.set('/copy.html', copy)
  const sdk = join(temporaryFolder(t), 'sdk')
  execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', BUILD_SDK, sdk])
  for (const name of SDK_FILES) files.set(`/sdk/${name}`, await readFile(join(sdk, name), 'utf8'))

  const site = `${arena.play_url}?name=Ada&autoplay`
  for (const sandbox of ['', 'sandbox="allow-scripts allow-same-origin"']) {
    await t.test(`the page of the site plays in a frame ${sandbox}`, async () => {
      files.set('/frame', `<!doctype html><iframe src="${site}" ${sandbox}></iframe>`)
      const frame = await frameOf(browser, `${portal}/frame`)
      assert.equal(await storageOf(frame), 'blocked')
      await frame.waitForFunction(() => (globalThis as { arena?: { lobby_id: string | null } }).arena?.lobby_id)
      await frame.page().context().close()
    })
  }

  await t.test('a copy plays at the portal, in a sandboxed frame without an origin, and from a file', async (t) => {
    files.set('/sandboxed', '<!doctype html><iframe src="/copy.html" sandbox="allow-scripts"></iframe>')
    const folder = temporaryFolder(t)
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'copy.html'), copy)
    for (const [url, origin] of [
      [`${portal}/copy.html`, portal],
      [`${portal}/sandboxed`, 'null'],
      [pathToFileURL(join(folder, 'copy.html')).href, 'null'],
    ] as const) {
      const frame = await frameOf(browser, url)
      assert.equal(await frame.evaluate('origin'), origin)
      const outcome = await frame.waitForFunction("document.title !== 'waits' && document.title")
      assert.equal(await outcome.jsonValue(), 'plays', url)
      await frame.page().context().close()
    }
  })
})

/** The page of docs/portals.md, which writes into its title whether it plays. */
async function copyOf(arena: Arena, portal: string): Promise<string> {
  const url = `http://localhost:${arena.settings.MUSTER_EDGE_HTTP_PORT}`
  const admin = createClient({ url, token: (await readFile(join(arena.folder, 'admin-token'), 'utf8')).trim() })
  const { game_id } = (await admin.call(getGames, {})).games[0]!
  const { game } = await admin.call(getGameById, { params: { game_id } })
  const { namespace_id } = game.namespaces.find(({ name_id }) => name_id === 'prod')!
  const { token } = await admin.call(createGameNamespaceTokenPublic, { params: { game_id, namespace_id } })
  return `<!doctype html><title>waits</title><script type="module">
    import { createClient, socketUrl } from '${portal}/sdk/browser.js'
    import { openPlayer } from '${portal}/sdk/player.js'
    const options = ${JSON.stringify({ matchmaker_url: url, token })}
    try {
      const seat = await createClient(options).find({ game_modes: ['default'] })
      const socket = new WebSocket(socketUrl(Object.values(seat.ports)[0], '/', { token: seat.player.token }))
      await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject })
      const { identity } = await openPlayer(options)
      document.title = seat.lobby.version_id && identity.identity_id ? 'plays' : 'failed'
    } catch (error) { document.title = 'failed ' + (error.code ?? error.name) + ' ' + error.message }
  </script>`
}

async function startPortal(t: TestContext, files: ReadonlyMap<string, string>): Promise<string> {
  const server = createServer(({ url }, response) => {
    const text = files.get(url ?? '')
    response.statusCode = text === undefined ? 404 : 200
    response.setHeader('content-type', url?.endsWith('.js') === true ? 'text/javascript' : 'text/html')
    // A page of an opaque origin reads modules by CORS.
    response.setHeader('access-control-allow-origin', '*').end(text)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** The frame of the page, or the page itself where it has none. */
async function frameOf(browser: Browser, url: string): Promise<Frame> {
  const page = await openPage(browser, url)
  return page.frames().at(-1)!
}

function storageOf(frame: Frame): Promise<string> {
  return frame.evaluate(() => {
    try {
      return `${localStorage.length} items`
    } catch {
      return 'blocked'
    }
  })
}
