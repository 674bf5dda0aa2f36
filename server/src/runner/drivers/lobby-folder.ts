// What a lobby leaves on the disk: `<data>/lobbies/<lobby id>/`. It is written by the monitor and the logger, which
// outlive the runner; the runner reads it after a restart.
//
//   run.json     written before the start: boot id, uid, sandbox, control group
//   launch       what the monitor did to become the lobby (monitor.ts)
//   launched     the line of /proc/PID/stat of the monitor, written by itself as its first act: so its age is the lobby's
//   status       JSON lines: {"child-pid": N}, and at the end {"exit-code": N}: so its last change is the lobby's end
//   stdout.1.log, ...         what is kept of its output (lobby-logs/files.ts). The pipes that it writes into are elsewhere, so that
//                             a program that reads all files of this folder neither waits nor takes lines
//   metrics.json what it has used over its life (lobby-logs/lobby-metrics.ts)
//   ended.json   the exit as it was first told, so that it stays the same when the control group is gone
//
// When all of it is over, the log, the metrics and the exit stay, and the rest is removed (logs/ended.ts). Until then the
// lobby is listed in `<data>/lobbies/.unfinished/` (unfinished.ts).
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isGone, parseStat } from '../../procfs.ts'
import type { Exit, Handle } from './driver.ts'

export type RunFile = Pick<Handle, 'boot_id' | 'sandbox' | 'uid' | 'group'>
export type Status = { child_pid: number | null; exit_code: number | null }

export const ENDED_FILE = 'ended.json'
export const launchedPath = (folder: string): string => join(folder, 'launched')
export const statusPath = (folder: string): string => join(folder, 'status')

export function writeRunFile(folder: string, run: RunFile): void {
  writeFileSync(join(folder, 'run.json'), JSON.stringify(run), { mode: 0o600, flag: 'wx' })
}

/** The handle of whatever was started last in this folder; null when nothing was. Says nothing of whether it lives. */
export function readHandle(folder: string, lobby_id: string): Handle | null {
  const run = readJson<RunFile>(join(folder, 'run.json'))
  const stat = parseStat(readText(launchedPath(folder)))
  const start_ts = changeTime(launchedPath(folder))
  if (run === null || stat === null || start_ts === null) return null
  return { lobby_id, pid: stat.pid, start_time: stat.start_time, start_ts, ...run }
}

export function readStatus(folder: string): Status {
  const status: Status = { child_pid: null, exit_code: null }
  for (const line of readText(statusPath(folder)).split('\n')) {
    const said = parseJson<{ 'child-pid'?: number; 'exit-code'?: number }>(line)
    status.child_pid = said?.['child-pid'] ?? status.child_pid
    status.exit_code = said?.['exit-code'] ?? status.exit_code
  }
  return status
}

/** When the monitor noted the end; null when it did not. */
export function endTime(folder: string): number | null {
  return readStatus(folder).exit_code === null ? null : changeTime(statusPath(folder))
}

export function readEnded(folder: string): Exit | null {
  const said = readJson<Exit>(join(folder, ENDED_FILE))
  // An older platform did not say what was used, nor when.
  return said === null ? null : { ...said, cpu_ms: said.cpu_ms ?? null, ran: said.ran ?? null }
}

export function writeEnded(folder: string, exit: Exit): void {
  try {
    const path = join(folder, ENDED_FILE)
    writeFileSync(`${path}.new`, JSON.stringify(exit), { mode: 0o600 })
    renameSync(`${path}.new`, path)
  } catch (error) {
    // The folder has been cleaned up.
    if (!isGone(error)) throw error
  }
}

/** When the file was last written; null when it is not there. */
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

/** Null for what is not there, or was cut off by a crash. The files are our own, and their shapes known. */
function parseJson<T>(text: string): T | null {
  if (text === '') return null
  try {
    return JSON.parse(text) as T
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}
