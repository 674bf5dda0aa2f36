// The lock of the data folder, so that two platforms never share it.
//
// Node has no flock. A file with a pid becomes stale after a `kill -9`: another process may have the pid by then,
// containers count pids separately, and two processes that both find it stale might both take it. SQLite, which is part of
// Node, locks its files with the kernel's locks. So the lock is an open exclusive transaction on an empty database that is
// never written. The kernel gives it to one process and releases it when that process ends, whatever ends it. (Within one
// process SQLite keeps count itself, so a second platform in the same process is refused too.)
//
// The holder is written to a file beside it, for the error message and for `previous`. After a `kill -9` of the supervisor
// its roles need a moment to end, and the next supervisor waits for those processes.
import { closeSync, existsSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StartError } from '../config/start-error.ts'
import { identityOf, type ProcessId } from '../node/procfs.ts'
import type { ProgramVersion } from '../wire/compatibility.ts'

/** SQLITE_BUSY: another connection, of this or another process, has the lock. */
const SQLITE_BUSY = 5
/** Bytes of the holder's file. A larger file is damaged. */
const HOLDER_BYTES_MAX = 64 * 1024

export type RoleId = ProcessId & { role: string }

/**
 * `self`: the supervisor; null: written by an older version, or without /proc. `retiring`: processes of roles that have been
 * replaced, until they end. `program`: null: written by a version that cannot be upgraded while it runs.
 */
export type Holder = {
  pid: number
  self: ProcessId | null
  start_ts: string
  roles: RoleId[]
  retiring: RoleId[]
  program: HolderProgram | null
  /** The last upgrade that was refused, or that failed; null: none. */
  refusal: UpgradeRefusal | null
}

/** `request_id`: of the request for the upgrade. */
export type UpgradeRefusal = { request_id: string; reason: string }

/**
 * `is_ready`: all roles run this program. `has_joined`: the node of another platform. `hand_over`: absent where an older version
 * wrote it.
 */
export type HolderProgram = Omit<ProgramVersion, 'hand_over'> &
  Partial<Pick<ProgramVersion, 'hand_over'>> & { is_ready: boolean; has_joined: boolean }

export type FolderLock = {
  /** The last holder, of which processes may still live. Null on the first start. */
  previous: Holder | null
  /** The same process, which has replaced its program: its roles live, and wait for their successors. */
  is_continued: boolean
  /** Writes what has changed of the holder to its file. */
  record(changes: Partial<Omit<Holder, 'pid' | 'self'>>): void
  release(): void
}

/** Takes the lock of `folder`, or throws a StartError that names its holder. `now_ms` is only for the message. */
export function lockFolder(folder: string, now_ms: number): FolderLock {
  const holder_file = join(folder, 'lock-holder.json')
  const start_ts = new Date(now_ms).toISOString()
  const file = join(folder, 'lock')
  makePrivate(file)
  const database = tryLock(file)
  if (database === null) {
    const holder = readHolder(holder_file)
    const who = holder ? `process ${holder.pid}, since ${holder.start_ts}` : 'another process'
    throw new StartError(
      `Another Muster runs on the data folder ${folder} (${who}). Stop it, or set MUSTER_DATA to another folder.`,
    )
  }
  const previous = readHolder(holder_file)
  const self = identityOf(process.pid)
  // Until the first role starts, the processes of the previous holder stay in the file.
  const { roles, retiring } = previous ?? { roles: [], retiring: [] }
  let holder: Holder = { pid: process.pid, self, start_ts, roles, retiring, program: null, refusal: null }
  const record: FolderLock['record'] = (changes) => {
    holder = { ...holder, ...changes }
    writeFileSync(`${holder_file}.new`, JSON.stringify(holder), { mode: 0o600 })
    renameSync(`${holder_file}.new`, holder_file)
  }
  record({})
  const is_continued = previous?.self != null && self !== null && isSame(previous.self, self)
  return { previous, is_continued, record, release: () => database.close() }
}

/** Whether a platform has the lock now. Takes it for a moment when none has. */
export function isLocked(folder: string): boolean {
  const file = join(folder, 'lock')
  if (!existsSync(file)) return false
  const database = tryLock(file)
  database?.close()
  return database === null
}

/** The holder of the lock, or the last one; null when the folder never had one. */
export function holderOf(folder: string): Readonly<Holder> | null {
  return readHolder(join(folder, 'lock-holder.json'))
}

/** The open transaction that is the lock; null while another process has it. */
function tryLock(file: string): DatabaseSync | null {
  const database = new DatabaseSync(file)
  try {
    // The journal stays in memory: an empty transaction needs no second file.
    database.exec('pragma busy_timeout = 0; pragma journal_mode = memory; begin exclusive')
    return database
  } catch (error) {
    database.close()
    if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error
    return null
  }
}

/**
 * Makes the file readable by its owner only, because a reader could lock it. Only a new file is opened here: closing a
 * locked one would release the lock.
 */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Null when the folder never had a holder, or the file is damaged. */
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
    const { pid, self, start_ts, roles, retiring = [], program, refusal } = JSON.parse(text) as Partial<Holder>
    if (typeof pid !== 'number' || typeof start_ts !== 'string' || !Array.isArray(roles)) return null
    return {
      ...{ pid, start_ts, roles: roles.filter(isRole), retiring: retiring.filter(isRole) },
      self: isIdentity(self) ? self : null,
      program: program ?? null,
      refusal: refusalOf(refusal),
    }
  } catch {
    // A crash of the whole machine left it incomplete. Then none of its processes lives either.
    return null
  }
}

/** An older version wrote the reason alone. */
function refusalOf(value: unknown): UpgradeRefusal | null {
  if (typeof value === 'string') return { request_id: '', reason: value }
  return (value as UpgradeRefusal | null | undefined) ?? null
}

function isIdentity(value: unknown): value is ProcessId {
  if (typeof value !== 'object' || value === null) return false
  const { pid, start_time, boot_id } = value as Partial<ProcessId>
  return Number.isSafeInteger(pid) && typeof start_time === 'string' && typeof boot_id === 'string'
}

function isRole(value: unknown): value is RoleId {
  return isIdentity(value)
}

function isSame(one: ProcessId, other: ProcessId): boolean {
  return one.pid === other.pid && one.start_time === other.start_time && one.boot_id === other.boot_id
}

/** The identities of the living processes of a role among `pids`. */
export function identitiesOf(role: string, pids: readonly number[]): RoleId[] {
  return pids.flatMap((pid) => {
    const identity = identityOf(pid)
    return identity === null ? [] : [{ ...identity, role }]
  })
}
