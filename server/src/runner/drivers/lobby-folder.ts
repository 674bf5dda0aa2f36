// The folder of a lobby, `<data>/lobbies/<lobby id>/`. The monitor and the logger, which outlive the runner, write it. The
// runner reads it after a restart.
//
//   run.json     written before the start: boot id, uid, sandbox, control group.
//   launch       the script by which the monitor becomes the lobby (monitor.ts).
//   launched     the monitor's line of /proc/PID/stat, which it writes first. Its time of change is the lobby's start.
//   status       JSON lines: {"child-pid": N}, and at the end {"exit-code": N}. Its last change is the lobby's end.
//   stdout.1.log, ...         the kept output (lobby-logs/files.ts). The pipes of the output are in another folder, so that a
//                             program that reads all files of this one neither blocks nor consumes output
//   metrics.json what it has used over its life (lobby-logs/lobby-metrics.ts).
//   ended.json   the exit as first determined, so that it does not change when the control group is gone.
//
// When the lobby is over, its log, metrics and exit stay, and the rest is removed (logs/ended-logs.ts). Until then the
// lobby is listed in `<data>/lobbies/.unfinished/` (unfinished.ts).
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isGone, parseStat } from '../../node/procfs.ts'
import { ENDED_FILE } from '../folders/names.ts'
import type { Exit, Handle } from './driver.ts'

/** `stop_signal`: what ends the program; SIGTERM when it is absent. `has_terminal`: `script` is above the program. */
type RunFile = Pick<Handle, 'boot_id' | 'sandbox' | 'uid' | 'group' | 'network'> & {
  stop_signal?: NodeJS.Signals
  has_terminal?: boolean
}
type Status = { child_pid: number | null; exit_code: number | null }

export const launchedPath = (folder: string): string => join(folder, 'launched')
export const statusPath = (folder: string): string => join(folder, 'status')

export function writeRunFile(folder: string, run: RunFile): void {
  writeFileSync(join(folder, 'run.json'), JSON.stringify(run), { mode: 0o600, flag: 'wx' })
}

/** The handle of the run that was started in this folder, living or not; null when none was. */
export function readHandle(folder: string, lobby_id: string): Handle | null {
  const run = readJson<RunFile>(join(folder, 'run.json'))
  const stat = parseStat(readText(launchedPath(folder)))
  const start_ts = changeTime(launchedPath(folder))
  if (run === null || stat === null || start_ts === null) return null
  const { stop_signal: _, has_terminal: __, ...rest } = run
  return { lobby_id, pid: stat.pid, start_time: stat.start_time, start_ts, ...rest, network: run.network ?? null }
}

export function readStopSignal(folder: string): NodeJS.Signals {
  return readJson<RunFile>(join(folder, 'run.json'))?.stop_signal ?? 'SIGTERM'
}

export function hasTerminal(folder: string): boolean {
  return readJson<RunFile>(join(folder, 'run.json'))?.has_terminal ?? false
}

export function readStatus(folder: string): Status {
  const status: Status = { child_pid: null, exit_code: null }
  for (const line of readText(statusPath(folder)).split('\n')) {
    const change = parseJson<{ 'child-pid'?: number; 'exit-code'?: number }>(line)
    status.child_pid = change?.['child-pid'] ?? status.child_pid
    status.exit_code = change?.['exit-code'] ?? status.exit_code
  }
  return status
}

/** When the monitor wrote the exit code; null when it did not. */
export function endTime(folder: string): number | null {
  return readStatus(folder).exit_code === null ? null : changeTime(statusPath(folder))
}

export function readEnded(folder: string): Exit | null {
  return readJson<Exit>(join(folder, ENDED_FILE))
}

export function writeEnded(folder: string, exit: Exit): void {
  try {
    const path = join(folder, ENDED_FILE)
    writeFileSync(`${path}.new`, JSON.stringify(exit), { mode: 0o600 })
    renameSync(`${path}.new`, path)
  } catch (error) {
    // The folder has been removed.
    if (!isGone(error)) throw error
  }
}

/** When the file was last written; null when it does not exist. */
export function changeTime(path: string): number | null {
  try {
    return Math.round(statSync(path).mtimeMs)
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch (error) {
    if (isGone(error)) return ''
    throw error
  }
}

function readJson<T>(path: string): T | null {
  return parseJson<T>(readText(path))
}

/** Null for an empty text, or one that a crash cut off. The platform writes these files itself, so their shape is known. */
function parseJson<T>(text: string): T | null {
  if (text === '') return null
  try {
    return JSON.parse(text) as T
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}
