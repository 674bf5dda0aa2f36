// The hashes of the blocks of files that are sent in parts: those used last, up to BLOCK_LISTS_BYTES_MAX. They are recorded
// when an upload is completed. For a file that was uploaded before they were recorded, the edge makes the list from the
// whole file, once its bytes have the recorded hash; the api's scrub records it for the next time.
import { ApiError } from '@muster/contract'
import type { Context } from '../../context.ts'
import { digestSound, type Recorded } from '../../objects/damage.ts'
import { isListOf } from '../../objects/digest.ts'
import { BLOCK_LISTS_BYTES_MAX, BLOCK_LISTS_MADE_AT_ONCE_MAX, BLOCK_LISTS_WAITING_MAX } from '../limits.ts'
import type { Lookups } from '../lookups.ts'

export type BlockLists = {
  /** Throws ObjectDamaged, API_NOT_AVAILABLE, and what lookups.ts throws. */
  of: (file: Recorded) => Buffer | Promise<Buffer>
  /** After damage: the list itself may be at fault, and is recorded anew then. */
  forget: (object_key: string) => void
}

export function createBlockLists(ctx: Context, lookups: Lookups): BlockLists {
  /** In the order of their last use. */
  const lists = new Map<string, Buffer>()
  const asked = new Map<string, Promise<Buffer>>()
  const waiting: (() => void)[] = []
  let bytes = 0
  let making = 0

  async function ask(file: Recorded): Promise<Buffer> {
    const recorded = await lookups.run(null, () => readList(ctx, file.object_key))
    const is_whole = recorded !== null && isListOf(recorded, file.content_length)
    const list = is_whole ? recorded : await make(file)
    lists.set(file.object_key, list)
    bytes += list.length
    for (const oldest of lists.keys()) {
      if (bytes <= BLOCK_LISTS_BYTES_MAX) break
      forget(oldest)
    }
    return list
  }

  async function make(file: Recorded): Promise<Buffer> {
    if (making >= BLOCK_LISTS_MADE_AT_ONCE_MAX) {
      if (waiting.length >= BLOCK_LISTS_WAITING_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else making++
    try {
      const { block_hashes } = await digestSound(ctx.objects, file)
      if (block_hashes === null) throw new Error('A file of one block is not sent in parts.')
      return block_hashes
    } finally {
      // The next one takes over the place.
      const next = waiting.shift()
      if (next === undefined) making--
      else next()
    }
  }

  function forget(object_key: string): void {
    bytes -= lists.get(object_key)?.length ?? 0
    lists.delete(object_key)
  }

  return {
    forget,
    of(file) {
      const { object_key } = file
      const known = lists.get(object_key)
      if (known !== undefined) {
        lists.delete(object_key)
        lists.set(object_key, known)
        return known
      }
      const before = asked.get(object_key)
      if (before !== undefined) return before
      const asking = ask(file).finally(() => asked.delete(object_key))
      asked.set(object_key, asking)
      return asking
    },
  }
}

async function readList(ctx: Context, object_key: string): Promise<Buffer | null> {
  const row = await ctx.db
    .selectFrom('upload_files')
    .select('block_hashes')
    .where('object_key', '=', object_key)
    .executeTakeFirst()
  return row?.block_hashes ?? null
}
