// `muster backup`, `muster restore` and `muster verify`: what they do, apart from what a person types and sees. They work
// beside a platform that runs, on one that is stopped, and on the database that DATABASE_URL names.
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { ConfigError, readConfig } from '../config/read-config.ts'
import { StartError } from '../config/start-error.ts'
import { lockObjects } from '../database/objects-lock.ts'
import { type KeepRule, parseKeepRule } from '../text/keep-rule.ts'
import { copyObjects } from './copy-objects.ts'
import { pruneBackups } from './prune.ts'
import { recordBackup, recordVerification, recordVerifiedBackup } from './records.ts'
import { counted, inMegabytes, type Report, reportLines, reportOf } from './report.ts'
import { backupLabel, listBackups, type OpenedBackup, openBackup, type Repository } from './repository.ts'
import { restoreBackup } from './restore.ts'
import type { Source } from './source.ts'
import { type Platform, takeBackup, takeIntoRepository } from './take.ts'
import { checkBackup, lackingSentence } from './verify/backup.ts'
import { checkPlatform } from './verify/platform.ts'
import { commandLog, explained, withPlatform, withRepository } from './with.ts'

export { newBackupKey } from './encryption.ts'

/** What the operator reads, and whether the command succeeded. */
export type Outcome = { lines: string[]; is_good: boolean }

export async function backup(env: NodeJS.ProcessEnv, folder: string): Promise<Outcome> {
  const manifest = await onPlatform(env, async (platform) => {
    const taken = await takeBackup(platform, folder)
    await recordBackup(platform.client, { folder, manifest: taken, now_ms: Date.now() })
    return taken
  })
  const row_count = manifest.tables.reduce((sum, table) => sum + table.row_count, 0)
  const { object_count, object_bytes, create_ts, lacking_objects } = manifest
  const lines = [
    `${folder} is a backup as of ${create_ts}: ${counted(row_count, 'row')} in ${counted(manifest.tables.length, 'table')}, ` +
      `${counted(object_count, 'object')} (${inMegabytes(object_bytes)}), and the keys. It is as secret as they are.`,
    ...lacking_objects.map((object) => `${lackingSentence(object)}; it is not in it.`),
  ]
  return { lines, is_good: lacking_objects.length === 0 }
}

/** `--keep` of the command. Throws a StartError. */
export function readKeep(text: string): KeepRule | number {
  const rule = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : parseKeepRule(text)
  if (rule !== null) return rule
  throw new StartError('--keep takes a number from 1 to 99999, or days, weeks and months such as "7d 4w 12m".')
}

/** Adds a backup to a repository. `keep`: how many backups stay, or by which rule; null: all. */
export async function backupInto(
  env: NodeJS.ProcessEnv,
  location: string,
  keep: KeepRule | number | null,
): Promise<Outcome> {
  return withRepository(readConfig(env), location, (repository, work_folder) =>
    onPlatform(env, async (platform) => {
      const taken = await takeIntoRepository(platform, repository, work_folder)
      const { name, manifest, copied_count, copied_bytes } = taken
      await recordBackup(platform.client, {
        folder: backupLabel(repository, name),
        manifest,
        now_ms: Date.now(),
      })
      const pruned = keep === null ? null : await pruneBackups(repository, keep)
      const { object_count, object_bytes, lacking_objects } = manifest
      const lines = [
        `${repository.location} has the backup ${name}: ${counted(object_count, 'object')} (${inMegabytes(object_bytes)}), ` +
          `of which ${counted(copied_count, 'object')} (${inMegabytes(copied_bytes)}) were new. ${secrecyOf(repository)}`,
        ...(pruned !== null && pruned.backup_count > 0
          ? [
              `${counted(pruned.backup_count, 'old backup')} and ${counted(pruned.object_count, 'object')} of it were removed.`,
            ]
          : []),
        ...lacking_objects.map((object) => `${lackingSentence(object)}; it is not in it.`),
      ]
      return { lines, is_good: lacking_objects.length === 0 }
    }),
  )
}

function secrecyOf({ is_encrypted }: Repository): string {
  return is_encrypted
    ? 'It is encrypted: without MUSTER_BACKUP_KEY it cannot be read.'
    : 'It is as secret as the keys in it.'
}

/** The backups of a repository, a line each. */
export async function backups(env: NodeJS.ProcessEnv, location: string): Promise<Outcome> {
  return withRepository(readConfig(env), location, async (repository) => {
    const listed = await listBackups(repository)
    const lines = listed.map(({ name, is_finished }) => (is_finished ? name : `${name}  not finished`))
    return { lines: lines.length === 0 ? [`${repository.location} has no backups.`] : lines, is_good: true }
  })
}

/** Copies the stored files of the platform to another store: a bucket, or a folder. */
export async function copyStored(env: NodeJS.ProcessEnv, location: string): Promise<Outcome> {
  const config = { ...readConfig(env), backup_key: null }
  return withRepository(config, location, (repository) =>
    onPlatform(env, async ({ client, objects }) => {
      await lockObjects(client)
      const { object_count, object_bytes, copied_count, copied_bytes, lacking_objects } = await copyObjects(client, {
        ...{ from: objects, to: repository.objects },
      })
      const lines = [
        `${repository.location} has all ${counted(object_count, 'object')} (${inMegabytes(object_bytes)}) of completed uploads; ` +
          `${counted(copied_count, 'object')} (${inMegabytes(copied_bytes)}) were copied now.`,
        ...lacking_objects.map(({ object_key, reason }) => `object ${object_key} is ${reason}; it is not there.`),
      ]
      return { lines, is_good: lacking_objects.length === 0 }
    }),
  )
}

export async function restore(env: NodeJS.ProcessEnv, where: BackupLocation): Promise<Outcome> {
  const config = readConfig(env)
  const options = { now: Date.now, log: commandLog() }
  const restored = await explained(config, () =>
    withBackup(config, where, (backup) => restoreBackup(config, backup, options)),
  )
  const { manifest, migrated, lost_run_count } = restored
  const lines = [
    `${config.data_dir} is the platform as of ${manifest.create_ts}.`,
    ...(migrated.length > 0 ? [`It was of an earlier version: ${counted(migrated.length, 'migration')} ran.`] : []),
    ...(lost_run_count > 0
      ? [`${counted(lost_run_count, 'lobby', 'lobbies')} ran then: they and their seats end when it starts.`]
      : []),
    ...manifest.lacking_objects.map((object) => `${lackingSentence(object)}.`),
  ]
  return { lines, is_good: true }
}

/** Verifies a backup; without one (null), the data folder and the database of the settings. */
export async function verify(
  env: NodeJS.ProcessEnv,
  where: BackupLocation | null,
): Promise<Outcome & { report: Report }> {
  const report =
    where === null
      ? await verifyPlatform(env)
      : await withBackup(readConfig(env), where, (backup) => verifyBackup(env, backup))
  return { report, lines: reportLines(report), is_good: report.is_sound }
}

async function verifyBackup(env: NodeJS.ProcessEnv, backup: OpenedBackup): Promise<Report> {
  const { label: folder } = backup
  const { manifest, checks } = await checkBackup(backup, Date.now())
  const subject = manifest === null ? `Backup ${folder}` : `Backup ${folder} as of ${manifest.create_ts}`
  const report = reportOf(subject, checks)
  const config = configOf(env)
  const now_ms = Date.now()
  if (config !== null) await recordVerifiedBackup(config, { folder, report, now_ms }, { now_ms, log: commandLog() })
  return report
}

/** Null: the settings have mistakes. A backup can be verified without them. */
function configOf(env: NodeJS.ProcessEnv): Config | null {
  try {
    return readConfig(env)
  } catch (error) {
    if (error instanceof ConfigError) return null
    throw error
  }
}

async function verifyPlatform(env: NodeJS.ProcessEnv): Promise<Report> {
  return onPlatform(env, async (platform, found) => {
    const how = found === 'DATABASE_URL' ? 'with the database of DATABASE_URL' : `which is ${found}`
    const report = reportOf(`Platform in ${platform.data_dir}, ${how}`, await checkPlatform(platform, Date.now()))
    await recordVerification(platform.client, { folder: null, report, now_ms: Date.now() })
    return report
  })
}

async function onPlatform<T>(
  env: NodeJS.ProcessEnv,
  work: (platform: Platform, found: Source['found']) => Promise<T>,
): Promise<T> {
  return withPlatform(readConfig(env), work)
}

/** A folder, or a backup of a repository. `name`: null for the latest. */
export type BackupLocation = string | { repository: string; name: string | null }

/** Fetches a backup of a repository, without its objects, for as long as `work` needs it. */
export async function withBackup<T>(
  config: Config,
  where: BackupLocation,
  work: (backup: OpenedBackup) => Promise<T>,
): Promise<T> {
  if (typeof where === 'string') return work({ label: where, folder: where, objects: null })
  return withRepository(config, where.repository, async (repository, work_folder) =>
    work(await openBackup(repository, where.name, join(work_folder, 'backup'))),
  )
}
