// Several test files in one process: what fails in one is reported of that one.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { planBatches, writeBatches } from './batches.ts'
import { type Outcome, sumUp } from './outcome.ts'
import { USE_VARIABLE } from './processor-time.ts'

const RUN_MS_MAX = 120_000
const HEAD = "import { after, test } from 'node:test'\n"
const PRELOADS = ['nobody-caught.ts', 'file-watchdog.ts'].map(
  (name) => pathToFileURL(join(import.meta.dirname, name)).href,
)
const REPORTER = join(import.meta.dirname, 'outcome.ts')

/** The files run in one process, in the order of their names. */
async function runBatch(t: TestContext, texts: Record<string, string>): Promise<Outcome & { exit_code: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-batch-'))
  t.after(() => rm(folder, { recursive: true }))
  const paths = Object.keys(texts).map((name) => join(folder, name))
  for (const [name, text] of Object.entries(texts)) await writeFile(join(folder, name), HEAD + text)
  const entries = (await writeBatches(paths, folder)).map(({ path }) => path)
  assert.equal(entries.length, 1)
  const list = join(folder, 'outcome.jsonl')
  const args = [
    '--test',
    `--test-reporter=${REPORTER}`,
    `--test-reporter-destination=${list}`,
    ...PRELOADS.map((url) => `--import=${url}`),
  ]
  const { NODE_TEST_CONTEXT: _context, [USE_VARIABLE]: _file, ...inherited } = process.env
  const env = { ...inherited, TEST_EXIT_MS_MAX: '1000' }
  const exit_code = await new Promise<number>((resolve) => {
    execFile(process.execPath, [...args, ...entries], { env, cwd: folder, timeout: RUN_MS_MAX }, (error) =>
      resolve(error === null ? 0 : Number(error.code)),
    )
  })
  return { ...sumUp(await readFile(list, 'utf8')), exit_code }
}

const namesOf = (paths: Iterable<string>): string[] => [...paths].map((path) => basename(path)).sort()

test('a test that fails in a batch fails its file, and no other', async (t) => {
  const outcome = await runBatch(t, {
    'a.test.mjs': "test('passes', () => {}); after(() => { globalThis.is_a_over = true })",
    'b.test.mjs': "test('fails', () => { throw new Error('why') })",
    'c.test.mjs': "test('a has ended', (t) => t.assert.equal(globalThis.is_a_over, true)); test('two', () => {})",
  })
  assert.equal(outcome.exit_code, 1)
  assert.deepEqual(namesOf(outcome.failed_files), ['b.test.mjs'])
  assert.equal(outcome.executed, 4)
  assert.match(outcome.failures[0] ?? '', /b\.test\.mjs: "fails"\n {2}Error: why\n {2}at .*b\.test\.mjs/)
  assert.deepEqual(namesOf(outcome.durations_ms.keys()), ['a.test.mjs', 'b.test.mjs', 'c.test.mjs'])
  assert.deepEqual([...outcome.under_way], [])
})

test('a file that cannot be imported fails, and the next ones run', async (t) => {
  const outcome = await runBatch(t, {
    'a.test.mjs': "import './missing.mjs'",
    'b.test.mjs': "test('passes', () => {})",
  })
  assert.equal(outcome.exit_code, 1)
  assert.deepEqual(namesOf(outcome.failed_files), ['a.test.mjs'])
  assert.match(outcome.failures[0] ?? '', /missing\.mjs/)
  assert.equal(outcome.executed, 1)
})

test('a process that dies names the file that was under way, and not those before it', async (t) => {
  const outcome = await runBatch(t, {
    'a.test.mjs': "test('passes', () => {})",
    // Its reports have left the process by then.
    'b.test.mjs': "test('dies', () => new Promise(() => setTimeout(() => process.kill(process.pid, 'SIGKILL'), 500)))",
    'c.test.mjs': "test('passes', () => {})",
  })
  assert.equal(outcome.exit_code, 1)
  assert.deepEqual(namesOf(outcome.failed_files), ['b.test.mjs'])
  assert.deepEqual(namesOf(outcome.under_way), ['b.test.mjs'])
})

test('an error that nobody caught fails the file, and the next ones run', async (t) => {
  const outcome = await runBatch(t, {
    'a.test.mjs': `after(() => new Promise((resolve) => {
      setTimeout(() => { throw new Error('late') }, 1)
      setTimeout(resolve, 100)
    })); test('passes', () => {})`,
    'b.test.mjs': "test('passes', () => {})",
  })
  assert.equal(outcome.exit_code, 1)
  assert.deepEqual(namesOf(outcome.failed_files), ['a.test.mjs'])
  assert.deepEqual(namesOf(outcome.durations_ms.keys()), ['a.test.mjs', 'b.test.mjs'])
})

test('a batch may take as long as its tests do, and ends soon after the last of them', async (t) => {
  const outcome = await runBatch(t, {
    'a.test.mjs': "test('passes', () => {})",
    'b.test.mjs':
      "test('takes longer than the end of a process may', () => new Promise((done) => setTimeout(done, 2000)))",
    'c.test.mjs': "import { createServer } from 'node:http'; test('leaks', () => { createServer().listen(0) })",
  })
  assert.equal(outcome.exit_code, 1)
  assert.deepEqual(namesOf(outcome.durations_ms.keys()), ['a.test.mjs', 'b.test.mjs', 'c.test.mjs'])
  assert.deepEqual(namesOf(outcome.failed_files), ['c.test.mjs'])
})

test('every file is in one batch, and a file that runs alone or undisturbed is in one of its own', () => {
  const files = Array.from({ length: 45 }, (_, index) => ({
    path: `${index}`,
    is_alone: index % 20 === 0,
    is_undisturbed: index === 20,
  }))
  const batches = planBatches(files)
  assert.deepEqual(
    batches.slice(0, 3).map(({ paths }) => paths),
    [['0'], ['20'], ['40']],
  )
  assert.deepEqual(
    batches.slice(3).map((batch) => batch.paths.length),
    // Sizes of the batches of 42 files. Short batches run last.
    [16, 15, 6, 5],
  )
  const paths = batches.flatMap((batch) => batch.paths)
  assert.deepEqual(new Set(paths), new Set(files.map(({ path }) => path)))
  assert.equal(paths.length, files.length)
  assert.deepEqual(
    batches.filter(({ is_undisturbed }) => is_undisturbed).map((batch) => batch.paths),
    [['20']],
  )
})
