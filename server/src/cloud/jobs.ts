// What is done later and again: graphile-worker, whose queue is a schema of its own in the same database. A job is added
// in the transaction that makes it needed, so there is none without its reason and no reason without its job.
import { setTimeout as delay } from 'node:timers/promises'
import { type Runner, run, runMigrations, Logger as WorkerLogger } from 'graphile-worker'
import { type Kysely, sql } from 'kysely'
import type { Context } from '../context.ts'
import { failureOf, JobRecorder } from '../database/job-runs.ts'
import type { Schema } from '../database/schema.ts'

/** Jobs that one api runs at once. */
const JOBS_AT_ONCE_MAX = 2
/** Attempts of a job that fails through a fault of the platform. The pause between attempts grows. */
const ATTEMPTS_MAX = 20
const RESTART_MS = 2_000
/** How late a planned job may begin. The worker is notified of the others. */
const POLL_MS = 10_000
/**
 * Ends of jobs are written in batches, without a delay. graphile-worker 0.17 does not wait for the write of a single end:
 * its failure is an unhandled rejection, which ends the process. The failure of a batch ends the worker, which is kept.
 */
const BATCHED = { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } }

export type Jobs = { stop: () => Promise<void> }
type Tasks = {
  check_domain: (ctx: Context, domain_id: string) => Promise<void>
  /** `signal`: the worker ends. */
  order_certificates: (ctx: Context, signal: AbortSignal) => Promise<void>
  back_up: (ctx: Context, signal: AbortSignal) => Promise<void>
}

/**
 * Makes the queue's tables and works until `stop`, which waits for what is under way. While the database is away the
 * worker gives up and is started again: the api lives without it.
 */
export async function startJobs(ctx: Context, tasks: Tasks): Promise<Jobs> {
  const closing = new AbortController()
  const { signal } = closing
  let worker: Runner | null = await begin(ctx, tasks, signal)

  const keep = async (): Promise<void> => {
    while (!signal.aborted) {
      await worker?.promise.catch((error: unknown) => ctx.log.warn({ err: error }, 'the worker of jobs ended'))
      worker = null
      // Cut short by the end.
      await delay(RESTART_MS, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      const next = await begin(ctx, tasks, signal)
      if (signal.aborted) await next?.stop()
      else worker = next
    }
  }
  const kept = keep()
  return {
    stop: async () => {
      closing.abort()
      await worker
        ?.stop()
        .catch((error: unknown) => ctx.log.info({ err: error }, 'the worker of jobs had ended already'))
      await kept
    },
  }
}

/** Null when it cannot begin now. */
async function begin(ctx: Context, tasks: Tasks, signal: AbortSignal): Promise<Runner | null> {
  const logger = new WorkerLogger(() => (level, message) => {
    if (level === 'error' || level === 'warning') ctx.log.warn({ worker: message }, 'a job, or the worker, has failed')
  })
  const options = { pgPool: ctx.pool, logger, noHandleSignals: true }
  const recorder = new JobRecorder(ctx, 'api')
  const recorded = async (job: string, work: () => Promise<void>): Promise<void> => {
    const since_ms = ctx.elapsed()
    const end = (failure: string | null) => recorder.record([{ job, duration_ms: ctx.elapsed() - since_ms, failure }])
    try {
      await work()
    } catch (error) {
      await end(failureOf(error))
      throw error
    }
    await end(null)
  }
  try {
    await runMigrations(options)
    await freeJobs(ctx)
    return await run({
      ...options,
      preset: BATCHED,
      concurrency: JOBS_AT_ONCE_MAX,
      pollInterval: POLL_MS,
      taskList: {
        check_domain: (payload) =>
          recorded('check_domain', () => tasks.check_domain(ctx, (payload as { domain_id: string }).domain_id)),
        order_certificates: () => recorded('order_certificates', () => tasks.order_certificates(ctx, signal)),
        back_up: () => recorded('back_up', () => tasks.back_up(ctx, signal)),
      },
    })
  } catch (error) {
    ctx.log.warn({ err: error }, 'the worker of jobs cannot begin; it is tried again')
    return null
  }
}

/**
 * A worker that was killed holds its jobs for hours. Whatever is held when one begins is free again: a job that really
 * runs in another process then runs twice, which none of ours minds.
 */
async function freeJobs(ctx: Context): Promise<void> {
  await sql`
    select graphile_worker.force_unlock_workers(
      array(select distinct locked_by from graphile_worker.jobs where locked_by is not null)
    )`.execute(ctx.db)
}

/** `run_ms`: null for now. It replaces a planned check of the same claim. */
export async function addDomainCheck(db: Kysely<Schema>, domain_id: string, run_ms: number | null): Promise<void> {
  const run_at = run_ms === null ? null : new Date(run_ms)
  await sql`
    select graphile_worker.add_job(
      'check_domain', json_build_object('domain_id', ${domain_id}::text), run_at := ${run_at}::timestamptz,
      job_key := ${`domain:${domain_id}`}, max_attempts := ${ATTEMPTS_MAX}
    )`.execute(db)
}

/**
 * At most one run is planned, and runs never overlap. A `request` moves the planned run forward. A run that `plan`s the next
 * one does not move it: a request may have arrived since the run read its hosts.
 */
export async function addCertificateRun(db: Kysely<Schema>, run_ms: number, by: 'request' | 'plan'): Promise<void> {
  await sql`
    select graphile_worker.add_job(
      'order_certificates', '{}'::json, queue_name := 'certificates', run_at := ${new Date(run_ms)}::timestamptz,
      job_key := 'certificates', max_attempts := ${ATTEMPTS_MAX},
      job_key_mode := ${by === 'request' ? 'replace' : 'preserve_run_at'}
    )`.execute(db)
}

/** At most one run is planned, and this one replaces it. Runs never overlap. A run that is under way is not tried again. */
export async function addBackupRun(db: Kysely<Schema>, run_ms: number): Promise<void> {
  await sql`
    select graphile_worker.add_job(
      'back_up', '{}'::json, queue_name := 'backups', run_at := ${new Date(run_ms)}::timestamptz,
      job_key := 'backup', max_attempts := ${ATTEMPTS_MAX}
    )`.execute(db)
}

/** Null: none is planned. */
export async function plannedBackup(db: Kysely<Schema>): Promise<Date | null> {
  const { rows } = await sql<{ run_at: Date }>`
    select run_at from graphile_worker.jobs where key = 'backup'`.execute(db)
  return rows[0]?.run_at ?? null
}
