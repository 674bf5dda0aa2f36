// The end of a run: ending it on request, and finding out why it ended.
import { setTimeout as sleep } from 'node:timers/promises'
import { LOG_STREAMS } from '../../../lobby-logs/files.ts'
import { hasOutputPipe } from '../../../lobby-logs/local.ts'
import { lastLines } from '../../../lobby-logs/read.ts'
import { isAlive, readStat, signal } from '../../../node/procfs.ts'
import type { Cgroups } from '../cgroups.ts'
import type { Exit, Handle } from '../driver.ts'
import type { Ending } from '../endings.ts'
import { hasTerminal, readStatus, readStopSignal } from '../lobby-folder.ts'
import { programOf } from '../program-process.ts'
import { isAboutLibrary } from '../programs/program-needs.ts'

const POLL_MS_MIN = 5
/** Longest pause between two checks of whether a process has ended. */
const POLL_MS_MAX = 200
const POLL_GROWTH = 1.5
/** How long a process may remain after its SIGKILL: it may hang in the kernel. */
const KILL_WAIT_MS_MAX = 30_000
/** How long an exit waits for its log: complete a moment after the exit, unless the logger is just starting. */
const LOG_WAIT_MS_MAX = 5_000
/** Time from the start of a monitor to that of its child, in clock ticks of 10 ms. A later process is not its child. */
const START_TICKS_MAX = 1_000
/** Exit codes of a shell and of bubblewrap when a program could not be started. */
const COULD_NOT_START_CODES = [1, 126, 127]
/** Last lines of stderr that are searched for an error of the loader. */
const STDERR_LINES = 4
/** A shell's exit code for a signal is this plus the number of the signal. */
const SIGNAL_CODE = 128
const BYTES_PER_MB = 1024 ** 2
/** The largest number of a signal. */
const SIGNALS_MAX = 64

/** Ends a run: SIGTERM, or the stop signal of its image, to its program, and at `ending.deadline_ms` (performance.now) SIGKILL to all its processes. */
export async function endRun(
  folder: string,
  handle: Handle,
  ending: Ending,
  boot_id: string,
  cgroups: Cgroups | null,
): Promise<void> {
  let is_terminated = false
  let poll_ms = POLL_MS_MIN
  while (isAlive(handle, boot_id)) {
    const over_ms = performance.now() - ending.deadline_ms
    if (over_ms >= 0) killRun(folder, handle, cgroups)
    else if (!is_terminated) is_terminated = terminateRun(folder, handle)
    if (over_ms > KILL_WAIT_MS_MAX) throw new Error(`The processes of lobby ${handle.lobby_id} do not end.`)
    await sleep(poll_ms)
    poll_ms = Math.min(POLL_MS_MAX, poll_ms * POLL_GROWTH)
  }
}

/** False when the program has not started yet. Only the program gets the signal, not the monitor. */
function terminateRun(folder: string, handle: Handle): boolean {
  const program = programOf(folder, handle)
  return program !== null && signal(program, readStopSignal(folder))
}

function killRun(folder: string, handle: Handle, cgroups: Cgroups | null): void {
  const { child_pid } = readStatus(folder)
  // The monitor stays alive to write the exit code, unless there is no child yet.
  if (child_pid === null) signal(-handle.pid, 'SIGKILL')
  else if (readStat(child_pid) !== null) signal(topOf(folder, handle) ?? child_pid, 'SIGKILL')
  else if (handle.group !== null) cgroups?.kill(handle.group)
}

/** What ends the whole run with it. `script` would leave its program behind, which it runs in another session. */
function topOf(folder: string, handle: Handle): number | null {
  return handle.sandbox === 'none' ? programOf(folder, handle) : null
}

/** Kills processes that outlived the monitor. After an ordinary end under bubblewrap there are none. */
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
 * Returns why a run ended, once its monitor is gone. `monitor_code`: the exit code of the monitor, if it was a child of this
 * process. `has_full_disk`: whether its disk had no room at the end.
 */
export async function exitOfRun(
  folder: string,
  handle: Handle,
  { monitor_code, has_full_disk }: { monitor_code: number | null; has_full_disk: boolean },
  cgroups: Cgroups | null,
): Promise<Pick<Exit, 'exit_code' | 'reason'>> {
  const { exit_code } = readStatus(folder)
  const hits = countersOf(handle, cgroups)
  if (exit_code === null) {
    // bubblewrap writes no status for a program that it could not start.
    if (await logsMissingLibrary(folder)) return { exit_code: monitor_code, reason: 'missing_library' }
    if (hits.oom_kills > 0) return { exit_code: null, reason: 'oom' }
    if (monitor_code !== null) return { exit_code: monitor_code, reason: 'not_started' }
    return { exit_code: null, reason: 'lost' }
  }
  if (exit_code === 0) return { exit_code, reason: 'exit' }
  if (hits.oom_kills > 0) return { exit_code, reason: 'oom' }
  if (hits.pids_refused > 0) return { exit_code, reason: 'pids' }
  if (has_full_disk) return { exit_code, reason: 'disk' }
  if (COULD_NOT_START_CODES.includes(exit_code) && (await logsMissingLibrary(folder))) {
    return { exit_code, reason: 'missing_library' }
  }
  const is_signal = exit_code > SIGNAL_CODE && exit_code <= SIGNAL_CODE + SIGNALS_MAX
  return { exit_code, reason: is_signal ? 'signal' : 'exit' }
}

/** The line for the log of a lobby that a limit ended. Null: none did. */
export function limitNote(reason: Exit['reason'], group: string, cgroups: Cgroups): string | null {
  if (reason === 'oom') {
    const { limit, peak } = cgroups.memoryLimit(group)
    const used = peak === null ? '' : `, and used up to ${megabytes(peak)}`
    return `The server was ended because it reached its limit of memory (oom): its tier has ${megabytes(limit)}${used}. Lower the heap of the server, or set \`tier\` of the game mode to one with more memory.`
  }
  if (reason !== 'pids') return null
  return `The server failed after it reached its limit of ${cgroups.pidsMax(group) ?? ''} processes and threads (pids).`
}

function megabytes(bytes: number | null): string {
  return bytes === null ? 'an unknown amount' : `${Math.round(bytes / BYTES_PER_MB)} MB`
}

function countersOf(handle: Handle, cgroups: Cgroups | null): ReturnType<Cgroups['counters']> {
  if (cgroups === null || handle.group === null) return { oom_kills: 0, pids_refused: 0 }
  return cgroups.counters(handle.group)
}

/**
 * Whether the loader reported a missing library. args[0] existed before the start, so "not found" means that its
 * interpreter is missing. A terminal has its errors in stdout.
 */
async function logsMissingLibrary(folder: string): Promise<boolean> {
  await logIsWhole(folder)
  const { lines } = await lastLines(folder, hasTerminal(folder) ? 'stdout' : 'stderr', STDERR_LINES)
  return lines.some(({ bytes }) => isAboutLibrary(bytes.toString()))
}

/** Resolves when the logger has read the whole output of a dead lobby, or after LOG_WAIT_MS_MAX. */
export async function logIsWhole(folder: string): Promise<void> {
  for (let waited_ms = 0; waited_ms < LOG_WAIT_MS_MAX; waited_ms += POLL_MS_MIN) {
    if (!LOG_STREAMS.some((stream) => hasOutputPipe(folder, stream))) return
    await sleep(POLL_MS_MIN)
  }
}
