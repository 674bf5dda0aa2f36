// `npm test`, and `npm test -- [--failed-to LIST] FILE...`: starts one PostgreSQL for the whole run, runs the test files of every
// workspace, each in a process of its own, and ends the server whatever happens. A run in which no test was executed
// has failed: it would otherwise look like one in which all of them passed. `--failed-to` writes the paths of the files in
// which a test failed to the file LIST, one a line; .ci/run runs those once more.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { startTestServer } from './database-server.ts'
import type { Outcome } from './run-outcome.ts'

const ROOT = dirname(dirname(import.meta.dirname))
const PATTERN = '{contract,server,sdk,cli,scripts,examples,bench}/**/*.test.ts'
/** One more than the processors of a small machine: a third of what tests do is waiting. */
const FILES_AT_ONCE_MAX = 3
/** A test that hangs must not hang the run. */
const TEST_MS_MAX = 300_000
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

const { values, positionals } = parseArgs({ options: { 'failed-to': { type: 'string' } }, allowPositionals: true })
process.exitCode = await runTests(positionals, values['failed-to'] ?? null)

async function runTests(asked: readonly string[], failed_to: string | null): Promise<number> {
  const files = asked.length > 0 ? asked.map((file) => resolve(file)) : findFiles()
  if (files.length === 0) {
    console.error('There is no test file.')
    return 1
  }
  const interrupt = new AbortController()
  const onSignal = (): void => interrupt.abort()
  for (const signal of SIGNALS) process.on(signal, onSignal)
  try {
    const server = await startTestServer()
    try {
      return interrupt.signal.aborted ? 1 : await runFiles(files, { server, interrupt: interrupt.signal, failed_to })
    } finally {
      await server.stop()
    }
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
}

function findFiles(): string[] {
  return globSync(PATTERN, { cwd: ROOT, exclude: (name) => name === 'node_modules' })
    .map((file) => resolve(ROOT, file))
    .sort()
}

async function runFiles(
  files: readonly string[],
  options: { server: { url: string; data_dir: string }; interrupt: AbortSignal; failed_to: string | null },
): Promise<number> {
  const { server, interrupt, failed_to } = options
  const outcome_file = join(server.data_dir, 'outcome.json')
  const flags = [
    '--test',
    `--test-concurrency=${FILES_AT_ONCE_MAX}`,
    `--test-timeout=${TEST_MS_MAX}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${join(import.meta.dirname, 'run-outcome.ts')}`,
    `--test-reporter-destination=${outcome_file}`,
    `--import=${pathToFileURL(join(import.meta.dirname, 'nobody-caught.ts')).href}`,
  ]
  const child = spawn(process.execPath, [...flags, ...files], {
    stdio: 'inherit',
    env: {
      ...process.env,
      TEST_DATABASE_URL: server.url,
      // Hundreds of processes load the same modules; this is a third of what loading takes them.
      NODE_COMPILE_CACHE: join(server.data_dir, 'compile-cache'),
    },
  })
  // It ends its own children, and says which files were under way.
  interrupt.addEventListener('abort', () => child.kill('SIGINT'))
  const [code] = await once(child, 'exit')
  if (interrupt.aborted) return 130
  const { executed, failed_files, files_to_repeat } = await readOutcome(outcome_file)
  if (failed_to !== null) await writeFile(failed_to, files_to_repeat.map((file) => `${file}\n`).join(''))
  for (const told of failed_files) console.error(`✖ ${told}`)
  if (executed === 0) console.error('No test was executed.')
  return code === 0 && executed === 0 ? 1 : (code ?? 1)
}

/** There is none where the runner did not come to its end. */
async function readOutcome(file: string): Promise<Outcome> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text === '' ? { executed: 0, failed_files: [], files_to_repeat: [] } : JSON.parse(text)
}
