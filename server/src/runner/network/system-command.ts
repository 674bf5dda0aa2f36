// Runs the system's programs `ip`, `tc`, `nft` and `nsenter`. Their input is written to their standard input, never
// interpreted by a shell.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { PROGRAM_ENV } from '../program-env.ts'

/** One command. They end within milliseconds; a busy kernel may take longer to remove a namespace. */
const COMMAND_MS_MAX = 15_000
const OUTPUT_BYTES_MAX = 8 * 1024 ** 2

/** Returns the standard output. Throws an Error with the last line of the standard error. */
export async function run(command: readonly [string, ...string[]], input = ''): Promise<string> {
  const [program, ...args] = command
  const running = promisify(execFile)(program, args, {
    timeout: COMMAND_MS_MAX,
    maxBuffer: OUTPUT_BYTES_MAX,
    env: PROGRAM_ENV,
  })
  running.child.stdin?.on('error', () => undefined)
  running.child.stdin?.end(input)
  try {
    return (await running).stdout
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : ''
    const reason = stderr.split('\n').slice(-3).join(' ') || String(error)
    throw new Error(`${program} failed: ${reason}`, { cause: error })
  }
}

/** The names of all nftables tables of the family inet. */
export async function listTables(): Promise<string[]> {
  const text = await run(['nft', 'list', 'tables', 'inet'])
  return [...text.matchAll(/^table inet (\S+)$/gm)].map(([, name = '']) => name)
}

/** Runs the lines as one batch of `ip`. With `is_forced` a line that fails does not stop the others. */
export async function ipBatch(lines: readonly string[], { is_forced = false } = {}): Promise<void> {
  if (lines.length === 0) return
  await run(['ip', ...(is_forced ? ['-force'] : []), '-batch', '-'], `${lines.join('\n')}\n`)
}
