// Status pages in the api role: the code that measures is loaded with the first enabled page.
import type { Context } from '../../context.ts'
import { startNeededWork } from '../../database/needed-work.ts'
import { CHANNELS } from '../../wire/channels.ts'

const RETRY_MS = 5_000

export function startStatusWork(ctx: Context): { close: () => Promise<void> } {
  const enabled = ctx.db.selectFrom('status_pages').select('game_id').where('is_enabled', '=', true).limit(1)
  return startNeededWork(ctx, {
    channel: CHANNELS.status_pages,
    isNeeded: async () => (await enabled.execute()).length > 0,
    start: async () => (await import('./work.ts')).startWork(ctx),
    failure: 'the status pages cannot be read; trying again',
    retry_ms: RETRY_MS,
  })
}
