// A sweeper removes, now and then, what nobody needs any more: step by step, and never two sweeps at once. A step that
// fails is logged and made again by the next sweep, and does not keep the others from their work.
import type { Logger } from 'pino'
import { failureOf, type JobContext, JobRecorder, type JobRun } from './job-runs.ts'

export type SweepStep = {
  /** What the step removes: a word for the log. */
  what: string
  /** Makes the step: removes some rows or files, and returns how many. */
  remove: () => Promise<number>
}

export type Sweeper = { stop: () => Promise<void> }

/** `role`: the role whose jobs the steps are. */
export function startSweeper(ctx: JobContext, role: string, every_ms: number, steps: readonly SweepStep[]): Sweeper {
  const recorder = new JobRecorder(ctx, role)
  let sweeping: Promise<void> | null = null
  const timer = setInterval(() => {
    sweeping ??= sweepOnce(ctx.log, steps)
      .then((runs) => recorder.record(runs))
      .finally(() => {
        sweeping = null
      })
  }, every_ms)
  return {
    async stop() {
      clearInterval(timer)
      await sweeping
    },
  }
}

/** Returns a run for each step. */
export async function sweepOnce(log: Logger, steps: readonly SweepStep[]): Promise<JobRun[]> {
  const removed: Record<string, number> = {}
  const runs: JobRun[] = []
  for (const { what, remove } of steps) {
    const since = performance.now()
    let failure: string | null = null
    try {
      const count = await remove()
      if (count > 0) removed[what] = count
    } catch (error) {
      failure = failureOf(error)
      log.error({ err: error, what }, 'what is no longer needed could not be removed; it is tried again')
    }
    runs.push({ job: what, duration_ms: Math.round(performance.now() - since), failure })
  }
  if (Object.keys(removed).length > 0) log.info(removed, 'removed what is no longer needed')
  return runs
}
