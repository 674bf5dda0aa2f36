// One backup of a schedule: it is taken into the repository, read again and recorded, and then old ones are removed.
import { join } from 'node:path'
import type { KeepRule } from '../text/keep-rule.ts'
import { pruneBackups } from './prune.ts'
import { recordBackup, recordVerification } from './records.ts'
import { type Report, reportOf } from './report.ts'
import { type OpenedBackup, openBackup, type Repository } from './repository.ts'
import { type Platform, type TakenBackup, takeIntoRepository } from './take.ts'
import { checkBackup, lackingSentence } from './verify/backup.ts'

const DAY_MS = 24 * 60 * 60_000
/** An object of earlier backups is read again once in so many days. */
const READ_AGAIN_DAYS = 30

/** `findings`: what is wrong with the backup. What the platform had lost before is not the backup's damage. */
export type BackupRound = { name: string; findings: string[]; removed_count: number }

/** `now`: the wall clock. Old backups stay when the new one is damaged. */
export async function backUpOnce(
  platform: Platform,
  repository: Repository,
  { work_folder, keep, now }: { work_folder: string; keep: KeepRule; now: () => number },
): Promise<BackupRound> {
  const taken = await takeIntoRepository(platform, repository, work_folder)
  const backup = await openBackup(repository, taken.name, join(work_folder, 'read-again'))
  const folder = backup.label
  const report = await readAgain(backup, taken, now())
  await recordVerification(platform.client, { folder, report, now_ms: now() })
  const lacking = new Set(taken.manifest.lacking_objects.map(lackingSentence))
  const findings = report.checks.flatMap((check) => check.findings).filter((finding) => !lacking.has(finding))
  if (findings.length > 0) return { name: taken.name, findings, removed_count: 0 }
  await recordBackup(platform.client, { folder, manifest: taken.manifest, now_ms: now() })
  const { backup_count } = await pruneBackups(repository, keep)
  return { name: taken.name, findings, removed_count: backup_count }
}

/** Reads all files of the backup, its new objects, and a share of the others, so that each object is read once a month. */
async function readAgain(backup: OpenedBackup, { copied_keys }: TakenBackup, now_ms: number): Promise<Report> {
  const share = Math.floor(now_ms / DAY_MS) % READ_AGAIN_DAYS
  const reads = (object_key: string): boolean =>
    copied_keys.has(object_key) || Number.parseInt(object_key.slice(0, 8), 16) % READ_AGAIN_DAYS === share
  const { checks } = await checkBackup({ ...backup, reads }, now_ms)
  return reportOf(`Backup ${backup.label}`, checks)
}
