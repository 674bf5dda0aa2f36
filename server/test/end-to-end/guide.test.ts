// The guide as a reader follows it: every block in one bash, in an empty folder, each of them twice, and the pages in Chromium.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { freeSettings, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { openBrowser, openPage } from './browser.ts'
import { type Step, stepsOf } from './guide/page.ts'
import { openShell } from './guide/shell.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const GUIDE = 'docs/first-game.md'
/** Blocks, and the lines that say what to open. A guide with fewer has not been read to its end. */
const STEPS_MIN = 12

test('the guide works to its last line in an empty folder, every block twice, and its change is deployed', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const steps = stepsOf(readFileSync(join(ROOT, GUIDE), 'utf8'))
  assert.ok(steps.length >= STEPS_MIN, `${GUIDE} has ${steps.length} steps`)
  for (const step of steps) if (step.kind === 'not_run') t.diagnostic(`${GUIDE}:${step.line} is not run: ${step.why}`)

  const folder = temporaryFolder(t)
  const settings = await freeSettings(folder)
  await startMuster(settings).ready
  const port = settings.MUSTER_EDGE_HTTP_PORT
  const shell = openShell(t, ROOT, {
    HOME: temporaryFolder(t),
    MUSTER_URL: `http://localhost:${port}`,
    MUSTER_TOKEN: readFileSync(join(folder, 'admin-token'), 'utf8').trim(),
  })

  const visits: Visit[] = []
  for (const step of steps) {
    if (step.kind === 'sh') await runTwice(step)
    if (step.kind === 'open') visits.push(await visit(browser, withPort(step.url, port)))
  }
  const [before, after] = visits
  assert.ok(before !== undefined && after !== undefined, 'the guide opens the game before and after the change')
  assert.notEqual(after.lobby_id, before.lobby_id, 'the change is played in a lobby of its own')
  assert.equal(before.dot_color, '', 'the first version draws every dot alike')
  assert.match(after.dot_color, /^(hsl|rgb)\(/, 'the second version draws dots in the color of the player')

  async function runTwice(step: Step & { kind: 'sh' }): Promise<void> {
    const name = `${GUIDE}:${step.line}`
    await shell.run(name, step.text)
    await shell.run(`${name}, again`, step.text)
  }
})

test('a refusal is shown with its code and message, and without a stack trace', async (t) => {
  const [first] = stepsOf(readFileSync(join(ROOT, GUIDE), 'utf8'))
  assert.ok(first?.kind === 'sh')
  const folder = temporaryFolder(t)
  const settings = await freeSettings(folder)
  await startMuster(settings).ready
  const url = `http://localhost:${settings.MUSTER_EDGE_HTTP_PORT}`
  const shell = openShell(t, ROOT, { HOME: folder, MUSTER_URL: url, MUSTER_TOKEN: 'wrong' })
  await shell.run('the first block', first.text.replace('api /cloud/bootstrap', ''))
  const shown = await shell.run('a refused request', '! api /cloud/games | member .games')
  assert.match(shown, /"code":"[A-Z_]+"/)
  assert.match(shown, /"message":"[^"]+"/)
  assert.doesNotMatch(shown, /^ +at /m)
})

type Visit = { lobby_id: string; dot_color: string }

/** Two players: both in one lobby, and a click of one is seen by the other. */
async function visit(browser: Browser, url: string): Promise<Visit> {
  const [ada, bob] = [await openPage(browser, url), await openPage(browser, url)]
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

function withPort(address: string, port: string): string {
  const url = new URL(address)
  url.port = port
  return url.href
}
