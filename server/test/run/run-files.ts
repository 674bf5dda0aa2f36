// Runs `npm test` itself, on test files that pass, fail and never end.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import type { TestContext } from 'node:test'
import { until } from '../support/until.ts'

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

/** Returns the folder of the test files. */
export async function writeFiles(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-run-'))
  t.after(() => rm(folder, { recursive: true }))
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(folder, name), text)
  for (const name of ['a.test.mjs', 'b.test.mjs', 'c.test.mjs'])
    await writeFile(join(folder, name), `// Runs while no other file does: it looks.\n${FILES['times.test.mjs']}`)
  return folder
}

/** `is_due`: when the run is ended by a signal, from what it has written and the folder of the test files. */
export async function runFiles(
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
