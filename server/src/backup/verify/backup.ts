// Whether a backup is whole: every byte as it was written, as many rows and objects as the manifest says, and keys that
// sign. It is asked before anything is restored, and by `muster verify`.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { StartError } from '../../config/start-error.ts'
import { MIGRATIONS } from '../../database/migrations/index.ts'
import { isObjectKey, ObjectNotFound } from '../../objects/objects.ts'
import { checkCredentials } from '../credentials.ts'
import { type CheckedFiles, checkFiles, type ReadElsewhere } from '../files.ts'
import {
  JOBS_FILE,
  type LackingObject,
  MANIFEST_FILE,
  type Manifest,
  objectFile,
  readManifest,
  SUMS_FILE,
  tableFile,
} from '../manifest.ts'
import { knownMigrations } from '../migrations.ts'
import { type BackupCheck, counted, inMegabytes } from '../report.ts'
import type { OpenedBackup } from '../repository.ts'

export type CheckedBackup = {
  /** Null: it is damaged, and the first check says so. */
  manifest: Manifest | null
  checks: BackupCheck[]
}

/** Reads all of it. Throws a StartError for a folder that is no backup, or one of a format that is newer than ours. */
export async function checkBackup({ folder, ...opened }: OpenedBackup, now_ms: number): Promise<CheckedBackup> {
  if (![MANIFEST_FILE, SUMS_FILE].some((name) => existsSync(join(folder, name))))
    throw new StartError(`${folder} is not a backup: it has neither ${MANIFEST_FILE} nor ${SUMS_FILE}.`)
  const files = await checkFiles(folder, (path) => readObject(opened, path))
  const looked_at = `${counted(files.file_count, 'file')}, ${inMegabytes(files.bytes)}, against ${SUMS_FILE}`
  const remarks =
    files.unread_count === 0
      ? []
      : [`${counted(files.unread_count, 'object')} of earlier backups, which are there, were not read again`]
  const checks: BackupCheck[] = [{ name: 'files', looked_at, findings: files.findings, remarks }]
  if (!files.sound.has(MANIFEST_FILE)) return { manifest: null, checks }
  const manifest = await readManifest(folder)
  checks.push(checkTables(manifest, files), checkObjects(manifest, files), checkVersion(manifest))
  if (manifest.game === undefined) checks.push(await checkCredentials(folder, now_ms))
  return { manifest, checks }
}

async function readObject(
  { objects, reads = () => true }: Pick<OpenedBackup, 'objects' | 'reads'>,
  path: string,
): ReturnType<ReadElsewhere> {
  const object_key = path.slice(path.lastIndexOf('/') + 1)
  if (objects === null || !isObjectKey(object_key) || path !== objectFile(object_key)) return null
  if (!reads(object_key)) return (await objects.lengthOf(object_key)) === null ? null : 'unread'
  return objects.read(object_key).catch((error: unknown) => {
    if (error instanceof ObjectNotFound) return null
    throw error
  })
}

/** Rows are lines. */
function checkTables(manifest: Manifest, files: CheckedFiles): BackupCheck {
  const findings: string[] = []
  const expect = (path: string, row_count: number): void => {
    const sound = files.sound.get(path)
    if (sound === undefined) return
    if (sound.line_count !== row_count)
      findings.push(`${path} has ${sound.line_count} rows, and ${MANIFEST_FILE} names ${row_count}`)
  }
  for (const { name, row_count } of manifest.tables) {
    expect(tableFile(name), row_count)
    if (!files.known.has(tableFile(name))) findings.push(`${tableFile(name)} is missing`)
  }
  expect(JOBS_FILE, manifest.job_count)
  const row_count = manifest.tables.reduce((sum, table) => sum + table.row_count, 0)
  const looked_at = `${counted(manifest.tables.length, 'table')}, ${counted(row_count, 'row')}, ${counted(manifest.job_count, 'planned job')}`
  return { name: 'rows', looked_at, findings, remarks: [] }
}

function checkObjects(manifest: Manifest, files: CheckedFiles): BackupCheck {
  const named = [...files.known].filter((path) => path.startsWith('objects/'))
  const findings = [
    ...(named.length === manifest.object_count
      ? []
      : [`there are ${named.length} objects, and ${MANIFEST_FILE} names ${manifest.object_count}`]),
    ...manifest.lacking_objects.map(lackingSentence),
  ]
  const looked_at = `${counted(manifest.object_count, 'object')}, ${inMegabytes(manifest.object_bytes)}`
  return { name: 'objects', looked_at, findings, remarks: [] }
}

export function lackingSentence({ object_key, reason }: LackingObject): string {
  return `object ${object_key} was ${reason} already when the backup was taken`
}

function checkVersion(manifest: Manifest): BackupCheck {
  const remarks: string[] = []
  try {
    const known = knownMigrations(manifest.migrations).length
    if (known < MIGRATIONS.length)
      remarks.push(
        `it is of an earlier version: a restore runs ${counted(MIGRATIONS.length - known, 'migration')} more`,
      )
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    remarks.push(`it cannot be restored with this version of Muster. ${error.message}`)
  }
  const looked_at = `Muster ${manifest.muster_version}, PostgreSQL ${manifest.postgres_major}, ${counted(manifest.migrations.length, 'migration')}`
  return { name: 'version', looked_at, findings: [], remarks }
}
