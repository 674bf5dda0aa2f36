// `npm test` itself, on test files that pass, fail and never end.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { type TestContext, test } from 'node:test'
import { until } from '../support/until.ts'
import { whyNotHidden } from './hidden-programs.ts'
import { lacking } from './optional-programs.ts'

const RUN = join(import.meta.dirname, 'main.ts')
/** From a folder of temporary files. */
const DATABASE = relative(join(tmpdir(), 'any'), join(import.meta.dirname, '../support/database.ts'))
const ASKS = `import { test } from 'node:test'
  test('asks', (t) => t.diagnostic(process.env.TEST_DATABASE_URL ? 'a database' : 'no database'))`
// The runner prints what a file did when all that come before it by name have ended.
const FILES = {
  'fails.test.mjs': "import { test } from 'node:test'; test('fails', () => { throw new Error('why') })",
  'passes.test.mjs': "import { test } from 'node:test'; test('passes', () => {})",
  'skips.test.mjs': `import { describe, test } from 'node:test'; test('passes', () => {})
    for (const name of ['one', 'two']) test(name, (t) => t.skip('needs bubblewrap, Chromium'))
    test('three', { skip: 'needs root, bubblewrap' }, () => {})
    describe('four', { skip: 'needs writable control groups' }, () => test('inside', () => {}))
    test('five', { skip: 'the moon is full' }, () => {})`,
  'looks.test.mjs': `import { spawnSync } from 'node:child_process'; import { test } from 'node:test'
    const find = (program) => spawnSync(program, ['--version'], { env: { PATH: '/usr/bin:/bin' } }).error?.code ?? 'found'
    test('looks', (t) => t.diagnostic(['git', '/usr/bin/git', 'sh'].map(find).join(' ') + ' uid ' + process.getuid()))`,
  'asks.test.mjs': ASKS,
  // A module is found by the text of its import.
  'uses.test.mjs': `${ASKS}; if (false) await import('${DATABASE}')`,
  'times.test.mjs': `import { readdirSync, rmSync, writeFileSync } from 'node:fs'; import { test } from 'node:test'
    import { setTimeout } from 'node:timers/promises'
    test('is alone', async (t) => {
      const mark = import.meta.dirname + '/running-' + process.pid
      writeFileSync(mark, '')
      await setTimeout(500)
      t.assert.equal(readdirSync(import.meta.dirname).filter((name) => name.startsWith('running-')).length, 1)
      rmSync(mark)
    })`,
  // No timer of its process can end it.
  'stuck.test.mjs': `import { test } from 'node:test'; import { writeFileSync } from 'node:fs'
    test('blocks', () => { writeFileSync(import.meta.dirname + '/blocked', ''); for (;;) {} })`,
}

async function writeFiles(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-run-'))
  t.after(() => rm(folder, { recursive: true }))
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(folder, name), text)
  for (const name of ['a.test.mjs', 'b.test.mjs', 'c.test.mjs'])
    await writeFile(join(folder, name), `// Runs while no other file does: it looks.\n${FILES['times.test.mjs']}`)
  return folder
}

/** `is_due`: when the run is ended by a signal, from what it has written and the folder of the test files. */
async function runFiles(
  t: TestContext,
  options: {
    names: string[]
    flags?: string[]
    env?: object
    is_due?: (output: string, folder: string) => boolean
  },
): Promise<{ exit_code: number; failed: string[]; output: string }> {
  const { names, flags = [], env = {}, is_due } = options
  const folder = await writeFiles(t)
  const list = join(folder, 'failed')
  const { NODE_TEST_CONTEXT: _, ...rest } = process.env
  const paths = names.map((name) => join(folder, name))
  const child = spawn(process.execPath, [RUN, '--failed-to', list, ...flags, ...paths], {
    env: { ...rest, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (data) => (output += data))
  const close = once(child, 'close')
  if (is_due !== undefined) {
    await until('the run may be ended', () => is_due(output, folder))
    child.kill('SIGTERM')
  }
  const [exit_code] = await close
  const failed = existsSync(list) ? (await readFile(list, 'utf8')).split('\n').filter(Boolean) : []
  return { exit_code, failed: failed.map((file) => basename(file)), output }
}

test('a run that is ended names the files that failed and those that were under way, with its own exit code', async (t) => {
  const { exit_code, failed, output } = await runFiles(t, {
    names: ['fails.test.mjs', 'stuck.test.mjs'],
    is_due: (written, folder) => written.includes('✖ fails') && existsSync(join(folder, 'blocked')),
  })
  assert.equal(exit_code, 130, output)
  assert.deepEqual(failed, ['fails.test.mjs', 'stuck.test.mjs'])
  assert.match(output, /✖ .*stuck\.test\.mjs was under way when the run was ended/)
  assert.match(output, /✖ .*fails\.test\.mjs failed/)
  assert.match(output, /✖ .*fails\.test\.mjs: "fails"\n {2}Error: why/)
})

test('a file that must be undisturbed runs while no other does, and counts as the others', async (t) => {
  const names = ['passes.test.mjs', 'a.test.mjs', 'b.test.mjs', 'times.test.mjs', 'c.test.mjs']
  const { exit_code, output } = await runFiles(t, { names })
  assert.equal(exit_code, 0, output)
  const passed = [...output.matchAll(/^ℹ pass (\d+)$/gm)].map(([, count]) => Number(count))
  assert.deepEqual(passed, [3, 2])
  assert.match(output, /The slowest of 5 test files that ended:/)
  const failing = await runFiles(t, { names: ['a.test.mjs', 'fails.test.mjs'] })
  assert.equal(failing.exit_code, 1)
  assert.deepEqual(failing.failed, ['fails.test.mjs'])
})

test('a run starts PostgreSQL where a file uses it, and not elsewhere', async (t) => {
  const names = ['asks.test.mjs']
  const env = { TEST_DATABASE_URL: undefined }
  assert.match((await runFiles(t, { names, env })).output, /ℹ no database/)
  const using = await runFiles(t, { names: ['uses.test.mjs'], env })
  assert.match(using.output, /ℹ a database/)
})

test('a run past its bound is ended', async (t) => {
  const { exit_code } = await runFiles(t, { names: ['stuck.test.mjs'], flags: ['--seconds-max', '3'] })
  assert.equal(exit_code, 130)
})

test('a file whose event loop is blocked is ended by the run, which goes on with the next', async (t) => {
  const { exit_code, failed, output } = await runFiles(t, {
    names: ['stuck.test.mjs', 'passes.test.mjs'],
    env: { TEST_FILE_MS_MAX: '2000', TEST_EXIT_MS_MAX: '1000' },
  })
  assert.equal(exit_code, 1, output)
  assert.deepEqual(failed, ['stuck.test.mjs'])
  assert.match(output, /stuck\.test\.mjs has not ended within 3 s, and its event loop is blocked\./)
  assert.match(output, /stuck\.test\.mjs ended by SIGKILL/)
  assert.match(output, /The slowest of 2 test files that ended:\n +[\d.]+ s {2}.*stuck\.test\.mjs/)
})

test('the end of a run counts what the skipped tests need, with the command that installs the programs', async (t) => {
  const { exit_code, output } = await runFiles(t, { names: ['skips.test.mjs', 'passes.test.mjs'] })
  assert.equal(exit_code, 0, output)
  assert.deepEqual(output.trimEnd().split('\n').slice(-2), [
    '5 tests need: bubblewrap (3), Chromium (2), root (1), the moon is full (1), writable control groups (1)',
    'sudo apt-get install --no-install-recommends bubblewrap chromium-headless-shell',
  ])
})

test('a run in which nothing was skipped says nothing of it', async (t) => {
  const { output } = await runFiles(t, { names: ['passes.test.mjs'] })
  assert.doesNotMatch(output, /tests? needs?:|apt-get/)
})

test('--without-programs hides the optional programs from PATH and from absolute paths, and nothing else', async (t) => {
  const missing = lacking('git') ?? whyNotHidden(join(await writeFiles(t), 'layers'))
  if (missing !== null) return t.skip(missing)
  const looks = async (...flags: string[]) => {
    const { exit_code, output } = await runFiles(t, { names: ['looks.test.mjs'], flags })
    assert.equal(exit_code, 0, output)
    return /ℹ (.* uid \d+)/.exec(output)?.[1]
  }
  const uid = process.getuid?.()
  assert.equal(await looks('--without-programs'), `ENOENT ENOENT found uid ${uid}`)
  assert.equal(await looks(), `found found found uid ${uid}`)
})
