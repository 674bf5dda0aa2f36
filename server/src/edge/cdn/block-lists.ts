// The block hashes of files that are sent block by block: the most recently used lists, up to BLOCK_LISTS_BYTES_MAX. Lists are
// recorded when an upload is completed. For an older upload without lists, the edge computes the list from the whole file
// after verifying its hash; the api's scrub records it later.
import { ApiError } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { Semaphore } from '../../flow/semaphore.ts'
import { digestSound, type Recorded } from '../../objects/damage.ts'
import { isListOf } from '../../objects/digest.ts'
import { BLOCK_LISTS_BYTES_MAX, BLOCK_LISTS_MADE_AT_ONCE_MAX, BLOCK_LISTS_WAITING_MAX } from '../limits.ts'
import type { Lookups } from '../routes/lookups.ts'

export type BlockLists = {
  /** Returns the hashes of the file's blocks. Throws ObjectDamaged, API_NOT_AVAILABLE, and the refusals of lookups.ts. */
  of: (file: Recorded) => Buffer | Promise<Buffer>
  /** Called after damage: the list itself may be wrong, and is read again. */
  forget: (object_key: string) => void
}

export function createBlockLists(ctx: Context, lookups: Lookups): BlockLists {
  /** In order of last use. */
  const lists = new Map<string, Buffer>()
  const loading = new Map<string, Promise<Buffer>>()
  const semaphore = new Semaphore({ at_once_max: BLOCK_LISTS_MADE_AT_ONCE_MAX, waiting_max: BLOCK_LISTS_WAITING_MAX })
  let bytes = 0

  async function load(file: Recorded): Promise<Buffer> {
    const recorded = await lookups.run(null, () => readList(ctx, file.object_key))
    const is_whole = recorded !== null && isListOf(recorded, file.content_length)
    const list = is_whole ? recorded : await compute(file)
    lists.set(file.object_key, list)
    bytes += list.length
    for (const oldest of lists.keys()) {
      if (bytes <= BLOCK_LISTS_BYTES_MAX) break
      forget(oldest)
    }
    return list
  }

  async function compute(file: Recorded): Promise<Buffer> {
    if ((await semaphore.acquire()) !== 'acquired') throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
    try {
      const { block_hashes } = await digestSound(ctx.objects, file)
      if (block_hashes === null) throw new Error('A file of one block is not sent in parts.')
      return block_hashes
    } finally {
      semaphore.release()
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
      const before = loading.get(object_key)
      if (before !== undefined) return before
      const list = load(file).finally(() => loading.delete(object_key))
      loading.set(object_key, list)
      return list
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
