// Status pages in the api role. Without an enabled page it only listens to a channel: no timer runs, and the code that measures
// is not loaded.
import type { Context } from '../../context.ts'
import { createPoller } from '../../database/poller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { StatusWork } from './work.ts'

const RETRY_MS = 5_000

export function startStatusWork(ctx: Context): { close: () => Promise<void> } {
  let work: StatusWork | null = null
  const poller = createPoller(ctx, {
    async run() {
      const enabled = ctx.db.selectFrom('status_pages').select('game_id').where('is_enabled', '=', true).limit(1)
      const has_page = (await enabled.execute()).length > 0
      if (has_page) work ??= (await import('./work.ts')).startWork(ctx)
      else {
        await work?.close()
        work = null
      }
    },
    failure: 'the status pages cannot be read; trying again',
    retry_ms: RETRY_MS,
  })
  // The first wake comes when the channel is listened to.
  const unsubscribe = ctx.listener.on(CHANNELS.status_pages, poller.wake)
  return {
    async close() {
      unsubscribe()
      await poller.close()
      await work?.close()
    },
  }
}
