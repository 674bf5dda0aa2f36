// `npm test` itself, on test files that pass, fail and never end.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { until } from './until.ts'

const RUN = join(import.meta.dirname, 'run.ts')
const FILES = {
  'fails.test.mjs': "import { test } from 'node:test'; test('fails', () => { throw new Error('why') })",
  'passes.test.mjs': "import { test } from 'node:test'; test('passes', () => {})",
  // No timer of its process can end it.
  'blocked.test.mjs': `import { test } from 'node:test'; import { writeFileSync } from 'node:fs'
    test('blocks', () => { writeFileSync(import.meta.dirname + '/blocked', ''); for (;;) {} })`,
}

async function writeFiles(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-run-'))
  t.after(() => rm(folder, { recursive: true }))
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(folder, name), text)
  return folder
}

/** `end` runs beside the run. */
async function runFiles(
  t: TestContext,
  { names, flags = [], env = {}, end }: { names: string[]; flags?: string[]; env?: object; end?: string },
): Promise<{ exit_code: number; failed: string[]; output: string }> {
  const folder = await writeFiles(t)
  const list = join(folder, 'failed')
  const { NODE_TEST_CONTEXT: _, ...rest } = process.env
  const paths = names.map((name) => join(folder, name))
  const child = spawn(process.execPath, [RUN, '--failed-to', list, ...flags, ...paths], {
    env: { ...rest, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  const exit = once(child, 'exit')
  if (end !== undefined) {
    await until('the file is under way', () => existsSync(join(folder, end)))
    child.kill('SIGTERM')
  }
  const [exit_code] = await exit
  const failed = existsSync(list) ? (await readFile(list, 'utf8')).split('\n').filter(Boolean) : []
  return { exit_code, failed: failed.map((file) => basename(file)), output: (await output).join('') }
}

test('a run that is ended names the files that failed and those that were under way, with its own exit code', async (t) => {
  const names = ['fails.test.mjs', 'passes.test.mjs', 'blocked.test.mjs']
  const { exit_code, failed, output } = await runFiles(t, { names, end: 'blocked' })
  assert.equal(exit_code, 130, output)
  assert.deepEqual(failed, ['blocked.test.mjs', 'fails.test.mjs'])
  assert.match(output, /✖ .*blocked\.test\.mjs was under way when the run was ended/)
  assert.match(output, /✖ .*fails\.test\.mjs failed/)
})

test('a run past its bound is ended', async (t) => {
  const { exit_code } = await runFiles(t, { names: ['blocked.test.mjs'], flags: ['--seconds-max', '3'] })
  assert.equal(exit_code, 130)
})

test('a file whose event loop is blocked is ended by the run, which goes on with the next', async (t) => {
  const { exit_code, failed, output } = await runFiles(t, {
    names: ['blocked.test.mjs', 'passes.test.mjs'],
    env: { TEST_FILE_MS_MAX: '2000', TEST_EXIT_MS_MAX: '1000' },
  })
  assert.equal(exit_code, 1, output)
  assert.deepEqual(failed, ['blocked.test.mjs'])
  assert.match(output, /blocked\.test\.mjs has not ended within 3 s, and its event loop is blocked\./)
  assert.match(output, /blocked\.test\.mjs ended by SIGKILL/)
  assert.match(output, /The slowest of 2 test files that ended:\n +[\d.]+ s {2}.*blocked\.test\.mjs/)
})
