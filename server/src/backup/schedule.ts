// When a backup of the schedule is due, and when the last one was made.
import { Cron } from 'croner'
import type { Config } from '../config/config.ts'
import { StartError } from '../config/start-error.ts'

/** The first time of the schedule after `ms`. Throws a StartError for a schedule that never comes. */
export function nextBackup({ schedule }: NonNullable<Config['backups']>, ms: number): number {
  try {
    const next = new Cron(schedule, { timezone: 'UTC' }).nextRun(new Date(ms))
    if (next !== null) return next.getTime()
  } catch (error) {
    throw new StartError(`MUSTER_BACKUP_SCHEDULE cannot be read: ${(error as Error).message}`, { cause: error })
  }
  throw new StartError('MUSTER_BACKUP_SCHEDULE names a time that never comes.')
}

/** When the last backup into this place was complete, in milliseconds; null: never. `to`: as in the settings. */
export async function lastBackup(
  db: { query: (text: string, values: unknown[]) => Promise<{ rows: { end_ts: Date | null }[] }> },
  to: string,
): Promise<number | null> {
  const { rows } = await db.query('select max(end_ts) as end_ts from backups where starts_with(folder, $1)', [
    `${to}/backups/`,
  ])
  return rows[0]?.end_ts?.getTime() ?? null
}
