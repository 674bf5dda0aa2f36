// `npm test`, and `npm test -- FILE...`: starts one PostgreSQL for the whole run, runs the test files of every
// workspace, each in a process of its own, and ends the server whatever happened. A run in which no test was executed
// has failed: it would otherwise look like one in which all passed.
import { globSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { startTestServer } from './database.ts'

const ROOT = dirname(dirname(import.meta.dirname))
const PATTERN = '{contract,server,sdk,cli,scripts,examples,bench}/**/*.test.ts'
const FILES_AT_ONCE_MAX = 2
/** A test that hangs must not hang the run. */
const TEST_MS_MAX = 300_000

process.exitCode = await runTests(process.argv.slice(2))

async function runTests(asked: readonly string[]): Promise<number> {
  const files = asked.length > 0 ? asked.map((file) => resolve(file)) : findFiles()
  if (files.length === 0) {
    console.error('There is no test file.')
    return 1
  }
  const interrupt = new AbortController()
  const onSignal = (signal: NodeJS.Signals): void => interrupt.abort(signal)
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  try {
    const server = await startTestServer()
    try {
      return interrupt.signal.aborted ? 1 : await runFiles(files, server.url, interrupt.signal)
    } finally {
      await server.stop()
    }
  } finally {
    process.off('SIGINT', onSignal)
    process.off('SIGTERM', onSignal)
  }
}

function findFiles(): string[] {
  return globSync(PATTERN, { cwd: ROOT, exclude: (name) => name === 'node_modules' })
    .map((file) => resolve(ROOT, file))
    .sort()
}

async function runFiles(files: readonly string[], database_url: string, signal: AbortSignal): Promise<number> {
  const tests = run({
    files,
    cwd: process.cwd(),
    concurrency: FILES_AT_ONCE_MAX,
    timeout: TEST_MS_MAX,
    signal,
    env: { ...process.env, TEST_DATABASE_URL: database_url },
  })
  let executed = 0
  let success = false
  tests.on('test:summary', (summary) => {
    // One comes for every file, and the last, without a file, for the run.
    if (summary.file !== undefined) return
    success = summary.success
    executed = summary.counts.tests - summary.counts.skipped - summary.counts.todo
  })
  for await (const text of tests.compose(new spec())) process.stdout.write(text)
  if (signal.aborted) return 130
  if (executed === 0) console.error('No test was executed.')
  return success && executed > 0 ? 0 : 1
}
