// A newcomer with an empty folder: `muster init`, `muster deploy`, and two browser windows in one lobby, for each template. The
// packages that a server imports are taken from this checkout, so that `npm install` needs no network.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { createGameNamespaceTokenPublic, getGameById, getGames } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import type { Browser, Page } from 'playwright-core'
import { openBrowser } from '../../server/test/end-to-end/browser.ts'
import { openAddress } from '../../server/test/end-to-end/documentation/open-address.ts'
import { lacking } from '../../server/test/run/optional-programs.ts'
import { freeSettings, startMuster, temporaryFolder } from '../../server/test/supervisor/started.ts'
import { until } from '../../server/test/support/until.ts'
import { TEMPLATE_NAMES, type TemplateName } from '../src/templates/templates.ts'
import { copyPackages } from './packages.ts'
import { createMuster, type Muster } from './program.ts'

const PACKAGES: Partial<Record<TemplateName, readonly string[]>> = {
  'node-ws': ['ws'],
  godot: ['ws'],
  'node-socketio': ['socket.io'],
}
const GODOT = 'godot3-server'
/** A player of the template that never meets the star. */
const GODOT_MS_MAX = 120_000
const COMMANDS_MAX = 5
/** Their servers run in dev-protocols.test.ts, and their page is that of `program`. */
const WITH_PROTOCOL: ReadonlySet<TemplateName> = new Set(['agones', 'multiplay', 'gsdk', 'gamelift'])

const run = promisify(execFile)

test('from an empty folder to two players in one lobby, for each template', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const data = temporaryFolder(t)
  const settings = await freeSettings(data)
  const started = startMuster(settings)
  await started.ready
  const port = settings.MUSTER_EDGE_HTTP_PORT
  const muster = createMuster(t, {
    MUSTER_URL: `http://localhost:${port}`,
    MUSTER_TOKEN: readFileSync(join(data, 'admin-token'), 'utf8').trim(),
    npm_config_offline: 'true',
    npm_config_update_notifier: 'false',
  })
  for (const template of TEMPLATE_NAMES.filter((name) => !WITH_PROTOCOL.has(name))) {
    await t.test(template, async (template_test) => {
      const missing = template === 'program' ? lacking('python3') : null
      if (missing !== null) return template_test.skip(missing)
      const begin = performance.now()
      const url = await deployed(muster, template)
      if (template === 'static') await reactsToAClick(browser, port, url)
      else await playTogether(browser, port, url)
      template_test.diagnostic(`${template}: ${((performance.now() - begin) / 1000).toFixed(1)} s`)
      if (template === 'godot') await playWithGodot(template_test, { browser, port, url, muster })
    })
  }
})

/** Types what a newcomer types, and returns the address that the deploy prints. */
async function deployed(muster: Muster, template: TemplateName): Promise<string> {
  const folder = join(muster.cwd, template)
  const commands = [
    { args: ['init', template, '--template', template], cwd: muster.cwd },
    { args: ['deploy', '-m', 'the first one'], cwd: folder },
  ]
  assert.ok(commands.length <= COMMANDS_MAX)
  let stdout = ''
  for (const [index, { args, cwd }] of commands.entries()) {
    const ended = await muster.run(args, { cwd })
    assert.equal(ended.code, 0, `muster ${args.join(' ')}: ${ended.stderr}${ended.stdout}`)
    if (index === 0) copyPackages(PACKAGES[template] ?? [], join(folder, 'server', 'node_modules'))
    stdout = ended.stdout
  }
  const [url] = /http:\/\/\S+/.exec(stdout) ?? []
  assert.ok(url !== undefined, `the last lines name no address: ${stdout}`)
  return url
}

async function playTogether(browser: Browser, port: string, url: string): Promise<void> {
  const pages = [await openAddress({ browser, port }, url), await openAddress({ browser, port }, url)]
  for (const page of pages) await seesPlayers(page, 2)
  const [ada, bob] = pages as [Page, Page]
  assert.equal(await lobbyOf(ada), await lobbyOf(bob))
  const scores = (await ada.locator('#scores').textContent()) ?? ''
  assert.match(scores, /you \d+/)
  assert.match(scores, /player \d+ \d+/)
  for (const page of pages) await page.context().close()
}

async function seesPlayers(page: Page, count: number): Promise<void> {
  const state = page.locator('#state')
  await until(`a page to see ${count} players`, async () => {
    const text = (await state.textContent()) ?? ''
    assert.doesNotMatch(text, /^[A-Z_]+: |ended|reached/)
    return text.endsWith(` ${count} ${count === 1 ? 'player' : 'players'}`)
  })
}

async function lobbyOf(page: Page): Promise<string> {
  const [, lobby_id] = /^Lobby (\S+)/.exec((await page.locator('#state').textContent()) ?? '') ?? []
  assert.ok(lobby_id !== undefined)
  return lobby_id
}

async function reactsToAClick(browser: Browser, port: string, url: string): Promise<void> {
  const page = await openAddress({ browser, port }, url)
  await page.locator('#light').click()
  await page.locator('#light.wait').waitFor()
  await page.locator('#light.wait').click()
  assert.equal(await page.locator('#state').textContent(), 'Too early.')
  await page.context().close()
}

/** The Godot project of the template, without a screen, in the lobby of a page. */
async function playWithGodot(
  t: TestContext,
  { browser, port, url, muster }: { browser: Browser; port: string; url: string; muster: Muster },
): Promise<void> {
  const missing = lacking(GODOT)
  if (missing !== null) return t.diagnostic(`the project for Godot is not run: it ${missing}`)
  const page = await openAddress({ browser, port }, url)
  await seesPlayers(page, 1)
  const token = await publicToken(muster)
  const env = { ...muster.env, MUSTER_TOKEN: token, LANG: 'en_US.UTF-8' }
  const { stdout } = await run(GODOT, ['--path', join(muster.cwd, 'godot', 'client')], { env, timeout: GODOT_MS_MAX })
  assert.match(stdout, new RegExp(`Lobby ${await lobbyOf(page)}`))
  assert.match(stdout, /The first star is caught\./)
  await page.context().close()
}

/** The public token of the game's namespace prod. */
async function publicToken({ env }: Muster): Promise<string> {
  const client = createClient({ url: env.MUSTER_URL!, token: env.MUSTER_TOKEN! })
  const { games } = await client.call(getGames, {})
  const game_id = games.find(({ name_id }) => name_id === 'godot')!.game_id
  const { game } = await client.call(getGameById, { params: { game_id } })
  const { namespace_id } = game.namespaces.find(({ name_id }) => name_id === 'prod')!
  return (await client.call(createGameNamespaceTokenPublic, { params: { game_id, namespace_id } })).token
}
