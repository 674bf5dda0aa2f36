// The way back to the program that ran before an upgrade: a file of the data folder. It exists while the next program starts. When
// the process ends meanwhile, guard.ts leads it back to the former program, which removes the file and reports the reason.
//
// guard.ts is loaded before the next program, possibly by another version of Node. So this file imports nothing but Node's modules.
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = 'upgrade-way-back.json'

/**
 * `exec_path`, `cli_path`: of the program that ran before; `from_version`: its version. `to_version`, `request_id`: of the upgrade.
 * `reason`: why the next program did not start, a sentence; null: it is starting.
 */
export type WayBack = {
  exec_path: string
  cli_path: string
  from_version: string
  to_version: string
  request_id: string
  reason: string | null
}

export function wayBackFile(data_dir: string): string {
  return join(data_dir, FILE)
}

export function writeWayBack(file: string, way_back: WayBack): void {
  writeFileSync(`${file}.new`, JSON.stringify(way_back), { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/** Null: no upgrade is under way. */
export function readWayBack(file: string): WayBack | null {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as WayBack) : null
}

/** The first reason counts: it is the cause of what follows. */
export function recordFailure(file: string, reason: string): void {
  const way_back = readWayBack(file)
  if (way_back !== null && way_back.reason === null) writeWayBack(file, { ...way_back, reason })
}

export function removeWayBack(file: string): void {
  rmSync(file, { force: true })
}
