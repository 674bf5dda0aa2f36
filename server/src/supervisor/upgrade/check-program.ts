// Tries the program of an upgrade before anything changes: a process of it loads all modules, and reads the settings of this
// platform (compile.ts).
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { UpgradeRequest } from './request.ts'

/** It takes two seconds, and half a minute on a loaded machine. */
const CHECK_MS_MAX = 120_000

/** Null: the program may start. `output`: what the process printed. */
export type CheckFailure = { reason: string; output: string }

export async function checkProgram(
  { exec_path, check_path }: UpgradeRequest,
  env: NodeJS.ProcessEnv,
): Promise<CheckFailure | null> {
  // A request of a version that has no such program.
  if (check_path === undefined) return null
  const child = spawn(exec_path, [check_path, 'check'], {
    ...{ env, stdio: ['ignore', 'ignore', 'pipe'], timeout: CHECK_MS_MAX, killSignal: 'SIGKILL' },
  })
  const printed = text(child.stderr!)
  const ended = once(child, 'close').then(
    ([code, signal]) => (code === 0 ? null : signal === null ? `it ended with code ${code}` : overdue()),
    (error: Error) => error.message,
  )
  const [end, output] = await Promise.all([ended, printed.catch(() => '')])
  return end === null ? null : { reason: errorLine(output) ?? end, output }
}

function overdue(): string {
  return `it was not loaded within ${CHECK_MS_MAX / 1_000} s`
}

/** The line that names the error: Node prints the place before it, and the stack after it. */
function errorLine(output: string): string | null {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  return lines.find((line) => /^\w*Error\b.*: /.test(line)) ?? (lines[0]?.includes('MUSTER_') ? lines.join(' ') : null)
}
