// `npm test` itself, on test files that pass, fail and never end.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runFiles } from './run-files.ts'

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
