// The documentation as a reader follows it, against one platform: every block of every page in order, and the pages that
// the text says to open, in Chromium. A block that no test runs says why in the line above it. The guide has a test of
// its own, guide.test.ts.
import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { lacking } from '../run/optional-programs.ts'
import { freeSettings, type Started, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { openBrowser, playerOf } from './browser.ts'
import {
  configWith,
  type Json,
  requireBody,
  requireHaproxy,
  requireLinesOf,
  requireRegions,
  requireSameShape,
} from './documentation/examples.ts'
import { openAddress, type Requester } from './documentation/open-address.ts'
import { type Block, explain, ROOT, readMark, readPage, stepsOf } from './documentation/page.ts'
import { requireTypes, type Script } from './documentation/scripts.ts'
import { openShell, type Shell } from './documentation/shell.ts'

const GUIDE = 'docs/api-by-hand.md'
const INDEX = 'docs/README.md'
/** These have steps of their own, or come before all others: the index sets the variables that they use. */
const NOT_OTHERS = ['README.md', GUIDE, INDEX]
const PAGES = [...globSync('docs/*.md', { cwd: ROOT }).sort(), 'sdk/README.md']
const OTHERS = PAGES.filter((page) => !NOT_OTHERS.includes(page))

test('every block and example of the documentation works, in order, against one platform', async (t) => {
  const missing = lacking('chromium', 'curl', 'git')
  if (missing !== null) return t.skip(missing)
  const browser = await openBrowser(t)
  if (browser === null) return
  const folder = temporaryFolder(t)
  const settings = await freeSettings(folder)
  await placeCluster(folder)
  const started = startMuster(settings)
  await started.ready
  const port = settings.MUSTER_EDGE_HTTP_PORT
  const credentials = {
    MUSTER_URL: `http://localhost:${port}`,
    MUSTER_TOKEN: readFileSync(join(folder, 'admin-token'), 'utf8').trim(),
  }
  const requester: Requester = { browser, port }

  await t.test('README.md', async (page_test) => {
    for (const step of stepsOf(readPage('README.md'))) {
      if (step.kind === 'open') await visitArena(requester, step.url)
      else if (readMark(step).name === 'printed by') requireStartLines(step.text, started)
      else explain(page_test, 'README.md', step)
    }
  })

  // A reader of the other pages has another shell, with the variables of the index and nothing else.
  const home = temporaryFolder(t)
  writeFileSync(join(home, '.curlrc'), 'fail-with-body\n')
  const folders = { BACKUPS: temporaryFolder(t), RESTORED: temporaryFolder(t), REPOSITORY: temporaryFolder(t) }
  const shell = openShell(t, ROOT, { ...settings, ...credentials, ...folders, HOME: home, GAME_NAME: 'arena' })
  const reader: Reader = { shell, credentials, scripts: [], printed: '' }
  for (const page of [INDEX, ...OTHERS]) {
    await t.test(page, async (page_test) => {
      for (const step of stepsOf(readPage(page))) {
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
  const index = readPage(INDEX)
  const missing = globSync('docs/*.md', { cwd: ROOT })
    .map((page) => basename(page))
    .filter((page) => page !== basename(INDEX) && !index.includes(`](${page})`))
  assert.deepEqual(missing, [])
  assert.ok(readPage('README.md').includes('](docs/README.md)'))
})

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
      if (!requireHaproxy(step.text)) t.diagnostic(`${name} is not checked: it needs HAProxy`)
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

/** The example that is deployed at the start: two windows, each with its name given and Play clicked. */
async function visitArena(requester: Requester, address: string): Promise<void> {
  const players = []
  for (const name of ['Ada', 'Grace'])
    players.push(await playerOf(await openAddress(requester, `${address}?name=${name}&autoplay`)))
  const [ada, grace] = players
  assert.equal(await ada!.lobby_id(), await grace!.lobby_id())
  await ada!.seesPlayers(2)
  for (const player of players) await player.leave()
}
