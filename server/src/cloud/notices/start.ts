// Notices in the api role: the code that collects and sends is loaded with the first target.
import type { Context } from '../../context.ts'
import { startNeededWork } from '../../database/needed-work.ts'
import { CHANNELS } from '../../wire/channels.ts'

const RETRY_MS = 5_000

export type Notices = { close: () => Promise<void> }

export function startNotices(ctx: Context): Notices {
  return startNeededWork(ctx, {
    channel: CHANNELS.notices,
    isNeeded: async () => (await ctx.db.selectFrom('notice_targets').select('target_id').limit(1).execute()).length > 0,
    start: async () => (await import('./work.ts')).startNoticeWork(ctx),
    onRead: (work) => work.wake(),
    failure: 'the targets of notices cannot be read; trying again',
    retry_ms: RETRY_MS,
  })
}
