// The marks of damaged objects (database/damaged-objects.ts), as the edge last read them: a marked object is refused
// without a read. The edge does not depend on the marks for safety, because it proves every byte that it reads.
import type { Context } from '../../context.ts'
import { DAMAGE_CHANNEL } from '../../database/damaged-objects.ts'
import { watchChannel } from '../../database/poller.ts'
import { DAMAGED_EVERY_MS, DAMAGED_MAX } from '../limits.ts'

export type DamagedObjects = { has: (object_key: string) => boolean; close: () => Promise<void> }

export function watchDamaged(ctx: Context): DamagedObjects {
  let keys: ReadonlySet<string> = new Set()
  const watch = watchChannel(ctx, {
    channel: DAMAGE_CHANNEL,
    every_ms: DAMAGED_EVERY_MS,
    async look() {
      const rows = await ctx.db.selectFrom('damaged_objects').select('object_key').limit(DAMAGED_MAX).execute()
      keys = new Set(rows.map(({ object_key }) => object_key))
    },
    failure: 'the marks of damaged files could not be read; trying again',
  })
  return { has: (object_key) => keys.has(object_key), close: () => watch.close() }
}
