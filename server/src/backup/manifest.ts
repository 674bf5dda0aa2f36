// What a backup is: a folder that a person can look into.
//
//   manifest.json        what it is a backup of.
//   SHA256SUMS           a line for every file but itself, as `sha256sum -c SHA256SUMS` reads it.
//   tables/<name>.copy   the rows of a table, in PostgreSQL's COPY text format: a line a row.
//   jobs.copy            the jobs that were planned, one a line.
//   objects/<ab>/<key>   the bytes of completed uploads.
//   keys/, admin-token   the platform's own credentials.
//
// It is written aside and renamed when it is complete and durable, so a folder of its name is a whole backup. A changed
// byte shows wherever it is: in a file against its line, in SHA256SUMS as a line that fits no file.
// A game file (game/) has the same content in one tar archive: the rows and objects of one game, without keys and jobs.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StartError } from '../config/start-error.ts'

export const FORMAT = 1
export const MANIFEST_FILE = 'manifest.json'
export const SUMS_FILE = 'SHA256SUMS'
export const JOBS_FILE = 'jobs.copy'
export const ADMIN_TOKEN_FILE = 'admin-token'
/** Size of a manifest that is read. */
const MANIFEST_BYTES_MAX = 16 * 1024 * 1024

export type BackedTable = { name: string; columns: string[]; row_count: number }
export type BackedSequence = { name: string; last_value: string; is_called: boolean }
/** An object that was not there, or not what the database says, when the backup was taken. */
export type LackingObject = { object_key: string; reason: 'missing' | 'damaged' }

export type Manifest = {
  format: typeof FORMAT
  /** The moment that all rows are of. */
  create_ts: string
  muster_version: string
  /** Absent in backups of versions whose platforms had none. */
  platform_id?: string
  /** For people: the text format is read by every major. */
  postgres_major: number
  migrations: { name: string; checksum: string }[]
  tables: BackedTable[]
  sequences: BackedSequence[]
  job_count: number
  object_count: number
  object_bytes: number
  lacking_objects: LackingObject[]
  /** In a game file: the only game whose rows it has. */
  game?: ExportedGame
}

export type ExportedGame = {
  game_id: string
  name_id: string
  /** What the file does not have, because it belongs to the platform. */
  left_out: LeftOut
}

/** `secrets`: names of variables of lobbies. `versions`: names of versions whose config has secrets. The others are numbers. */
export type LeftOut = {
  secrets: string[]
  versions: string[]
  notice_targets: number
  domains: string[]
  tokens: number
}

export function tableFile(name: string): string {
  return `tables/${name}.copy`
}

export function objectFile(object_key: string): string {
  return `objects/${object_key.slice(0, 2)}/${object_key}`
}

/** Throws a StartError for a folder that is no backup, or one that this version cannot read. */
export async function readManifest(folder: string): Promise<Manifest> {
  const path = join(folder, MANIFEST_FILE)
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
    throw new StartError(`${folder} is not a backup: it has no ${MANIFEST_FILE}.`)
  })
  const value = text.length > MANIFEST_BYTES_MAX ? null : parse(text)
  if (value === null) throw new StartError(`${path} is damaged: it cannot be read.`)
  if (value.format !== FORMAT) {
    throw new StartError(
      `The backup ${folder} has the format ${value.format}, and this version of Muster reads ${FORMAT}. ` +
        'Restore it with the version that made it, or a newer one.',
    )
  }
  if (!isManifest(value)) throw new StartError(`${path} is damaged: members are missing.`)
  return value
}

function parse(text: string): Partial<Manifest> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : null
  } catch {
    return null
  }
}

/** Looks as far as a hand-edited file could mislead us; what is changed by accident the sums tell. */
function isManifest(value: Partial<Manifest>): value is Manifest {
  const lists = [value.migrations, value.tables, value.sequences, value.lacking_objects]
  const counts = [value.postgres_major, value.job_count, value.object_count, value.object_bytes]
  return (
    typeof value.create_ts === 'string' &&
    typeof value.muster_version === 'string' &&
    lists.every(Array.isArray) &&
    counts.every(Number.isSafeInteger) &&
    value.tables!.every(({ name, columns }) => isName(name) && Array.isArray(columns) && columns.every(isColumn)) &&
    value.sequences!.every(({ name, last_value }) => isName(name) && /^-?\d+$/.test(last_value))
  )
}

/** Names become parts of paths and of statements; ours are plain. */
function isName(name: unknown): boolean {
  return typeof name === 'string' && /^[a-z][a-z0-9_]{0,62}$/.test(name)
}

function isColumn(name: unknown): boolean {
  return typeof name === 'string' && name.length > 0 && name.length < 64
}
