// The operator's program that makes and removes TXT records, for name servers that take no updates: run without a shell, in
// an environment without secrets, for a bounded time. What it starts ends with it.
import { type ChildProcess, spawn } from 'node:child_process'
import type { Context } from '../../context.ts'
import { PROGRAM_ENVIRONMENT } from '../../database/embedded/program.ts'

/** One run of the operator's program. */
const HOOK_MS_MAX = 120_000
/** After the program has ended: a process that left its group may still hold the output open. */
const OUTPUT_MS_MAX = 1_000
/** Output of the program that is kept. */
const OUTPUT_CHARACTERS_MAX = 16 * 1024
/** Characters of the last line of output that an error has. */
const LAST_LINE_LENGTH_MAX = 200

/** Throws an Error unless the program ends with exit code 0 in time. `signal` ends it. */
export async function runHook(
  ctx: Pick<Context, 'log'>,
  path: string,
  args: readonly string[],
  { ms_max = HOOK_MS_MAX, signal }: { ms_max?: number; signal?: AbortSignal | undefined } = {},
): Promise<void> {
  signal?.throwIfAborted()
  const { code, killed_by, output, is_late } = await run(path, args, ms_max, signal)
  ctx.log.info({ hook: path, args, code, killed_by, output }, 'the hook for TXT records has ended')
  if (code === 0 && !is_late) return
  const last_line = output.trimEnd().split('\n').at(-1)?.slice(0, LAST_LINE_LENGTH_MAX)
  const how = is_late
    ? `did not end within ${ms_max / 1_000} s`
    : `ended with ${code === null ? killed_by : `exit code ${code}`}`
  throw new Error(`The hook ${path} ${args[0]} ${how}${last_line ? `: ${last_line}` : '.'}`)
}

type Ended = { code: number | null; killed_by: NodeJS.Signals | null; output: string; is_late: boolean }

function run(path: string, args: readonly string[], ms_max: number, signal?: AbortSignal): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, {
      cwd: '/',
      env: PROGRAM_ENVIRONMENT,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, which can be ended as a whole.
      detached: true,
    })
    let output = ''
    let is_late = false
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        if (output.length < OUTPUT_CHARACTERS_MAX) output = (output + chunk).slice(0, OUTPUT_CHARACTERS_MAX)
      })
    }
    const timer = setTimeout(() => {
      is_late = true
      endGroup(child)
    }, ms_max)
    const end = () => endGroup(child)
    signal?.addEventListener('abort', end, { once: true })
    child.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      reject(new Error(`The hook ${path} cannot be run (${error.code ?? error.message}).`, { cause: error }))
    })
    child.on('exit', () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      endGroup(child)
      const close = setTimeout(() => {
        child.stdout.destroy()
        child.stderr.destroy()
      }, OUTPUT_MS_MAX)
      child.on('close', () => clearTimeout(close))
    })
    child.on('close', (code, killed_by) => resolve({ code, killed_by, output, is_late }))
  })
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    // Nothing of it is left.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
