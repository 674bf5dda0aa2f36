// Schedules in the matchmaker. Each process does what is due in the namespaces of its shards. Without a schedule, it only
// listens to a channel: no timer runs, and the code that knows cron expressions is not loaded.
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import { createPoller } from '../../database/poller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { ScheduleParts } from './parts.ts'
import type { ScheduleWork } from './work.ts'

const RETRY_MS = 2_000
/** How long a matchmaker that starts waits for the first read. */
const START_MS_MAX = 2_000

/** Resolves when the schedules have been read once, or could not be. */
export async function startSchedules(ctx: Context, parts: ScheduleParts): Promise<{ close: () => Promise<void> }> {
  let work: ScheduleWork | null = null
  const first = Promise.withResolvers<void>()
  const poller = createPoller(ctx, {
    async run() {
      const is_needed = (await ctx.db.selectFrom('schedules').select('schedule_id').limit(1).execute()).length > 0
      if (is_needed) {
        // Loaded when it is needed.
        work ??= (await import('./work.ts')).startScheduleWork(ctx, parts)
        await work.run()
      } else {
        await work?.close()
        work = null
      }
      first.resolve()
    },
    failure: 'the schedules cannot be read; trying again',
    retry_ms: RETRY_MS,
  })
  // The first wake comes when the channel is listened to.
  const unsubscribe = ctx.listener.on(CHANNELS.schedules, poller.wake)
  await Promise.race([first.promise, delay(START_MS_MAX, undefined, { ref: false })])
  return {
    async close() {
      unsubscribe()
      await poller.close()
      await work?.close()
    },
  }
}
