// The program of a lobby, among the processes of its run: what is told to end, and what stands still when it is stopped.
import { childrenOf, identityOf, type ProcessId, readStat } from '../../procfs.ts'
import type { Handle } from './driver.ts'
import { readStatus } from './lobby-folder.ts'

/** Null when it has not come to life yet, or is gone. */
export function programOf(folder: string, { sandbox }: Pick<Handle, 'sandbox'>): number | null {
  const { child_pid } = readStatus(folder)
  if (child_pid === null || sandbox === 'none') return child_pid
  // The child of bubblewrap is the first process of the lobby's pid namespace; the program is the child of that.
  return childrenOf(child_pid)[0] ?? null
}

/** Null: not now. The answer is remembered by whoever asks: to find it may take a look at all processes. */
export function identifyProgram(folder: string, handle: Handle): ProcessId | null {
  const pid = programOf(folder, handle)
  return pid === null ? null : identityOf(pid)
}

/** Stopped by a signal, or by a debugger. */
export function isSuspended({ pid, start_time }: ProcessId): boolean {
  const stat = readStat(pid)
  return stat?.start_time === start_time && (stat.state === 'T' || stat.state === 't')
}
