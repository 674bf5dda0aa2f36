// `npm test`, `npm run test:long`, and `npm test -- [--all] [--failed-to LIST] [--seconds-max N] [--without-programs] [FILE...]`.
// A run starts one PostgreSQL where any file uses it, runs the test files of every workspace in batches (batches.ts), and ends
// the server whatever happens. The proofs that must be undisturbed run first, one at a time; node:test prints its closing lines for these and for
// the others. A few named files run each in a process of its own. Without names, the run leaves out the long proofs, which `--long`
// runs alone, and `--all` with the others. A run in which no test was executed has failed: it would otherwise look like one in
// which all of them passed. `--failed-to` writes the paths of the files that failed, or were under way when the run was ended,
// to the file LIST, one a line. `--seconds-max` ends the run after N seconds. `--without-programs` hides the optional programs,
// as hidden-programs.ts describes; without FILE it runs only the files that depend on them, as program-dependents.ts finds
// them. The exit code is 1 when a file failed and all were run, UNFINISHED otherwise.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { readPageSize, usageOfTrees } from '../../src/node/procfs.ts'
import { RUN_VARIABLE } from '../leftovers/run.ts'
import { CLUSTER_VARIABLE } from '../support/made-cluster.ts'
import { type Entry, LONG_ENDING, readFiles, writeBatches } from './batches.ts'
import { buildPrograms, PROGRAMS_VARIABLE } from './built-programs.ts'
import { type RunWithoutServer, startRunWithoutServer, startTestServer, type TestServer } from './database-server.ts'
import { withoutPrograms } from './hidden-programs.ts'
import { TEST_MS_MAX } from './limits.ts'
import { modulesOf } from './modules-of.ts'
import { type Outcome, sumUp } from './outcome.ts'
import { readProcessorTimes, USE_VARIABLE } from './processor-time.ts'
import { programDependents } from './program-dependents.ts'
import { summariseSkips } from './skip-summary.ts'
import { watchForStuckFiles } from './stuck-files.ts'

const ROOT = join(import.meta.dirname, '../../..')
const DATABASE = join(import.meta.dirname, '../support/database.ts')
const PATTERN = '{contract,protocols,server,sdk,cli,hub,scripts,examples,bench}/**/*.test.ts'
/** Loaded before every test file. */
const PRELOADS = ['nobody-caught.ts', 'file-watchdog.ts']
/** In the folder of the run. */
const CLUSTER = 'cluster'
const FILES_AT_ONCE_MAX = 4
/**
 * Test files that run at once: one more than the processors. On two processors three files leave 6 % of the time unused. Four
 * leave none, and are slower: each start of a platform is several processes, and they wait for each other.
 */
const FILES_AT_ONCE = Math.min(FILES_AT_ONCE_MAX, availableParallelism() + 1)
/** Files named on the command line run each in a process of its own, up to this number. */
const FILES_ALONE_MAX = 8
const LONGEST_FILES_MAX = 10
/** 128 and the number of SIGINT. */
const UNFINISHED = 130
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

type Options = {
  long: boolean
  all: boolean
  failed_to: string | null
  seconds_max: number | null
  without_programs: boolean
}

const { values, positionals } = parseArgs({
  options: {
    long: { type: 'boolean', default: false },
    all: { type: 'boolean', default: false },
    'failed-to': { type: 'string' },
    'seconds-max': { type: 'string' },
    'without-programs': { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
process.exitCode = await runTests(positionals, {
  long: values.long,
  all: values.all,
  failed_to: values['failed-to'] ?? null,
  seconds_max: values['seconds-max'] === undefined ? null : Number(values['seconds-max']),
  without_programs: values['without-programs'],
})

async function runTests(asked: readonly string[], options: Options): Promise<number> {
  const found = asked.length > 0 ? asked.map((file) => resolve(file)) : findFiles(options)
  const files = options.without_programs && asked.length === 0 ? programDependents(found) : found
  if (files.length === 0) {
    console.error('There is no test file.')
    return 1
  }
  const interrupt = new AbortController()
  const onSignal = (): void => interrupt.abort()
  for (const signal of SIGNALS) process.on(signal, onSignal)
  const bound = options.seconds_max === null ? undefined : setTimeout(onSignal, options.seconds_max * 1000)
  try {
    const server = await (usesDatabase(files) ? startTestServer({ cluster: CLUSTER }) : startRunWithoutServer())
    try {
      if (interrupt.signal.aborted) return UNFINISHED
      const is_batched = files.length > FILES_ALONE_MAX
      const entries = is_batched ? await writeBatches(files, server.data_dir) : await readFiles(files)
      const programs = is_batched ? await buildPrograms(join(server.data_dir, 'programs')) : null
      return await runFiles({ files, entries, programs }, server, interrupt.signal, options)
    } finally {
      await server.stopRun()
    }
  } finally {
    clearTimeout(bound)
    for (const signal of SIGNALS) process.off(signal, onSignal)
  }
}

/** A file for which this is wrong starts a server of its own (support/database.ts). */
function usesDatabase(files: readonly string[]): boolean {
  return files.some((file) => modulesOf(file).has(DATABASE))
}

/** The long proofs are in files of their own: kills, faults, long fuzzing, engines, upgrades, clusters. */
function findFiles({ long, all }: Options): string[] {
  return globSync(PATTERN, { cwd: ROOT, exclude: (name) => name === 'node_modules' })
    .filter((file) => all || file.endsWith(LONG_ENDING) === long)
    .map((file) => resolve(ROOT, file))
    .sort()
}

/** `programs`: the built ones; null: tests start the sources. */
async function runFiles(
  { files, entries, programs }: { files: readonly string[]; entries: readonly Entry[]; programs: string | null },
  server: TestServer | RunWithoutServer,
  interrupt: AbortSignal,
  { failed_to, without_programs }: Options,
): Promise<number> {
  const use_file = join(server.data_dir, 'processor-time.jsonl')
  const env = {
    ...process.env,
    ...(server.url === null
      ? {}
      : { TEST_DATABASE_URL: server.url, [CLUSTER_VARIABLE]: join(server.data_dir, CLUSTER) }),
    ...(programs === null ? {} : { [PROGRAMS_VARIABLE]: programs }),
    [RUN_VARIABLE]: server.mark,
    [USE_VARIABLE]: use_file,
    TMPDIR: await makeTemporaryFolder(server.data_dir),
    // Hundreds of processes load the same modules; this is a third of what loading takes them.
    NODE_COMPILE_CACHE: join(server.data_dir, 'compile-cache'),
  }
  const stages = [
    { name: 'undisturbed', at_once: 1, entries: entries.filter(({ is_undisturbed }) => is_undisturbed) },
    { name: 'beside', at_once: FILES_AT_ONCE, entries: entries.filter(({ is_undisturbed }) => !is_undisturbed) },
  ].filter((stage) => stage.entries.length > 0)
  let exit_code = 0
  let lines = ''
  for (const { name, at_once, entries } of stages) {
    if (interrupt.aborted) break
    const outcome_file = join(server.data_dir, `outcome-${name}.jsonl`)
    const paths = entries.map(({ path }) => path)
    const command = [process.execPath, ...flagsOf(outcome_file, at_once), ...paths] as const
    const layers = join(server.data_dir, `layers-${name}`)
    const code = await runCommand(without_programs ? withoutPrograms(layers, command) : command, env, interrupt)
    exit_code = Math.max(exit_code, code)
    lines += await readFile(outcome_file, 'utf8').catch(() => '')
  }
  const outcome = sumUp(lines)
  if (failed_to !== null) {
    const names = [...outcome.failed_files.union(outcome.under_way)].sort()
    await writeFile(failed_to, names.map((file) => `${file}\n`).join(''))
  }
  printOutcome(outcome, files, readProcessorTimes(await readFile(use_file, 'utf8').catch(() => '')))
  if (interrupt.aborted) return UNFINISHED
  return exit_code === 0 && outcome.executed === 0 ? 1 : exit_code
}

/** Returns the exit code of node:test; UNFINISHED when a signal has ended it. */
async function runCommand(
  [program, ...args]: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv,
  interrupt: AbortSignal,
): Promise<number> {
  const child = spawn(program, args, { stdio: 'inherit', env })
  // It ends its own children.
  const onInterrupt = (): boolean => child.kill('SIGINT')
  interrupt.addEventListener('abort', onInterrupt)
  const unwatch = watchForStuckFiles(child.pid!)
  const [code] = await once(child, 'exit').finally(unwatch)
  interrupt.removeEventListener('abort', onInterrupt)
  return code ?? UNFINISHED
}

/**
 * Folders of tests lie beside the server's data, in memory where there is room: platforms of tests write with fsync, and on
 * a slow disk that took most of the run. Lobbies and PostgreSQL, which are other users, pass through.
 */
async function makeTemporaryFolder(data_dir: string): Promise<string> {
  const temporary = join(data_dir, 'tmp')
  await mkdir(temporary)
  await chmod(temporary, 0o1777)
  await chmod(data_dir, 0o711)
  return temporary
}

function flagsOf(outcome_file: string, at_once: number): string[] {
  return [
    '--test',
    `--test-concurrency=${at_once}`,
    `--test-timeout=${TEST_MS_MAX}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${join(import.meta.dirname, 'outcome.ts')}`,
    `--test-reporter-destination=${outcome_file}`,
    ...PRELOADS.map((name) => `--import=${pathToFileURL(join(import.meta.dirname, name)).href}`),
  ]
}

function printOutcome(outcome: Outcome, files: readonly string[], cpu_ms: ReadonlyMap<string, number>): void {
  const { executed, failed_files, failures, bad_ends, under_way, durations_ms, skips } = outcome
  if (files.length > 1) {
    printLongest(`The slowest of ${durations_ms.size} test files that ended:`, durations_ms)
    printLongest('The most processor time, without PostgreSQL:', cpu_ms)
  }
  for (const file of failed_files) console.error(`✖ ${file} failed`)
  for (const bad_end of bad_ends) console.error(`✖ ${bad_end}`)
  for (const file of under_way) console.error(`✖ ${file} was under way when the run was ended`)
  const unstarted = files.filter((file) => {
    const name = relative('.', file)
    return !under_way.has(name) && !durations_ms.has(name)
  })
  if (unstarted.length > 0) console.error(`✖ ${unstarted.length} test files did not start`)
  if (executed === 0) console.error('No test was executed.')
  console.error(processorTime())
  for (const line of summariseSkips(skips)) console.error(line)
  // Last, because CI may show only the end of a long output.
  if (failures.length > 0) console.error('\nWhat failed:')
  for (const failure of failures) console.error(`✖ ${failure}`)
}

function printLongest(title: string, times_ms: ReadonlyMap<string, number>): void {
  const longest = [...times_ms].sort(([, a], [, b]) => b - a).slice(0, LONGEST_FILES_MAX)
  if (longest.length > 0) console.error(`\n${title}`)
  for (const [file, ms] of longest) console.error(`${(ms / 1000).toFixed(1).padStart(7)} s  ${file}`)
}

/** Counts the run, its PostgreSQL and all processes that have ended below it. */
function processorTime(): string {
  if (process.platform !== 'linux') return ''
  const { cpu_ms = 0 } = usageOfTrees([process.pid], readPageSize()).get(process.pid) ?? {}
  return `Processor time: ${(cpu_ms / 1000).toFixed(0)} s`
}
