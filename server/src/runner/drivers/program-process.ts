// Finds the process of a lobby's program among the processes of its run. It gets the SIGTERM of a stop, and its state
// shows whether the lobby is suspended.
import { childrenOf, identityOf, type ProcessId, readStat } from '../../node/procfs.ts'
import type { Handle } from './driver.ts'
import { hasTerminal, readStatus } from './lobby-folder.ts'

/** Null when it has not started yet, or is gone. */
export function programOf(folder: string, { sandbox }: Pick<Handle, 'sandbox'>): number | null {
  const { child_pid } = readStatus(folder)
  if (child_pid === null) return null
  // The child of bubblewrap is the first process of the lobby's pid namespace. Its own child is the program. Without
  // bubblewrap, the program of a terminal is the child of `script`.
  const is_program = sandbox === 'none' && !hasTerminal(folder)
  return is_program ? child_pid : (childrenOf(child_pid)[0] ?? null)
}

/** Null when it cannot be found now. Callers keep the result, because the search may read all processes. */
export function identifyProgram(folder: string, handle: Handle): ProcessId | null {
  const pid = programOf(folder, handle)
  return pid === null ? null : identityOf(pid)
}

/** Whether a signal or a debugger has stopped the process. */
export function isSuspended({ pid, start_time }: ProcessId): boolean {
  const stat = readStat(pid)
  return stat?.start_time === start_time && (stat.state === 'T' || stat.state === 't')
}
