// Test files that do not end, run as `npm test` runs them, with limits that a test can wait for.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { readStat } from '../../src/node/procfs.ts'
import { until } from '../support/until.ts'

const RUNNER_MS_MAX = 120_000
const LIMITS = { TEST_MS_MAX: '2000', TEST_EXIT_MS_MAX: '1000', TEST_FILE_MS_MAX: '60000' }
const HEAD = "import { after, before, test } from 'node:test'; import { createServer } from 'node:http'\n"
const LEAK = 'createServer().listen(0)'
const NEVER = 'new Promise(() => {})'

/** What the runner says of a test file with this text. Fails the test when the runner does not end. */
async function runFile(t: TestContext, text: string, limits = {}): Promise<{ exit_code: number; output: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-file-watchdog-'))
  t.after(() => rm(folder, { recursive: true }))
  const file = join(folder, 'some.test.mjs')
  await writeFile(file, HEAD + text)
  const { NODE_TEST_CONTEXT: _, ...rest } = process.env
  const env = { ...rest, ...LIMITS, ...limits }
  const preload = pathToFileURL(join(import.meta.dirname, 'file-watchdog.ts')).href
  const args = ['--test', '--test-reporter=spec', `--test-timeout=${env.TEST_MS_MAX}`, `--import=${preload}`, file]
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { env, cwd: folder, timeout: RUNNER_MS_MAX }, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== 'number') reject(error)
      else resolve({ exit_code: error === null ? 0 : Number(error.code), output: stdout + stderr })
    })
  })
}

const LEAKS: Record<string, string> = {
  passed: `test('leaks', () => { ${LEAK} })`,
  failed: `test('leaks', () => { ${LEAK}; throw new Error('why') })`,
  'timed out': `test('leaks', () => { ${LEAK}; return ${NEVER} })`,
  'failed with an endless t.after': `test('leaks', (t) => { t.after(() => ${NEVER}); ${LEAK}; throw new Error('why') })`,
  'waited for an endless before': `before(() => { ${LEAK}; return ${NEVER} })\ntest('leaks', () => {})`,
}
// What these tests take is waiting.
suite('a test file', { concurrency: 5 }, () => {
  test('that is well is left alone, however long its tests take', async (t) => {
    const { exit_code, output } = await runFile(
      t,
      "for (const n of [1, 2]) test('passes ' + n, () => new Promise((resolve) => setTimeout(resolve, 1500)))",
    )
    assert.equal(exit_code, 0, output)
    assert.doesNotMatch(output, /has not ended/)
  })

  for (const [what, text] of Object.entries(LEAKS)) {
    test(`whose last test ${what} and left a server open is ended, and the server is named`, async (t) => {
      const { exit_code, output } = await runFile(t, text)
      assert.equal(exit_code, 1)
      assert.match(output, /some\.test\.mjs has not ended within 1 s after its last test\./)
      assert.match(output, /open: .*1 TCPServerWrap/)
      assert.match(output, /server at \{ address: '::', family: 'IPv6', port: \d+ \}/)
      if (text.includes('why')) assert.match(output, /Error: why/)
    })
  }

  const limits = { TEST_MS_MAX: '100000', TEST_FILE_MS_MAX: '2000' }
  test('that takes too long is ended, and the test under way is named', async (t) => {
    const { exit_code, output } = await runFile(t, `test('waits', () => { ${LEAK}; return ${NEVER} })`, limits)
    assert.equal(exit_code, 1)
    assert.match(output, /some\.test\.mjs has not ended within 2 s\.\n {2}under way: "waits"/)
  })

  test('whose failed test never ends its hooks is ended, and the failure is named', async (t) => {
    const { exit_code, output } = await runFile(t, LEAKS['failed with an endless t.after']!, limits)
    assert.equal(exit_code, 1)
    assert.match(output, /in its hooks: "leaks", which failed with Error: why/)
  })

  test('that is ended takes along the processes that it started, and names them', async (t) => {
    const { exit_code, output } = await runFile(
      t,
      "import { spawn } from 'node:child_process'\ntest('leaks', () => { spawn('sh', ['-c', 'sleep 1000 & wait']) })",
    )
    assert.equal(exit_code, 1)
    const pids = [...output.matchAll(/process (\d+): (sh -c|sleep 1000)/g)].map(([, pid]) => Number(pid))
    assert.equal(pids.length, 2, output)
    await until('both are gone', () => pids.every((pid) => ['Z', undefined].includes(readStat(pid)?.state)))
  })

  test('forks programs that are not watched, nor tests themselves', async (t) => {
    const { exit_code, output } = await runFile(
      t,
      `import { fork } from 'node:child_process'
      import assert from 'node:assert'
      import { writeFileSync } from 'node:fs'
      import { text } from 'node:stream/consumers'
      test('forks', async () => {
        writeFileSync('program.mjs', 'console.log(process.execArgv.some((flag) => flag.startsWith("--import")))')
        const program = fork('program.mjs', { silent: true })
        assert.equal(await text(program.stdout), 'true\\n')
      })`,
    )
    assert.equal(exit_code, 0, output)
  })
})
