// The data folder and the modes of its folders. Lobbies run as other users, and PostgreSQL may too. The folders on their
// way can be entered, but not listed, by others. All else is readable by the owner only.
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { StartError } from '../config/start-error.ts'
import { nodeFilePath } from '../links/node/node-file.ts'
import { isValid, type Keys } from '../tokens/keys.ts'

const ENTERED_BY_OTHERS = 0o711
const PRIVATE = 0o700
const PRIVATE_FILE = 0o600

/** `postgres/` is made by the user that starts PostgreSQL. */
const FOLDERS = {
  objects: PRIVATE,
  builds: ENTERED_BY_OTHERS,
  lobbies: ENTERED_BY_OTHERS,
  keys: PRIVATE,
  logs: PRIVATE,
}

/** Makes missing folders. Throws a StartError when one cannot be made or written. */
export function makeFolders(data_dir: string): void {
  try {
    const is_new = mkdirSync(data_dir, { recursive: true, mode: ENTERED_BY_OTHERS }) !== undefined
    // The umask may have removed bits of the mode. An existing folder keeps the mode of its owner.
    if (is_new) chmodSync(data_dir, ENTERED_BY_OTHERS)
    for (const [name, mode] of Object.entries(FOLDERS)) {
      mkdirSync(join(data_dir, name), { recursive: true })
      chmodSync(join(data_dir, name), mode)
    }
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw new StartError(
      `The data folder cannot be used (${code} at ${path ?? data_dir}); set MUSTER_DATA to another one.`,
      {
        cause: error,
      },
    )
  }
}

/** Whether this machine is a node of another platform. */
export function hasJoined(data_dir: string): boolean {
  return existsSync(nodeFilePath(data_dir))
}

/** Exists while a restore is under way: the folder does not contain a whole platform yet. */
export function restoreMark(data_dir: string): string {
  return join(data_dir, 'restore-unfinished')
}

/** Throws a StartError when the folder contains an incomplete restore. */
export function requireFinishedRestore(data_dir: string): void {
  if (!existsSync(restoreMark(data_dir))) return
  throw new StartError(
    `A restore into ${data_dir} has not finished. Run "muster restore" again with the same backup: it begins anew.`,
  )
}

/**
 * The admin token of the data folder. It does not expire. A new one is made when it is missing, or when the key that
 * signed it is gone.
 */
export function adminToken(config: Config, keys: Keys, now_ms: number): { token: string; file: string } {
  const file = adminFile(config.data_dir)
  const known = existsSync(file) ? readFileSync(file, 'utf8').trim() : null
  if (known !== null && isValid(keys, known, now_ms)) return { token: known, file }
  const token = issueAdminToken(keys, now_ms)
  writeAdminToken(file, token)
  return { token, file }
}

export function adminFile(data_dir: string): string {
  return join(data_dir, 'admin-token')
}

export function issueAdminToken(keys: Keys, now_ms: number): string {
  return keys.issue({ kind: 'access', name: 'admin' }, { now_ms, lifetime_ms: null })
}

/** Replaces the file in one step, so that a crash does not leave half a token. */
export function writeAdminToken(file: string, token: string): void {
  rmSync(`${file}.new`, { force: true })
  writeFileSync(`${file}.new`, `${token}\n`, { mode: PRIVATE_FILE })
  renameSync(`${file}.new`, file)
}
