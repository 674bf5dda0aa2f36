// Which process a number means. A pid is used again; with its start time and the boot id it names one process for ever.
// Read from /proc: elsewhere (macOS, Windows) nobody can be recognised, and nobody is ended on a guess.
import { readdirSync, readFileSync } from 'node:fs'

export type ProcessIdentity = { pid: number; start_ticks: string; boot_id: string }

/**
 * Null when there is no such process, when it is a zombie, or when this system has no /proc. A process that was killed is
 * a zombie by its first thread; while others are still ending it holds its ports, and is not gone.
 */
export function identityOf(pid: number): ProcessIdentity | null {
  try {
    // The command's name, in parentheses, may contain anything; the fields after the last one are plain.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const state = fields[0]
    const start_ticks = fields[19]
    if (state === 'X' || start_ticks === undefined) return null
    if (state === 'Z' && readdirSync(`/proc/${pid}/task`).length <= 1) return null
    return { pid, start_ticks, boot_id: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() }
  } catch {
    // No such file: the process has ended, or this system does not tell.
    return null
  }
}

export function isAlive(identity: ProcessIdentity): boolean {
  const now = identityOf(identity.pid)
  return now !== null && now.start_ticks === identity.start_ticks && now.boot_id === identity.boot_id
}
