// One run of another program, from its start to its end: what PostgreSQL's own programs, and the few of the system
// that are asked something, are started with. They get an environment of their own: ours may carry secrets.
import { spawn } from 'node:child_process'

/** Output of a PostgreSQL program that is kept. */
const OUTPUT_BYTES_MAX = 64 * 1024
/** One run of a PostgreSQL program such as initdb. */
const RUN_MS_MAX = 120_000

/** The system user that PostgreSQL runs as. Null: the user of the platform. */
export type Account = { name: string; uid: number; gid: number } | null

export const PROGRAM_ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
}

export type ProgramResult = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }

export type ProgramOptions = {
  account?: Account
  /** The working folder. Without one it is `/`, which every account may enter. */
  folder?: string
  input?: string
}

/** Rejects only when the program cannot be started at all; how it ended is in the result. Killed after two minutes. */
export function runProgram(
  file: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<ProgramResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: options.folder ?? '/',
      env: PROGRAM_ENVIRONMENT,
      stdio: ['pipe', 'pipe', 'pipe'],
      // Ctrl-C in a terminal is for the platform, which ends its children in order.
      detached: true,
      timeout: RUN_MS_MAX,
      killSignal: 'SIGKILL',
      ...(options.account && { uid: options.account.uid, gid: options.account.gid }),
    })
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (chunk: string) => {
        if (output[name].length < OUTPUT_BYTES_MAX) output[name] += chunk
      })
    }
    // A program that ends without reading its input is judged by how it ended.
    child.stdin.on('error', () => undefined)
    child.stdin.end(options.input ?? '')
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, ...output }))
  })
}

/** Its standard output without the last line break. Throws, with what it said, when it did not end with 0. */
export async function requireProgram(
  file: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<string> {
  const result = await runProgram(file, args, options)
  if (result.code === 0) return result.stdout.trimEnd()
  const said = (result.stderr || result.stdout).trim()
  throw new Error(`${file} ended with ${result.signal ?? result.code}${said === '' ? '' : `: ${said}`}`)
}
