// The guide as a reader follows it: every block in one bash, in an empty folder, each of them twice, and the pages in Chromium.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { lacking } from '../run/optional-programs.ts'
import { freeSettings, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { freePorts } from '../support/free-ports.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { until } from '../support/until.ts'
import { openBrowser } from './browser.ts'
import { openAddress, type Requester } from './documentation/open-address.ts'
import { explain, ROOT, readPage, stepsOf } from './documentation/page.ts'
import { openShell, type Shell } from './documentation/shell.ts'

const GUIDE = 'docs/api-by-hand.md'
const DOTS_URL = 'http://dots.cdn.localhost/'
/** Blocks, and the lines that say what to open. A guide with fewer has not been read to its end. */
const GUIDE_STEPS_MIN = 12

test('the guide works to its last line in an empty folder, every block twice, and its change is deployed', async (t) => {
  const missing = lacking('chromium', 'curl')
  if (missing !== null) return t.skip(missing)
  const browser = await openBrowser(t)
  if (browser === null) return
  const folder = temporaryFolder(t)
  const settings = await freeSettings(folder)
  await placeCluster(folder)
  await startMuster(settings).ready
  const requester: Requester = { browser, port: settings.MUSTER_EDGE_HTTP_PORT }
  const shell = openShell(t, ROOT, {
    HOME: temporaryFolder(t),
    MUSTER_URL: `http://localhost:${requester.port}`,
    TRY_PORT: String((await freePorts(1))[0]),
    MUSTER_TOKEN: readFileSync(join(folder, 'admin-token'), 'utf8').trim(),
  })
  await t.test(GUIDE, (guide_test) => followGuide(guide_test, shell, requester))
  await t.test('the complete game of sdk/README.md, deployed as the guide deploys', (game_test) =>
    playSdkGame(game_test, shell, requester),
  )
})

test('a block that fails ends its shell, also beside a program in the background', async (t) => {
  const shell = openShell(t, ROOT, {})
  await assert.rejects(shell.run('a block', 'sleep 1000 & false'), /a block: bash ended with 1/)
})

test('a refusal is shown with its code and message, and without a stack trace', async (t) => {
  const missing = lacking('curl')
  if (missing !== null) return t.skip(missing)
  const first = stepsOf(readPage(GUIDE)).find((step) => step.kind === 'block')
  assert.ok(first?.language === 'sh')
  const folder = temporaryFolder(t)
  const settings = await freeSettings(folder)
  await placeCluster(folder)
  await startMuster(settings).ready
  const url = `http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`
  const shell = openShell(t, ROOT, { HOME: folder, MUSTER_URL: url, MUSTER_TOKEN: 'wrong' })
  await shell.run('the first block', first.text.replace('api /cloud/bootstrap', ''))
  const shown = await shell.run('a refused request', '! api /cloud/games | member .games')
  assert.match(shown, /"code":"[A-Z_]+"/)
  assert.match(shown, /"message":"[^"]+"/)
  assert.doesNotMatch(shown, /^ +at /m)
})

/** Every block twice, as the guide promises, and both versions of the game in two windows. */
async function followGuide(t: TestContext, shell: Shell, requester: Requester): Promise<void> {
  const steps = stepsOf(readPage(GUIDE))
  assert.ok(steps.length >= GUIDE_STEPS_MIN, `${GUIDE} has ${steps.length} steps`)
  const visits: Visit[] = []
  for (const step of steps) {
    if (step.kind === 'open') visits.push(await visitDots(requester, step.url))
    else if (step.language === 'sh' && step.mark === null) {
      await shell.run(`${GUIDE}:${step.line}`, step.text)
      await shell.run(`${GUIDE}:${step.line}, again`, step.text)
    } else explain(t, GUIDE, step)
  }
  const [before, after] = visits
  assert.ok(before !== undefined && after !== undefined, 'the guide opens the game before and after the change')
  assert.notEqual(after.lobby_id, before.lobby_id, 'the change is played in a lobby of its own')
  assert.equal(before.dot_color, '', 'the first version draws every dot alike')
  assert.match(after.dot_color, /^(hsl|rgb)\(/, 'the second version draws dots in the color of the player')
}

/** In the folder of the guide, with its functions, and the SDK installed as its package has it. */
async function playSdkGame(t: TestContext, shell: Shell, requester: Requester): Promise<void> {
  const folder = temporaryFolder(t)
  const blocks = stepsOf(readPage('sdk/README.md')).filter((step) => step.kind === 'block')
  const server = blocks.find(({ language, text }) => language === 'js' && text.startsWith('// server/main.js'))
  const page = blocks.find(({ language }) => language === 'html')
  assert.ok(server !== undefined && page !== undefined)
  writeFileSync(join(folder, 'main.js'), server.text)
  writeFileSync(join(folder, 'index.html'), page.text)
  await shell.run(
    'the complete game',
    `mkdir -p node_modules/musterhost-sdk && cp sdk/*.js node_modules/musterhost-sdk
     echo '{ "type": "module", "exports": { "./*": "./*.js" } }' > node_modules/musterhost-sdk/package.json
     cp ${folder}/main.js server/main.js
     cp ${folder}/index.html site/index.html
     upload_build && upload_site && deploy`,
  )
  const windows = [await openAddress(requester, DOTS_URL), await openAddress(requester, DOTS_URL)]
  const [ada, bob] = windows as [Page, Page]
  // A click before the page has entered its lobby sends nothing.
  await until('a click in one window to be seen in the other', async () => {
    await ada.mouse.click(100, 100)
    return (await bob.locator('body').textContent())?.includes('hello')
  })
  for (const window of windows) await window.context().close()
}

type Visit = { lobby_id: string; dot_color: string }

/** Two players: both in one lobby, and a click of one is seen by the other. */
async function visitDots(requester: Requester, address: string): Promise<Visit> {
  const [ada, bob] = [await openAddress(requester, address), await openAddress(requester, address)]
  const lobby_id = await lobbyOf(ada)
  assert.equal(await lobbyOf(bob), lobby_id, 'both have the same lobby')
  await ada.mouse.click(100, 100)
  const dot = bob.locator('i')
  await dot.waitFor()
  const dot_color = await dot.evaluate((element: { style: { background: string } }) => element.style.background)
  for (const page of [ada, bob]) await page.context().close()
  return { lobby_id, dot_color }
}

/** Waits until the page has a seat; fails with what the page shows when it ends otherwise. */
async function lobbyOf(page: Page): Promise<string> {
  const state = page.locator('#state:not(:text("Looking for a lobby"))')
  await state.waitFor()
  const text = (await state.textContent()) ?? ''
  const [, lobby_id] = /^Lobby (\S+)\. /.exec(text) ?? []
  assert.ok(lobby_id, `the page shows: ${text}`)
  return lobby_id
}
