// Notices in the api role. Without a target, it only listens to a channel: no timer runs, and the code that collects and sends
// is not loaded. A target that is made, changed or deleted is announced there.
import type { Context } from '../../context.ts'
import { createPoller } from '../../database/poller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { NoticeWork } from './work.ts'

const RETRY_MS = 5_000

export type Notices = { close: () => Promise<void> }

export function startNotices(ctx: Context): Notices {
  let work: NoticeWork | null = null
  const poller = createPoller(ctx, {
    async run() {
      const has_target = (await ctx.db.selectFrom('notice_targets').select('target_id').limit(1).execute()).length > 0
      if (!has_target) {
        await work?.close()
        work = null
        return
      }
      // Loaded when it is needed.
      work ??= (await import('./work.ts')).startNoticeWork(ctx)
      work.wake()
    },
    failure: 'the targets of notices cannot be read; trying again',
    retry_ms: RETRY_MS,
  })
  // The first wake comes when the channel is listened to.
  const unsubscribe = ctx.listener.on(CHANNELS.notices, poller.wake)
  return {
    async close() {
      unsubscribe()
      await poller.close()
      await work?.close()
    },
  }
}
