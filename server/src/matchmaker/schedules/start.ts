// Schedules in the matchmaker. Each process does what is due in the namespaces of its shards. The code that knows cron expressions
// is loaded with the first schedule.
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import { startNeededWork } from '../../database/needed-work.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { ScheduleParts } from './parts.ts'

const RETRY_MS = 2_000
/** How long a matchmaker that starts waits for the first read. */
const START_MS_MAX = 2_000

/** Resolves when the schedules have been read once, or could not be. */
export async function startSchedules(ctx: Context, parts: ScheduleParts): Promise<{ close: () => Promise<void> }> {
  const { first_read, close } = startNeededWork(ctx, {
    channel: CHANNELS.schedules,
    isNeeded: async () => (await ctx.db.selectFrom('schedules').select('schedule_id').limit(1).execute()).length > 0,
    start: async () => (await import('./work.ts')).startScheduleWork(ctx, parts),
    onRead: (work) => work.run(),
    failure: 'the schedules cannot be read; trying again',
    retry_ms: RETRY_MS,
  })
  await Promise.race([first_read, delay(START_MS_MAX, undefined, { ref: false })])
  return { close }
}
