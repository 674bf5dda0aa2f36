// The documentation as a reader follows it, against one platform: every block of every page in order, and the pages that
// the text says to open, in Chromium. A block that no test runs says why in the line above it.
import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { freeSettings, type Started, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { until } from '../until.ts'
import { openBrowser, openPage, playerOf } from './browser.ts'
import {
  configWith,
  type Json,
  requireBody,
  requireHaproxy,
  requireLinesOf,
  requireRegions,
  requireSameShape,
} from './documentation/examples.ts'
import { type Block, readMark, stepsOf } from './documentation/page.ts'
import { requireTypes, type Script } from './documentation/scripts.ts'
import { openShell, type Shell } from './documentation/shell.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const GUIDE = 'docs/first-game.md'
const INDEX = 'docs/README.md'
const DOTS_URL = 'http://dots.cdn.localhost/'
/** What follows the guide needs its game; the index sets the variables that all other pages use. */
const FIRST = ['README.md', GUIDE, INDEX]
const OTHERS = [...globSync('docs/*.md', { cwd: ROOT }).sort(), 'sdk/README.md'].filter((page) => !FIRST.includes(page))
/** Blocks, and the lines that say what to open. A guide with fewer has not been read to its end. */
const GUIDE_STEPS_MIN = 12

test('every block and example of the documentation works, in order, against one platform', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const folder = temporaryFolder(t)
  const settings = await freeSettings(folder)
  const started = startMuster(settings)
  await started.ready
  const port = settings.MUSTER_EDGE_HTTP_PORT
  const credentials = {
    MUSTER_URL: `http://localhost:${port}`,
    MUSTER_TOKEN: readFileSync(join(folder, 'admin-token'), 'utf8').trim(),
  }
  const visitor: Visitor = { browser, port }

  await t.test('README.md', async (page_test) => {
    for (const step of stepsOf(read('README.md'))) {
      if (step.kind === 'open') await visitArena(visitor, step.url)
      else if (readMark(step).name === 'printed by') requireStartLines(step.text, started)
      else explain(page_test, 'README.md', step)
    }
  })

  const guide_shell = openShell(t, ROOT, { HOME: temporaryFolder(t), ...credentials })
  await t.test(GUIDE, (page_test) => followGuide(page_test, guide_shell, visitor))
  await t.test('the complete game of sdk/README.md, deployed as the guide deploys', (page_test) =>
    playSdkGame(page_test, guide_shell, visitor),
  )

  // A reader of the other pages has another shell, with the variables of the index and nothing else.
  const home = temporaryFolder(t)
  writeFileSync(join(home, '.curlrc'), 'fail-with-body\n')
  const folders = { BACKUPS: temporaryFolder(t), RESTORED: temporaryFolder(t) }
  const shell = openShell(t, ROOT, { ...settings, ...credentials, HOME: home, ...folders })
  const reader: Reader = { shell, credentials, scripts: [], printed: '' }
  for (const page of [INDEX, ...OTHERS]) {
    await t.test(page, async (page_test) => {
      for (const step of stepsOf(read(page))) {
        assert.equal(step.kind, 'block', `${page}:${step.line} is to be opened, and nothing opens it`)
        if (step.kind === 'block') await follow(page_test, { page, step, reader })
      }
    })
  }
  await t.test('examples in JavaScript fit the types of the SDK', (types_test) => {
    assert.ok(reader.scripts.length > 3, `${reader.scripts.length} scripts`)
    requireTypes(ROOT, temporaryFolder(types_test), reader.scripts)
  })
})

test('the index names every page, and README names the index', () => {
  const index = read(INDEX)
  const missing = globSync('docs/*.md', { cwd: ROOT })
    .map((page) => basename(page))
    .filter((page) => page !== basename(INDEX) && !index.includes(`](${page})`))
  assert.deepEqual(missing, [])
  assert.ok(read('README.md').includes('](docs/README.md)'))
})

test('a refusal is shown with its code and message, and without a stack trace', async (t) => {
  const first = stepsOf(read(GUIDE)).find((step) => step.kind === 'block')
  assert.ok(first?.language === 'sh')
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

function read(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}

type Visitor = { browser: Browser; port: string }
type Reader = {
  shell: Shell
  credentials: { MUSTER_URL: string; MUSTER_TOKEN: string }
  /** Collected, to be checked in one pass. */
  scripts: Script[]
  /** What the last command printed. */
  printed: string
}

/** Runs or checks a block for what it is. A block that is neither run nor explained fails. */
async function follow(t: TestContext, place: { page: string; step: Block; reader: Reader }): Promise<void> {
  const { page, step, reader } = place
  const name = `${page}:${step.line}`
  const { name: mark, value } = readMark(step)
  switch (`${step.language} ${mark}`.trim()) {
    case 'sh':
      reader.printed = await reader.shell.run(name, step.text)
      return
    case 'json response':
      return requireSameShape(step.text, reader.printed)
    case 'json in the config':
      return requireConfig(name, reader, configWith(await currentConfig(reader), value, step.text))
    case 'json body of':
      return requireBody(value, step.text)
    case 'toml muster.toml':
      return requireRegions(step.text)
    case 'gdscript lines of':
      return requireLinesOf(join(ROOT, value), step.text)
    case 'haproxy':
      if (!requireHaproxy(step.text)) t.diagnostic(`${name} is not checked: haproxy is not installed`)
      return
    case 'js':
    case 'ts':
    case 'html':
      reader.scripts.push({ page, ...step })
      return
    default:
      return explain(t, page, step)
  }
}

/** For a block that is not run here: another test reads it from the page, or the page says why none can. */
function explain(t: TestContext, page: string, step: Block): void {
  const place = `${page}:${step.line}`
  const { name, value } = readMark(step)
  if (name === 'run by') {
    const text = read(value)
    assert.ok(text.includes(basename(page)) && text.includes('readFile'), `${value} does not read ${page}`)
    return
  }
  assert.equal(name, 'not run', `${place} is neither run nor explained`)
  assert.ok(value.length > 10, `${place} does not say why it is not run`)
  t.diagnostic(`${place} is not run: ${value}`)
}

async function currentConfig({ credentials, shell }: Reader): Promise<Json> {
  const ids = await shell.run('ids', 'echo "$GAME_ID $NAMESPACE_ID"')
  const [game_id, namespace_id] = ids.trim().split(' ')
  const game = `${credentials.MUSTER_URL}/cloud/games/${game_id}`
  const { namespace } = await call<{ namespace: { version_id: string } }>(
    credentials,
    `${game}/namespaces/${namespace_id}`,
  )
  const { version } = await call<{ version: { config: Json } }>(credentials, `${game}/versions/${namespace.version_id}`)
  return version.config
}

async function requireConfig(name: string, { credentials, shell }: Reader, config: Json): Promise<void> {
  const game_id = (await shell.run('id', 'echo "$GAME_ID"')).trim()
  const url = `${credentials.MUSTER_URL}/cloud/games/${game_id}/versions/validate`
  const { errors } = await call<{ errors: unknown[] }>(credentials, url, { display_name: name, config })
  assert.deepEqual(errors, [], name)
}

async function call<T>(credentials: { MUSTER_TOKEN: string }, url: string, body?: object): Promise<T> {
  const headers = { authorization: `Bearer ${credentials.MUSTER_TOKEN}`, 'content-type': 'application/json' }
  const response = await fetch(
    url,
    body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) },
  )
  const text = await response.text()
  assert.equal(response.status, 200, `${url}: ${text}`)
  return JSON.parse(text) as T
}

/** README shows the lines of a first start. Roles start at the same time, so their order varies. */
function requireStartLines(shown: string, started: Started): void {
  const names = (text: string) =>
    [...text.matchAll(/^ {2}(?:(?:✓|ok) +)?([a-zA-Z]+(?: [a-z]+)?) {2,}\S/gm)].map(([, name]) => name)
  assert.deepEqual(names(shown).sort(), names(started.output()).sort())
}

/** Every block twice, as the guide promises, and both versions of the game in two windows. */
async function followGuide(t: TestContext, shell: Shell, visitor: Visitor): Promise<void> {
  const steps = stepsOf(read(GUIDE))
  assert.ok(steps.length >= GUIDE_STEPS_MIN, `${GUIDE} has ${steps.length} steps`)
  const visits: Visit[] = []
  for (const step of steps) {
    if (step.kind === 'open') visits.push(await visitDots(visitor, step.url))
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
async function playSdkGame(t: TestContext, shell: Shell, visitor: Visitor): Promise<void> {
  const folder = temporaryFolder(t)
  const blocks = stepsOf(read('sdk/README.md')).filter((step) => step.kind === 'block')
  const server = blocks.find(({ language, text }) => language === 'js' && text.startsWith('// server/main.js'))
  const page = blocks.find(({ language }) => language === 'html')
  assert.ok(server !== undefined && page !== undefined)
  writeFileSync(join(folder, 'main.js'), server.text)
  writeFileSync(join(folder, 'index.html'), page.text)
  await shell.run(
    'the complete game',
    `mkdir -p node_modules/@muster/sdk && cp sdk/*.js node_modules/@muster/sdk
     echo '{ "type": "module", "exports": { "./*": "./*.js" } }' > node_modules/@muster/sdk/package.json
     cp ${folder}/main.js server/main.js
     cp ${folder}/index.html site/index.html
     upload_build && upload_site && deploy`,
  )
  const windows = [await open(visitor, DOTS_URL), await open(visitor, DOTS_URL)]
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
async function visitDots(visitor: Visitor, address: string): Promise<Visit> {
  const [ada, bob] = [await open(visitor, address), await open(visitor, address)]
  const lobby_id = await lobbyOf(ada)
  assert.equal(await lobbyOf(bob), lobby_id, 'both have the same lobby')
  await ada.mouse.click(100, 100)
  const dot = bob.locator('i')
  await dot.waitFor()
  const dot_color = await dot.evaluate((element: { style: { background: string } }) => element.style.background)
  for (const page of [ada, bob]) await page.context().close()
  return { lobby_id, dot_color }
}

/** The example that is deployed at the start: two windows, each with its name given and Play clicked. */
async function visitArena(visitor: Visitor, address: string): Promise<void> {
  const players = []
  for (const name of ['Ada', 'Grace'])
    players.push(await playerOf(await open(visitor, `${address}?name=${name}&autoplay`)))
  const [ada, grace] = players
  assert.equal(await ada!.lobby_id(), await grace!.lobby_id())
  await ada!.seesPlayers(2)
  for (const player of players) await player.leave()
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

function open({ browser, port }: Visitor, address: string): Promise<Page> {
  const url = new URL(address)
  url.port = port
  return openPage(browser, url.href)
}
