// Settings of backups that the platform makes by a schedule, and of the key that encrypts them.
import { isAbsolute, resolve } from 'node:path'
import { parseKeepRule } from '../text/keep-rule.ts'
import type { Config } from './config.ts'
import { readS3Location } from './objects.ts'
import type { SettingsReader } from './read.ts'

/** As `age-keygen` writes it. */
const KEY = /^AGE-SECRET-KEY-1[0-9A-Z]{58}$/
/** Minute, hour, day of the month, month and day of the week. */
const CRON = /^\S{1,64}(?: \S{1,64}){4}$/

export function readBackups(read: SettingsReader, s3: Config['s3']): Pick<Config, 'backups' | 'backup_key'> {
  const { mistakes } = read
  const backup_key = read.textOrNull('MUSTER_BACKUP_KEY')
  if (backup_key !== null && !KEY.test(backup_key)) {
    mistakes.push('MUSTER_BACKUP_KEY must be a key such as AGE-SECRET-KEY-1…; "muster keys backup" prints a new one.')
  }
  const to = read.textOrNull('MUSTER_BACKUP_TO')
  const schedule = read.text('MUSTER_BACKUP_SCHEDULE')
  const keep = parseKeepRule(read.text('MUSTER_BACKUP_KEEP'))
  if (!CRON.test(schedule)) {
    mistakes.push(
      `MUSTER_BACKUP_SCHEDULE must be five fields of cron such as "0 4 * * *", not ${JSON.stringify(schedule)}.`,
    )
  }
  if (keep === null) {
    mistakes.push('MUSTER_BACKUP_KEEP must be numbers of days, weeks and months such as "7d 4w 12m".')
  }
  if (to === null || keep === null) return { backups: null, backup_key }
  if (to.startsWith('s3://') ? readS3Location(to) === null : !isAbsolute(to)) {
    mistakes.push(
      `MUSTER_BACKUP_TO must be an absolute path, s3://BUCKET or s3://BUCKET/PREFIX, not ${JSON.stringify(to)}.`,
    )
  } else if (to.startsWith('s3://') && s3 === null) {
    mistakes.push('MUSTER_BACKUP_TO needs MUSTER_S3_ACCESS_KEY_ID and MUSTER_S3_SECRET_ACCESS_KEY.')
  }
  return { backups: { to: placeOf(to), schedule, keep }, backup_key }
}

/** As records of backups name it: without a slash at its end. */
function placeOf(to: string): string {
  return to.startsWith('s3://') ? to.replace(/\/$/, '') : resolve(to)
}
