// The marks of damaged objects (database/damaged-objects.ts), as the edge last read them. A marked object is refused without
// being read. Safety does not depend on the marks, because the edge verifies every byte that it reads.
import type { Context } from '../../context.ts'
import { watchChannel } from '../../database/poller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { DAMAGED_EVERY_MS, DAMAGED_MAX } from '../limits.ts'

export type DamagedObjects = { has: (object_key: string) => boolean; close: () => Promise<void> }

export function watchDamaged(ctx: Context): DamagedObjects {
  let keys: ReadonlySet<string> = new Set()
  const watch = watchChannel(ctx, {
    channel: CHANNELS.damaged_objects,
    every_ms: DAMAGED_EVERY_MS,
    async run() {
      const rows = await ctx.db.selectFrom('damaged_objects').select('object_key').limit(DAMAGED_MAX).execute()
      keys = new Set(rows.map(({ object_key }) => object_key))
    },
    failure: 'the marks of damaged files cannot be read; retrying',
  })
  return { has: (object_key) => keys.has(object_key), close: () => watch.close() }
}
