import {
  deleteKvBatch,
  deleteKvEntry,
  getKvBatch,
  getKvEntry,
  listKvDirectories,
  listKvEntries,
  listKvKeys,
  putKvBatch,
  putKvEntry,
} from '@musterhost/contract'
import { requireGame } from '../../cloud/access.ts'
import type { Context } from '../../context.ts'
import { listDirectories, listKeys } from '../../kv/browse.ts'
import type { Kv } from '../../kv/entries.ts'
import { requireKvNamespace } from '../../kv/namespace.ts'
import type { Caller } from '../../tokens/caller.ts'
import { type Implementation, implement } from '../implement.ts'

export const kvEntries = (kv: Kv): Implementation[] => [
  implement(getKvEntry, async ({ ctx, caller, query, gone }) =>
    kv.get(await namespaceOf(ctx, caller, query), query, gone),
  ),
  implement(putKvEntry, async ({ ctx, caller, body }) => kv.put(await namespaceOf(ctx, caller, body), body)),
  implement(deleteKvEntry, async ({ ctx, caller, query }) =>
    kv.remove(await namespaceOf(ctx, caller, query), query.key),
  ),
  implement(getKvBatch, async ({ ctx, caller, query, gone }) =>
    kv.getBatch(await namespaceOf(ctx, caller, query), query, gone),
  ),
  implement(putKvBatch, async ({ ctx, caller, body }) => kv.putBatch(await namespaceOf(ctx, caller, body), body)),
  implement(deleteKvBatch, async ({ ctx, caller, query }) =>
    kv.removeBatch(await namespaceOf(ctx, caller, query), query),
  ),
  implement(listKvEntries, async ({ ctx, caller, query }) => kv.list(await namespaceOf(ctx, caller, query), query)),
  implement(listKvDirectories, async ({ ctx, caller, query }) =>
    listDirectories(ctx, await namespaceOf(ctx, caller, query), query),
  ),
  implement(listKvKeys, async ({ ctx, caller, query }) => listKeys(ctx, await namespaceOf(ctx, caller, query), query)),
]

function namespaceOf(ctx: Context, caller: Caller, { namespace_id }: { namespace_id?: string }): Promise<string> {
  return requireKvNamespace(ctx, caller, namespace_id, (game_id) =>
    requireGame(ctx, caller, game_id, 'NAMESPACE_NOT_FOUND'),
  )
}
