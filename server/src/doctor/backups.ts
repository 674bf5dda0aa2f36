// Backups by a schedule: whether one succeeded in time.
import { lastBackup } from '../backup/last-backup.ts'
import { nextBackup } from '../backup/schedule.ts'
import type { Config } from '../config/config.ts'
import { connect } from '../database/connect.ts'
import { embeddedUrl } from '../database/embedded/embedded.ts'
import { type Finding, failed, ok, skipped, warning } from './finding.ts'

/** A backup is late when it is not complete so long after its time. */
const LATE_MS = 12 * 60 * 60_000
const REMEDY = "open the hub's page Platform > Backups    (it says why the last run failed)"

/** None without a schedule. */
export async function examineBackups(config: Config, is_running: boolean, now_ms: number): Promise<Finding[]> {
  const { backups, data_dir } = config
  if (backups === null) return []
  if (!is_running) return [skipped('backups', 'the platform does not run')]
  const url = config.database_url ?? (await embeddedUrl(data_dir))
  const database = connect({ url, application_name: 'muster doctor', connections_max: 1 })
  try {
    const last_ms = await lastBackup(database.pool, backups.to)
    if (last_ms === null) return [warning('backups', `No backup into ${backups.to} has succeeded yet.`, REMEDY)]
    const text = new Date(last_ms).toISOString()
    if (nextBackup(backups, last_ms) + LATE_MS < now_ms) {
      return [failed('backups', `The last backup into ${backups.to} is of ${text}.`, REMEDY)]
    }
    return [ok('backups', `the last one into ${backups.to} is of ${text}`)]
  } finally {
    await database.close()
  }
}
