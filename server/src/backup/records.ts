// What `muster backup` and `muster verify` leave in the database for the operator's pages. A command that cannot record
// itself has still succeeded: the database may be of an earlier version, or away.
import { resolve } from 'node:path'
import type { ClientBase } from 'pg'
import type { Config } from '../config/config.ts'
import { StartError } from '../config/start-error.ts'
import { newId } from '../ids.ts'
import { isLocked } from '../supervisor/lock.ts'
import type { Manifest } from './manifest.ts'
import type { Report } from './report.ts'
import { openSource } from './source.ts'

/** Backups, and verifications, whose records are kept. */
const KEPT_MAX = 100

type SourceOptions = Parameters<typeof openSource>[1]

export async function recordBackup(
  client: ClientBase,
  { folder, manifest, now_ms }: { folder: string; manifest: Manifest; now_ms: number },
): Promise<void> {
  if (!(await hasTable(client, 'backups'))) return
  await client.query(
    `insert into backups (backup_id, folder, create_ts, end_ts, row_count, object_count, object_bytes, lacking_count)
      values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      newId(now_ms),
      locationOf(folder),
      ...[manifest.create_ts, new Date(now_ms)],
      manifest.tables.reduce((sum, { row_count }) => sum + row_count, 0),
      ...[manifest.object_count, manifest.object_bytes, manifest.lacking_objects.length],
    ],
  )
  await client.query(
    `delete from backups where backup_id not in (select backup_id from backups order by end_ts desc limit ${KEPT_MAX})`,
  )
}

/** `folder`: of the backup; null: of the platform. */
export async function recordVerification(
  client: ClientBase,
  { folder, report, now_ms }: { folder: string | null; report: Report; now_ms: number },
): Promise<void> {
  if (!(await hasTable(client, 'verifications'))) return
  const finding_count = report.checks.reduce((sum, { findings }) => sum + findings.length, 0)
  await client.query(
    `insert into verifications (verification_id, folder, end_ts, is_sound, finding_count) values ($1, $2, $3, $4, $5)`,
    [newId(now_ms), folder === null ? null : locationOf(folder), new Date(now_ms), report.is_sound, finding_count],
  )
  await client.query(
    `delete from verifications where verification_id not in (
      select verification_id from verifications order by end_ts desc limit ${KEPT_MAX}
    )`,
  )
}

/** A backup may be verified on another machine. So its verification is recorded only where a platform's database runs. */
export async function recordVerifiedBackup(
  config: Config,
  record: { folder: string; report: Report; now_ms: number },
  options: SourceOptions,
): Promise<void> {
  if (config.database_url === null && !isRunning(config)) return
  try {
    const source = await openSource(config, options)
    try {
      await recordVerification(source.client, record)
    } finally {
      await source.close()
    }
  } catch (error) {
    options.log.debug({ err: error }, 'the verification is not recorded')
  }
}

function isRunning({ data_dir }: Config): boolean {
  try {
    return isLocked(data_dir)
  } catch (error) {
    if (error instanceof StartError || (error as NodeJS.ErrnoException).code !== undefined) return false
    throw error
  }
}

async function hasTable(client: ClientBase, name: string): Promise<boolean> {
  const { rows } = await client.query<{ is_there: boolean }>('select to_regclass($1) is not null as is_there', [name])
  return rows[0]?.is_there ?? false
}

/** A folder by its absolute path, a place in a bucket as it is. */
function locationOf(folder: string): string {
  return folder.startsWith('s3://') ? folder : resolve(folder)
}
