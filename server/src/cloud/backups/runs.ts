// When the platform backs itself up. One run is planned at a time, in the queue of jobs. It plans the next one when it ends: at
// the time of the schedule, or sooner after a failure.
import { lastBackup } from '../../backup/last-backup.ts'
import { nextBackup } from '../../backup/schedule.ts'
import type { Context } from '../../context.ts'
import { addBackupRun } from '../jobs.ts'
import { runBackupTask } from './backup-process.ts'

/** After a failed run. */
const RETRY_MS = 60 * 60_000
/** Findings that the failure of a run names. */
const FINDINGS_SHOWN_MAX = 3

/** Plans the run that is due: at once where the last backup is missing or late. Throws a StartError for a wrong schedule. */
export async function planBackups(ctx: Context): Promise<void> {
  const { backups } = ctx.config
  if (backups === null) return
  const last_ms = await lastBackup(ctx.pool, backups.to)
  const due_ms = nextBackup(backups, last_ms ?? ctx.now())
  await addBackupRun(ctx.db, last_ms === null ? ctx.now() : Math.max(due_ms, ctx.now()))
}

/** The work of the job. */
export async function runBackup(ctx: Context, signal: AbortSignal): Promise<void> {
  const { backups } = ctx.config
  // The setting was removed after the run was planned.
  if (backups === null) return
  let next_ms = Math.min(nextBackup(backups, ctx.now()), ctx.now() + RETRY_MS)
  try {
    const reply = await runBackupTask(ctx, { kind: 'back_up' }, signal)
    if (reply.kind !== 'backed_up') throw new Error('The process of the backup sent the reply of another task.')
    const { name, findings, removed_count } = reply.round
    if (findings.length > 0) {
      const shown = findings.slice(0, FINDINGS_SHOWN_MAX).join('; ')
      throw new Error(`The backup ${name} was read again, and is damaged: ${shown}.`)
    }
    ctx.log.info({ name, removed_count }, 'the platform was backed up')
    next_ms = nextBackup(backups, ctx.now())
  } finally {
    if (!signal.aborted) await addBackupRun(ctx.db, next_ms)
  }
}
