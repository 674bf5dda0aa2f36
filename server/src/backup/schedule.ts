// When a backup of the schedule is due.
import type { Config } from '../config/config.ts'
import { StartError } from '../config/start-error.ts'
import { cronFault, nextOccurrences } from '../schedules/occurrences.ts'

/** The first time of the schedule after `ms`. Throws a StartError for a schedule that cannot be read, or that never comes. */
export function nextBackup({ schedule: cron }: NonNullable<Config['backups']>, ms: number): number {
  const fault = cronFault(cron)
  if (fault !== null) throw new StartError(`MUSTER_BACKUP_SCHEDULE cannot be used: ${fault}`)
  const [next] = nextOccurrences({ cron, time_zone: 'UTC' }, ms, 1)
  if (next === undefined) throw new StartError('MUSTER_BACKUP_SCHEDULE names no time that is still to come.')
  return next
}
