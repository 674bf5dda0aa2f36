// `muster backup`, `muster restore` and `muster verify`: what they do, apart from what a person types and sees. They work
// beside a platform that runs, on one that is stopped, and on the database that DATABASE_URL names.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError, readConfig } from '../config/config.ts'
import { openFilesystemObjects } from '../objects/filesystem.ts'
import { createLog } from '../observe/log.ts'
import { StartError, startSentence } from '../start-error.ts'
import { recordBackup, recordVerification, recordVerifiedBackup } from './records.ts'
import { restoreBackup } from './restore.ts'
import { openSource, type Source } from './source.ts'
import { type Platform, takeBackup } from './take.ts'
import { checkBackup, lackingSentence } from './verify/backup.ts'
import { checkPlatform } from './verify/platform.ts'
import { counted, inMegabytes, type Report, reportLines, reportOf } from './verify/report.ts'

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

export async function restore(env: NodeJS.ProcessEnv, folder: string): Promise<Outcome> {
  const config = readConfig(env)
  const options = { now_ms: Date.now(), log: commandLog() }
  const restored = await explained(config, () => restoreBackup(config, folder, options))
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

/** Of the backup in `folder`; null: of the data folder and the database of the settings. */
export async function verify(env: NodeJS.ProcessEnv, folder: string | null): Promise<Outcome & { report: Report }> {
  const report = folder === null ? await verifyPlatform(env) : await verifyBackup(env, folder)
  return { report, lines: reportLines(report), is_good: report.is_sound }
}

async function verifyBackup(env: NodeJS.ProcessEnv, folder: string): Promise<Report> {
  const { manifest, checks } = await checkBackup(folder, Date.now())
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
  const config = readConfig(env)
  const { data_dir } = config
  const options = { now_ms: Date.now(), log: commandLog() }
  const source = await explained(config, () => openSource(config, options))
  try {
    const objects = openFilesystemObjects(join(data_dir, 'objects'))
    return await work({ client: source.client, objects, data_dir, muster_version: version() }, source.found)
  } finally {
    await source.close()
  }
}

/** A database that cannot be reached is reported in a sentence, as at a start. */
async function explained<T>(config: Config, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const sentence = startSentence(error, config)
    if (error instanceof Error && sentence === error.message) throw error
    throw new StartError(sentence, { cause: error })
  }
}

function commandLog() {
  return createLog({ who: 'command', level: 'error', to: process.stderr })
}

function version(): string {
  const file = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
