// One lock for the whole data folder, so that two platforms never share it.
//
// Node has no flock, and a file that says "pid 123 has it" must guess after a `kill -9` whether that pid is still the
// same process (not across containers, which count pids each on their own), and two starters who both find it stale
// must not both take it over. The SQLite inside Node locks its files with the kernel's own locks. So the lock is an open
// exclusive transaction on an empty database that is never written: the kernel gives it to one process, takes it back
// in the instant in which that process ends, however it ends, and there is no stale lock to recognise. (SQLite keeps
// account within one process too: a second platform in the same process is refused like any other.)
//
// Who holds it is written beside it, for the message and for `previous`: after a `kill -9` of the supervisor its roles
// need a moment to notice, and the next supervisor waits for exactly those processes.
import { closeSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { identityOf, type ProcessId } from '../procfs.ts'
import { StartError } from '../start-error.ts'

/** SQLITE_BUSY: another connection, of whichever process, holds the lock. */
const SQLITE_BUSY = 5
/** A supervisor writes its name right after it took the lock; more than this is a damaged file. */
const HOLDER_BYTES_MAX = 64 * 1024

type Holder = { pid: number; start_ts: string; roles: ProcessId[] }

export type FolderLock = {
  /** Who held the folder last, in case processes of it are still there. Null on the first start. */
  previous: Holder | null
  /** Writes down which role processes belong to the holder. */
  record(roles: ProcessId[]): void
  release(): void
}

/** Takes the lock of `folder` or throws a StartError that says who has it. `now_ms` is only for the message. */
export function lockFolder(folder: string, now_ms: number): FolderLock {
  const holderFile = join(folder, 'lock-holder.json')
  const start_ts = new Date(now_ms).toISOString()
  const file = join(folder, 'lock')
  makePrivate(file)
  const database = new DatabaseSync(file)
  try {
    // The journal stays in memory: an empty transaction needs no second file.
    database.exec('pragma busy_timeout = 0; pragma journal_mode = memory; begin exclusive')
  } catch (error) {
    database.close()
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error
    const holder = readHolder(holderFile)
    const who = holder ? `process ${holder.pid}, since ${holder.start_ts}` : 'another process'
    throw new StartError(
      `Another Muster runs on the data folder ${folder} (${who}). Stop it, or set MUSTER_DATA to another folder.`,
    )
  }
  const previous = readHolder(holderFile)
  const record = (roles: ProcessId[]): void => {
    const holder: Holder = { pid: process.pid, start_ts, roles }
    writeFileSync(`${holderFile}.new`, JSON.stringify(holder), { mode: 0o600 })
    renameSync(`${holderFile}.new`, holderFile)
  }
  // Until the first role is started, the processes of the previous holder stay named.
  record(previous?.roles ?? [])
  return { previous, record, release: () => database.close() }
}

/** Whoever can read the file could lock it. It is only ever opened when it is new: to close it would be to unlock it. */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Null when nobody ever held the folder, or the file is not one of ours. */
function readHolder(file: string): Holder | null {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  if (text.length > HOLDER_BYTES_MAX) return null
  try {
    const { pid, start_ts, roles } = JSON.parse(text) as Partial<Holder>
    if (typeof pid !== 'number' || typeof start_ts !== 'string' || !Array.isArray(roles)) return null
    return { pid, start_ts, roles: roles.filter(isIdentity) }
  } catch {
    // Torn by a crash of the whole machine: then none of its processes lives either.
    return null
  }
}

function isIdentity(value: unknown): value is ProcessId {
  if (typeof value !== 'object' || value === null) return false
  const { pid, start_time, boot_id } = value as Partial<ProcessId>
  return Number.isSafeInteger(pid) && typeof start_time === 'string' && typeof boot_id === 'string'
}

/** The identities of the processes that live, of `pids`. */
export function identitiesOf(pids: readonly number[]): ProcessId[] {
  return pids.map(identityOf).filter((identity) => identity !== null)
}
