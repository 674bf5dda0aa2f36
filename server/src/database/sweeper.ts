// A sweeper removes, now and then, what nobody needs any more: step by step, and never two sweeps at once. A step that
// fails is logged and made again by the next sweep, and does not keep the others from their work.
import type { Logger } from 'pino'

export type SweepStep = {
  /** Of what: a word for the log. */
  what: string
  /** Removes some, and returns how many. */
  remove: () => Promise<number>
}

export type Sweeper = { stop: () => Promise<void> }

export function startSweeper(log: Logger, every_ms: number, steps: readonly SweepStep[]): Sweeper {
  let sweeping: Promise<void> | null = null
  const timer = setInterval(() => {
    sweeping ??= sweepOnce(log, steps).finally(() => {
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

export async function sweepOnce(log: Logger, steps: readonly SweepStep[]): Promise<void> {
  const removed: Record<string, number> = {}
  for (const { what, remove } of steps) {
    try {
      const count = await remove()
      if (count > 0) removed[what] = count
    } catch (error) {
      log.error({ err: error, what }, 'what is no longer needed could not be removed; it is tried again')
    }
  }
  if (Object.keys(removed).length > 0) log.info(removed, 'removed what is no longer needed')
}
