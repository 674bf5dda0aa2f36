// The commands as a person types them: real processes of `muster`, with pipes or in a pseudo-terminal. A test that compares words
// and exit codes of many commands may run the same program in threads, at half the cost of processes.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readAll } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { Worker } from 'node:worker_threads'
import { MUSTER } from '../../server/test/run/built-programs.ts'
import { until } from '../../server/test/support/until.ts'

const COLUMNS_DEFAULT = 100
const ROWS = 40
const CTRL_C = '\u0003'

// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal reads them.
const ERASED = /[^\r\n]*\u001b\[1G\u001b\[0J/g

export type Env = Readonly<Record<string, string>>
export type Ended = { code: number | null; stdout: string; stderr: string }
export type Muster = {
  /** A folder of this test, where the commands run. */
  cwd: string
  env: Env
  /** Runs a command to its end, with pipes. `input` is its standard input. */
  run: (args: readonly string[], options?: { env?: Env; input?: string; cwd?: string }) => Promise<Ended>
  /** Runs a command, expects exit code 0, and returns its `--json` output. */
  json: (args: readonly string[], options?: { env?: Env; input?: string }) => Promise<unknown>
  /** Starts a command with pipes. */
  start: (args: readonly string[], options?: { env?: Env; cwd?: string }) => ChildProcess
}

const THREAD_ENTRY = new URL('./thread-entry.ts', import.meta.url)

/**
 * Commands with contexts and a working folder of their own, and nothing of the environment of the tests except the folder of
 * compiled modules, with which a command starts in half the time. With `in_threads`, `run` and `json` need no process: for commands
 * that get no input and no signal, and whose child processes write nothing to the standard streams of the command.
 */
export function createMuster(t: TestContext, env: Env = {}, { in_threads = false } = {}): Muster {
  const folder = mkdtempSync(join(tmpdir(), 'muster-cli-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const { PATH = '', NODE_COMPILE_CACHE } = process.env
  const own = {
    ...{ PATH, HOME: folder, MUSTER_CONFIG_DIR: join(folder, 'contexts') },
    ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }),
    ...env,
  }
  const start: Muster['start'] = (args, options = {}) => {
    const child = spawn(process.execPath, [MUSTER, ...args], {
      cwd: options.cwd ?? folder,
      env: { ...own, ...options.env },
    })
    t.after(() => child.kill('SIGKILL'))
    ignoreEndedReader(child)
    return child
  }
  const run: Muster['run'] = async (args, options = {}) => {
    // A thread does not end while input for it is unread.
    if (in_threads && (options.input ?? '') === '')
      return runInThread(t, args, { cwd: options.cwd ?? folder, env: { ...own, ...options.env } })
    const child = start(args, options)
    const [stdout, stderr] = [gather(child.stdout), gather(child.stderr)]
    child.stdin?.end(options.input ?? '')
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, stdout: stdout(), stderr: stderr() }
  }
  return {
    cwd: folder,
    env: own,
    start,
    run,
    async json(args, options) {
      const { code, stdout, stderr } = await run([...args, '--json'], options)
      if (code !== 0) throw new Error(`muster ${args.join(' ')} ended with ${code}: ${stderr}`)
      return JSON.parse(stdout)
    },
  }
}

/** The program has arguments, environment, streams and exit code of its own. An error that it does not catch rejects. */
async function runInThread(
  t: TestContext,
  args: readonly string[],
  { cwd, env }: { cwd: string; env: Env },
): Promise<Ended> {
  const worker = new Worker(THREAD_ENTRY, {
    argv: [...args],
    env: { ...env },
    // Flags of the test runner are not for it.
    execArgv: [],
    workerData: { program: MUSTER, cwd },
    stdin: true,
    stdout: true,
    stderr: true,
  })
  t.after(() => worker.terminate())
  const output = Promise.all([readAll(worker.stdout), readAll(worker.stderr)])
  worker.stdin?.end()
  const [code] = (await once(worker, 'exit')) as [number]
  const [stdout, stderr] = await output
  return { code, stdout, stderr }
}

export type Screen = {
  /** What was written so far, without colours. */
  text: () => string
  type: (keys: string) => void
  ctrlC: () => void
  /** Waits until the screen has the words. */
  shows: (words: string) => Promise<void>
  ended: Promise<number | null>
}

export type ScreenOptions = { env?: Env; columns?: number }

/** A command in a pseudo-terminal; null, and the test says so, where `script` of util-linux is missing. */
export function openScreen(
  t: TestContext,
  muster: Muster,
  args: readonly string[],
  { env = {}, columns = COLUMNS_DEFAULT }: ScreenOptions = {},
): Screen | null {
  if (spawnSync('script', ['--version']).error !== undefined) {
    t.diagnostic('script of util-linux is not installed: no pseudo-terminal')
    return null
  }
  const command = `stty cols ${columns} rows ${ROWS}; exec "$TEST_NODE" "$TEST_PROGRAM" ${args.map(quoted).join(' ')}`
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd: muster.cwd,
    env: { TERM: 'xterm', SHELL: '/bin/sh', ...muster.env, ...env, ...programNames() },
  })
  t.after(() => child.kill('SIGKILL'))
  ignoreEndedReader(child)
  const output = gather(child.stdout)
  /** Without what was erased from its first column on, as a bar is that has ended. */
  const text = (): string => stripVTControlCharacters(output().replaceAll(ERASED, '')).replaceAll('\r\n', '\n')
  const ended = once(child, 'close').then(([code]) => code as number | null)
  return {
    text,
    type: (keys) => void child.stdin.write(keys),
    ctrlC: () => void child.stdin.write(CTRL_C),
    shows: async (words) => {
      await until(`the screen shows "${words}"`, () => {
        if (text().includes(words)) return true
        if (child.exitCode !== null) throw new Error(`The command ended without "${words}": ${text()}`)
        return false
      })
    },
    ended,
  }
}

/** A command may end before it has read its standard input, or while the test types. The write then fails, which is no failure. */
function ignoreEndedReader({ stdin }: ChildProcess): void {
  stdin?.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'ECONNRESET') throw error
  })
}

/** As one word of a shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}

/** In variables, because `script` takes a command as one text. */
function programNames(): Env {
  return { TEST_NODE: process.execPath, TEST_PROGRAM: MUSTER }
}

/** What the stream has written so far. */
export function gather(stream: NodeJS.ReadableStream | null): () => string {
  let text = ''
  stream?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  return () => text
}
