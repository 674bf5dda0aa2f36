// The last run of each job that a role does again and again, for the operator. A run is recorded at most once a minute, and at
// once when it begins or ceases to fail: a job that runs every few seconds must not write as often.
import type { Pool } from 'pg'
import type { Logger } from 'pino'

/** Characters of a failure. */
const FAILURE_LENGTH_MAX = 500
const RECORD_EVERY_MS = 60_000

export type JobRun = { job: string; duration_ms: number; failure: string | null }

/** What jobs need to be recorded. `elapsed`: the monotonic clock. */
export type JobContext = {
  pool: Pool
  log: Logger
  now: () => number
  elapsed: () => number
}

export class JobRecorder {
  readonly #ctx: JobContext
  readonly #role: string
  readonly #recorded = new Map<string, { at_ms: number; has_failed: boolean }>()

  constructor(ctx: JobContext, role: string) {
    this.#ctx = ctx
    this.#role = role
  }

  /** Never throws: the record is for people, and no job depends on it. */
  async record(runs: readonly JobRun[]): Promise<void> {
    const at_ms = this.#ctx.elapsed()
    const unrecorded = runs.filter(({ job, failure }) => {
      const last = this.#recorded.get(job)
      return last === undefined || last.has_failed !== (failure !== null) || at_ms - last.at_ms >= RECORD_EVERY_MS
    })
    if (unrecorded.length === 0) return
    for (const { job, failure } of unrecorded) this.#recorded.set(job, { at_ms, has_failed: failure !== null })
    const now = new Date(this.#ctx.now())
    try {
      await this.#ctx.pool.query(
        `insert into job_runs (role, job, end_ts, duration_ms, failure, success_ts)
          select $1, job, $2, duration_ms, failure, case when failure is null then $2::timestamptz end
          from unnest($3::text[], $4::integer[], $5::text[]) as run (job, duration_ms, failure)
          on conflict (role, job) do update set end_ts = excluded.end_ts, duration_ms = excluded.duration_ms,
            failure = excluded.failure, success_ts = coalesce(excluded.success_ts, job_runs.success_ts)`,
        [
          this.#role,
          now,
          unrecorded.map(({ job }) => job),
          unrecorded.map(({ duration_ms }) => duration_ms),
          unrecorded.map(({ failure }) => failure?.slice(0, FAILURE_LENGTH_MAX) ?? null),
        ],
      )
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'the last run of jobs could not be recorded')
    }
  }
}

/** The first line of an error's message, as it is recorded. */
export function failureOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0]!
}
