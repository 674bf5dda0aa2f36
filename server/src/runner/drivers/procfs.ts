// What the kernel says of processes. A pid alone names nobody: it is used again. Pid, start time and boot id together
// name one process for ever.
import { readdirSync, readFileSync } from 'node:fs'

export type ProcessId = { pid: number; start_time: string; boot_id: string }
export type ProcessStat = { pid: number; state: string; parent_pid: number; start_time: string }

/** Null when there is no such process. Reads of /proc do not wait for a disk, so they are synchronous. */
export function readStat(pid: number): ProcessStat | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

/** The name in the second field may hold anything, parentheses and spaces too: fields are counted after its last `)`. */
export function parseStat(line: string): ProcessStat | null {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const pid = Number.parseInt(line, 10)
  const [state, parent_pid] = fields
  const start_time = fields[19]
  if (!Number.isInteger(pid) || state === undefined || parent_pid === undefined || start_time === undefined) return null
  return { pid, state, parent_pid: Number(parent_pid), start_time }
}

/**
 * A zombie is dead: its parent may be slow to reap it, or, where the first process of a container does not, never come to
 * it. But a process looks like one as soon as its first thread has ended: the others may run on, or hold what it had.
 */
export function isAlive(id: ProcessId, boot_id: string): boolean {
  if (id.boot_id !== boot_id) return false
  const stat = readStat(id.pid)
  if (stat === null || stat.start_time !== id.start_time || stat.state === 'X') return false
  return stat.state !== 'Z' || threadCount(id.pid) > 1
}

/** 0 when there is no such process. */
function threadCount(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length
  } catch (error) {
    if (isGone(error)) return 0
    throw error
  }
}

export function childrenOf(pid: number): number[] {
  try {
    return numbersOf(readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1'))
  } catch (error) {
    if (!isGone(error)) throw error
  }
  // The process is gone, or the kernel was built without this file.
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => readStat(Number(name))?.parent_pid === pid)
    .map(Number)
}

export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
}

/** False when there is no such process. */
export function signal(pid: number, name: 'SIGTERM' | 'SIGKILL'): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

export function numbersOf(text: string): number[] {
  return text.split(/\s+/).filter(Boolean).map(Number)
}

export function isGone(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'ENOENT' || code === 'ESRCH' || code === 'ENOTDIR'
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
