// Restoring: a whole backup into an empty data folder and an empty database, or nothing at all. Everything that can be
// refused is refused before the first byte is written. From then on until the end a mark lies in the data folder: with it
// the platform does not start, and a restore begins anew. Rows come last and in one transaction, so a database that has
// rows has all of them, and what they name is there.
//
// The lobbies of the backup ran on a machine that is lost, or that goes on without us. Their runs are recorded as lost;
// with the next start their lobbies stop and their seats end, as after a power cut.
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { StartError } from '../config/start-error.ts'
import { endEmbedded, startEmbedded } from '../database/embedded/embedded.ts'
import { openObjects } from '../objects/open.ts'
import { syncFolder } from '../objects/sync-folder.ts'
import { readCertificateAuthorities } from '../outbound/certificate-authorities.ts'
import { makeFolders, restoreMark } from '../supervisor/folders.ts'
import { lockFolder } from '../supervisor/lock.ts'
import { credentialFiles } from './credentials.ts'
import { forEachAtOnce, readSums, writeDurably } from './files.ts'
import { type Manifest, objectFile } from './manifest.ts'
import { knownMigrations } from './migrations.ts'
import { type OpenedBackup, readObject } from './repository.ts'
import { requireEmptyDatabase, restoreRows } from './restore-rows.ts'
import { checkBackup, lackingSentence } from './verify/backup.ts'

/** Findings that the error of a restore lists. */
const FINDINGS_SHOWN_MAX = 10
/** Files that do not count as content of a data folder: locks, and what a file system creates. */
const NOT_CONTENT = /^(lock|lock-holder\.json|postgres\.lock|lost\+found)$/

export type Restored = { manifest: Manifest; migrated: string[]; lost_run_count: number }

/**
 * Throws a StartError, and has changed nothing, when the backup is damaged or newer than this version, when folder or
 * database are not empty, or when PostgreSQL cannot run in the folder. After any other failure the same call begins anew.
 */
export async function restoreBackup(
  config: Config,
  backup: OpenedBackup,
  { now, log }: { now: () => number; log: Logger },
): Promise<Restored> {
  const now_ms = now()
  const { data_dir, database_url } = config
  const { folder } = backup
  const manifest = await requireSound(backup, now_ms)
  if (manifest.game !== undefined) throw new StartError(`${backup.label} has one game. "muster import-game" reads it.`)
  const migrations = knownMigrations(manifest.migrations)
  await requireEmptyFolder(data_dir)
  if (database_url !== null) await requireEmptyDatabase(database_url, migrations)

  await mkdir(data_dir, { recursive: true, mode: 0o711 })
  const lock = lockFolder(data_dir, now_ms)
  try {
    await requireEmptyFolder(data_dir)
    await beginAnew(data_dir, log)
    const embedded = database_url === null ? await startOrClear(data_dir, log) : null
    const restored = await restoreAll(embedded?.url ?? database_url!).finally(embedded?.stop)
    await rm(restoreMark(data_dir))
    await syncFolder(data_dir)
    return { manifest, ...restored }
  } finally {
    lock.release()
  }

  async function restoreAll(url: string) {
    await restoreCredentials(folder, data_dir)
    await restoreObjects(config, backup, now)
    return restoreRows(url, { folder, manifest, migrations, log })
  }
}

/** What the platform lacked already when it was backed up is no damage of the backup. */
export async function requireSound(backup: OpenedBackup, now_ms: number): Promise<Manifest> {
  const { manifest, checks } = await checkBackup(backup, now_ms)
  const lacking = new Set(manifest?.lacking_objects.map(lackingSentence))
  const findings = checks.flatMap((check) => check.findings).filter((finding) => !lacking.has(finding))
  if (manifest !== null && findings.length === 0) return manifest
  const shown = findings.slice(0, FINDINGS_SHOWN_MAX).map((finding) => `\n  ${finding}`)
  const rest = findings.length > shown.length ? `\n  and ${findings.length - shown.length} more` : ''
  throw new StartError(`The backup ${backup.label} is damaged; nothing has been restored.${shown.join('')}${rest}`)
}

async function requireEmptyFolder(data_dir: string): Promise<void> {
  const names = await contentOf(data_dir)
  if (names.length === 0 || names.includes(baseOf(restoreMark(data_dir)))) return
  throw new StartError(
    `${data_dir} is not empty (${names[0]} is there). A backup is restored into an empty data folder: move this one away, ` +
      'or set MUSTER_DATA to another.',
  )
}

async function contentOf(data_dir: string): Promise<string[]> {
  const names = await readdir(data_dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names.filter((name) => !NOT_CONTENT.test(name))
}

/** The mark first; then what an earlier restore has left goes, and the folders are there. */
async function beginAnew(data_dir: string, log: Logger): Promise<void> {
  const mark = restoreMark(data_dir)
  await (await open(mark, 'a', 0o600)).close()
  await syncFolder(data_dir)
  await endEmbedded(data_dir, log)
  await clear(data_dir)
  makeFolders(data_dir)
}

/** It may be refused here, as in a place that PostgreSQL's user cannot reach: then the folder is as empty as it was. */
async function startOrClear(data_dir: string, log: Logger) {
  try {
    return await startEmbedded({ data_dir, log })
  } catch (error) {
    if (error instanceof StartError) {
      await clear(data_dir)
      await rm(restoreMark(data_dir))
    }
    throw error
  }
}

/** All but the mark. */
async function clear(data_dir: string): Promise<void> {
  for (const name of await contentOf(data_dir))
    if (name !== baseOf(restoreMark(data_dir))) await rm(join(data_dir, name), { recursive: true, force: true })
}

async function restoreCredentials(folder: string, data_dir: string): Promise<void> {
  for (const path of await credentialFiles(folder)) {
    await mkdir(dirname(join(data_dir, path)), { recursive: true, mode: 0o700 })
    await writeDurably(join(data_dir, path), createReadStream(join(folder, path)))
    await syncFolder(dirname(join(data_dir, path)))
  }
}

/** A bucket may have an object already: after a restore that was broken off, or when only the database was lost. */
async function restoreObjects(config: Config, backup: OpenedBackup, now: () => number): Promise<void> {
  const { folder, objects: shared } = backup
  const objects = openObjects(config, { now, trust: readCertificateAuthorities(config.fetch_authorities) })
  try {
    await forEachAtOnce(await readSums(folder), async ([path, sha256]) => {
      const object_key = baseOf(path)
      if (path !== objectFile(object_key)) return
      const content_length =
        shared === null ? (await stat(join(folder, path))).size : ((await shared.lengthOf(object_key)) ?? 0)
      const there = await objects.stat(object_key)
      if (there?.sha256 === sha256 && there.content_length === content_length) return
      const stored = await objects.put(object_key, await readObject(backup, object_key), content_length)
      if (stored.sha256 !== sha256) throw new Error(`${path} is not what it was when the backup was checked.`)
    })
  } finally {
    objects.close()
  }
}

function baseOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
