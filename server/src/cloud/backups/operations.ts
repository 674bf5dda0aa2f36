// Backups as an operator sees and starts them over the API.
import { isAbsolute, relative, resolve } from 'node:path'
import {
  ApiError,
  type BodyOf,
  type getAdminBackups,
  type listStoredBackups,
  type ResponseOf,
  type restoreAdminBackup,
  type restoreGame,
  validationError,
} from '@musterhost/contract'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import { lastBackup } from '../../backup/last-backup.ts'
import type { BackupTask } from '../../backup/program.ts'
import type { Config } from '../../config/config.ts'
import type { Context } from '../../context.ts'
import { newId } from '../../ids.ts'
import { keepRuleText } from '../../text/keep-rule.ts'
import { addBackupRun, plannedBackup } from '../jobs.ts'
import { timestamp } from '../times.ts'
import { BackupFailure, runBackupTask } from './backup-process.ts'

/** Backups, verifications and restores of one response. */
const RECORDS_MAX = 20
/** Restores whose records are kept. */
const RESTORES_KEPT_MAX = 100
const STORED_MAX = 1_000
const STOPPED = 'The api stopped meanwhile. Begin again.'
/** For the list of a repository. */
const LIST_MS_MAX = 60_000

type Recorded = ResponseOf<typeof getAdminBackups>
type RestoreRow = { restore_id: string; backup: string; folder: string | null; game: string | null }

export async function findBackups(ctx: Context): Promise<Recorded> {
  const { db } = ctx
  const backups = await db.selectFrom('backups').selectAll().orderBy('end_ts', 'desc').limit(RECORDS_MAX).execute()
  const verifications = await db
    .selectFrom('verifications')
    .select(['folder', 'end_ts', 'is_sound', 'finding_count'])
    .orderBy('end_ts', 'desc')
    .limit(RECORDS_MAX)
    .execute()
  const restores = await db.selectFrom('restores').selectAll().orderBy('begin_ts', 'desc').limit(RECORDS_MAX).execute()
  const { backups: schedule } = ctx.config
  return {
    ...(schedule === null ? {} : { schedule: await showSchedule(ctx, schedule) }),
    backups: backups.map(({ create_ts, end_ts, ...backup }) => ({
      ...backup,
      create_ts: timestamp(create_ts),
      end_ts: timestamp(end_ts),
    })),
    verifications: verifications.map(({ folder, end_ts, ...verification }) => ({
      subject: folder === null ? 'platform' : 'backup',
      ...(folder === null ? {} : { folder }),
      end_ts: timestamp(end_ts),
      ...verification,
    })),
    restores: restores.map(({ begin_ts, end_ts, failure, folder, game, ...restore }) => ({
      ...restore,
      ...(folder === null ? {} : { folder }),
      ...(game === null ? {} : { game }),
      begin_ts: timestamp(begin_ts),
      ...(end_ts === null ? {} : { end_ts: timestamp(end_ts) }),
      ...(failure === null ? {} : { failure }),
    })),
  }
}

async function showSchedule(
  ctx: Context,
  { to, schedule, keep }: NonNullable<Config['backups']>,
): Promise<NonNullable<Recorded['schedule']>> {
  const last_ms = await lastBackup(ctx.pool, to)
  const next = await plannedBackup(ctx.db)
  const run = await ctx.db.selectFrom('job_runs').select('failure').where('job', '=', 'back_up').executeTakeFirst()
  return {
    ...{ to, schedule, keep: keepRuleText(keep), is_encrypted: ctx.config.backup_key !== null },
    ...(last_ms === null ? {} : { last_ts: timestamp(new Date(last_ms)) }),
    ...(next === null ? {} : { next_ts: timestamp(next) }),
    ...(run?.failure == null ? {} : { failure: run.failure }),
  }
}

/** Throws BACKUP_UNAVAILABLE without a target. */
export async function beginBackup(ctx: ChangeContext): Promise<void> {
  const { to } = requireTarget(ctx)
  await changes(ctx, {}, async (trx) => {
    await addBackupRun(trx, ctx.now())
    return { before: {}, after: { to } }
  })
}

/** Throws BACKUP_UNAVAILABLE. */
export async function listStored(ctx: Context): Promise<ResponseOf<typeof listStoredBackups>> {
  requireTarget(ctx)
  const reply = await runBackupTask(ctx, { kind: 'list' }, AbortSignal.timeout(LIST_MS_MAX)).catch(unavailable)
  const names = reply.kind === 'listed' ? reply.names.toReversed().slice(0, STORED_MAX) : []
  return { backups: names.map((name) => ({ name, create_ts: timeOf(name) })) }
}

type RestoreTask = Extract<BackupTask, { kind: 'restore' | 'restore_game' }>

/** Restores of this process. */
export class Restores {
  readonly #ctx: Context
  readonly #closing = new AbortController()
  #running: Promise<void> | null = null

  constructor(ctx: Context) {
    this.#ctx = ctx
  }

  /** Restores the whole platform. Throws BACKUP_UNAVAILABLE and VALIDATION_ERROR. The restore goes on after the call. */
  beginPlatform(
    ctx: ChangeContext,
    { name, folder }: BodyOf<typeof restoreAdminBackup>,
  ): Promise<{ restore_id: string }> {
    requireTarget(ctx)
    requireFolder(ctx, folder)
    return this.#begin(ctx, { kind: 'restore', name, folder: resolve(folder) })
  }

  /** Restores one game into this platform. Throws BACKUP_UNAVAILABLE. The restore goes on after the call. */
  beginGame(
    ctx: ChangeContext,
    { name, game, group_id, name_id }: BodyOf<typeof restoreGame>,
  ): Promise<{ restore_id: string }> {
    requireTarget(ctx)
    return this.#begin(ctx, {
      ...{ kind: 'restore_game', name },
      choice: { game, group_id: group_id ?? null, name_id: name_id ?? null },
    })
  }

  async #begin(ctx: ChangeContext, task: RestoreTask): Promise<{ restore_id: string }> {
    if (this.#running !== null) {
      const message = 'A restore is under way. Wait for its end.'
      throw new ApiError('BACKUP_UNAVAILABLE', {}, { message })
    }
    const row: RestoreRow = {
      ...{ restore_id: newId(ctx.now()), backup: task.name },
      folder: task.kind === 'restore' ? task.folder : null,
      game: task.kind === 'restore' ? null : task.choice.game,
    }
    const recorded = recordBegin(ctx, row)
    this.#running = recorded
      .then(() => this.#restore(row.restore_id, task))
      // The caller gets the failure of the record.
      .catch(() => undefined)
      .finally(() => {
        this.#running = null
      })
    await recorded
    return { restore_id: row.restore_id }
  }

  async #restore(restore_id: string, task: RestoreTask): Promise<void> {
    const ctx = this.#ctx
    const failure = await runBackupTask(ctx, task, this.#closing.signal).then(
      () => null,
      (error: Error) => (this.#closing.signal.aborted ? STOPPED : error.message),
    )
    await ctx.db
      .updateTable('restores')
      .set({ end_ts: new Date(ctx.now()), failure })
      .where('restore_id', '=', restore_id)
      .execute()
      .catch((error: unknown) => ctx.log.warn({ err: error, failure }, 'the end of a restore cannot be recorded'))
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#running
  }
}

async function recordBegin(ctx: ChangeContext, row: RestoreRow): Promise<void> {
  await changes(ctx, {}, async (trx) => {
    await trx
      .insertInto('restores')
      .values({ ...row, node_id: ctx.config.node_id, begin_ts: new Date(ctx.now()), end_ts: null, failure: null })
      .execute()
    const kept = trx.selectFrom('restores').select('restore_id').orderBy('begin_ts', 'desc').limit(RESTORES_KEPT_MAX)
    await trx.deleteFrom('restores').where('restore_id', 'not in', kept).execute()
    return { before: {}, after: row }
  })
}

/** Ends the records of restores that ended with the process before this one on the node. */
export async function endFormerRestores({ db, config, now }: Context): Promise<void> {
  await db
    .updateTable('restores')
    .set({ end_ts: new Date(now()), failure: STOPPED })
    .where('node_id', '=', config.node_id)
    .where('end_ts', 'is', null)
    .execute()
}

function requireTarget({ config }: Context): NonNullable<Config['backups']> {
  if (config.backups !== null) return config.backups
  const message = 'MUSTER_BACKUP_TO is not set. Set it to a folder or s3://BUCKET/PREFIX, and start the platform again.'
  throw new ApiError('BACKUP_UNAVAILABLE', {}, { message })
}

function requireFolder({ config: { data_dir } }: Context, folder: string): void {
  const path = ['folder']
  if (!isAbsolute(folder)) {
    throw validationError([{ path, reason: 'invalid', message: 'The folder must be an absolute path.' }])
  }
  const from_data = relative(data_dir, resolve(folder))
  if (!from_data.startsWith('..')) {
    const message = 'The folder must not be in the data folder of this platform.'
    throw validationError([{ path, reason: 'invalid', message }])
  }
}

function unavailable(error: unknown): never {
  if (!(error instanceof BackupFailure)) throw error
  throw new ApiError('BACKUP_UNAVAILABLE', {}, { message: error.message })
}

/** `2026-11-24T040000Z` as a timestamp. */
function timeOf(name: string): string {
  return timestamp(new Date(name.replace(/T(\d\d)(\d\d)(\d\d)Z$/, 'T$1:$2:$3Z')))
}
