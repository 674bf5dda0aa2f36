// How a run ends: how it is ended, how its end is noticed, and why it ended.
import { setTimeout as sleep } from 'node:timers/promises'
import { LOG_STREAMS } from '../../lobby-logs/files.ts'
import { hasOutputPipe } from '../../lobby-logs/local.ts'
import { lastLines } from '../../lobby-logs/read.ts'
import { isAlive, readStat, signal } from '../../procfs.ts'
import type { Cgroups } from './cgroups.ts'
import type { Exit, Handle } from './driver.ts'
import { readStatus } from './lobby-folder.ts'
import { programOf } from './program.ts'

const POLL_MS_MIN = 5
const POLL_MS_MAX = 200
const POLL_GROWTH = 1.5
/** After its SIGKILL a process may hang in the kernel for a while. */
const KILL_WAIT_MS_MAX = 30_000
/** The log is whole a moment after the exit, unless the logger is starting just then. An exit waits at most this long for it. */
const LOG_WAIT_MS_MAX = 5_000
/** A monitor has started its lobby by then; clock ticks, of which a second has 100. */
const START_TICKS_MAX = 1_000
/** A shell's answer, and bubblewrap's, when a program could not be started. */
const COULD_NOT_START_CODES = [1, 126, 127]
const STDERR_LINES = 4
const SIGNAL_CODE = 128
const SIGNALS_MAX = 64

export type Ending = { deadline_ms: number; done: Promise<void> }

/** Ends a run: SIGTERM to its program, at `ending.deadline_ms` (performance.now) SIGKILL to all of it. */
export async function endRun(
  folder: string,
  handle: Handle,
  ending: { deadline_ms: number },
  boot_id: string,
  cgroups: Cgroups | null,
): Promise<void> {
  let is_told = false
  let poll_ms = POLL_MS_MIN
  while (isAlive(handle, boot_id)) {
    const over_ms = performance.now() - ending.deadline_ms
    if (over_ms >= 0) killRun(folder, handle, cgroups)
    else if (!is_told) is_told = tellRun(folder, handle)
    if (over_ms > KILL_WAIT_MS_MAX) throw new Error(`The processes of lobby ${handle.lobby_id} do not end.`)
    await sleep(poll_ms)
    poll_ms = Math.min(POLL_MS_MAX, poll_ms * POLL_GROWTH)
  }
}

/** False when the program has not come to life yet. The signal is for it alone, not for the monitor. */
function tellRun(folder: string, handle: Handle): boolean {
  const program = programOf(folder, handle)
  return program !== null && signal(program, 'SIGTERM')
}

function killRun(folder: string, handle: Handle, cgroups: Cgroups | null): void {
  const { child_pid } = readStatus(folder)
  // Not the monitor, which is to write the exit code; unless there is no child yet.
  if (child_pid === null) signal(-handle.pid, 'SIGKILL')
  else if (readStat(child_pid) !== null) signal(child_pid, 'SIGKILL')
  else if (handle.group !== null) cgroups?.kill(handle.group)
}

/** Whatever outlived the monitor. There is nothing after an ordinary end under bubblewrap. */
export function killLeftovers(folder: string, handle: Handle, boot_id: string, cgroups: Cgroups | null): void {
  if (handle.boot_id !== boot_id) return
  if (handle.group !== null) cgroups?.kill(handle.group)
  const { child_pid } = readStatus(folder)
  const child = child_pid === null ? null : readStat(child_pid)
  const age_ticks = child === null ? -1 : Number(child.start_time) - Number(handle.start_time)
  if (child !== null && age_ticks >= 0 && age_ticks <= START_TICKS_MAX) signal(child.pid, 'SIGKILL')
  const namesake = readStat(handle.pid)
  if (namesake === null || namesake.start_time === handle.start_time) signal(-handle.pid, 'SIGKILL')
}

/**
 * Why a run whose monitor is gone has ended. `monitor_code` is what the monitor itself ended with, if it was a child of
 * this process.
 */
export async function exitOfRun(
  folder: string,
  handle: Handle,
  monitor_code: number | null,
  cgroups: Cgroups | null,
): Promise<Pick<Exit, 'exit_code' | 'reason'>> {
  const { exit_code } = readStatus(folder)
  const hits = countersOf(handle, cgroups)
  if (exit_code === null) {
    // bubblewrap says nothing of a program that it could not start.
    if (await saysMissingLibrary(folder)) return { exit_code: monitor_code, reason: 'missing_library' }
    if (hits.oom_kills > 0) return { exit_code: null, reason: 'oom' }
    if (monitor_code !== null) return { exit_code: monitor_code, reason: 'not_started' }
    return { exit_code: null, reason: 'lost' }
  }
  if (exit_code === 0) return { exit_code, reason: 'exit' }
  if (hits.oom_kills > 0) return { exit_code, reason: 'oom' }
  if (hits.pids_refused > 0) return { exit_code, reason: 'pids' }
  if (COULD_NOT_START_CODES.includes(exit_code) && (await saysMissingLibrary(folder))) {
    return { exit_code, reason: 'missing_library' }
  }
  const is_signal = exit_code > SIGNAL_CODE && exit_code <= SIGNAL_CODE + SIGNALS_MAX
  return { exit_code, reason: is_signal ? 'signal' : 'exit' }
}

function countersOf(handle: Handle, cgroups: Cgroups | null): ReturnType<Cgroups['counters']> {
  if (cgroups === null || handle.group === null) return { oom_kills: 0, pids_refused: 0 }
  return cgroups.counters(handle.group)
}

/**
 * The loader says so itself. That a file which is there is "not found" means its interpreter is not: args[0] was looked
 * up before the start.
 */
async function saysMissingLibrary(folder: string): Promise<boolean> {
  await logIsWhole(folder)
  const { lines } = await lastLines(folder, 'stderr', STDERR_LINES)
  return lines.some(({ bytes }) => isAboutLibrary(bytes.toString()))
}

/** By plain looking: a lobby writes what it likes, and an expression with two gaps takes the square of a line's length. */
function isAboutLibrary(text: string): boolean {
  if (text.includes('error while loading shared libraries: ')) return true
  if (text.startsWith('bwrap: execvp ')) return text.endsWith(': No such file or directory')
  return text.startsWith('sh: ') && text.includes(': ', 4) && text.endsWith('not found')
}

/** Resolves when the logger has read all that a dead lobby wrote, or after a while. */
export async function logIsWhole(folder: string): Promise<void> {
  for (let waited_ms = 0; waited_ms < LOG_WAIT_MS_MAX; waited_ms += POLL_MS_MIN) {
    if (!LOG_STREAMS.some((stream) => hasOutputPipe(folder, stream))) return
    await sleep(POLL_MS_MIN)
  }
}
