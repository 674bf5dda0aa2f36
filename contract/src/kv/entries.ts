// Entries: what a game keeps beyond its lobbies, JSON by key, each namespace for itself. Lobbies, development and players'
// tokens stand for their namespace; everybody else names it.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Empty, object } from '../records.ts'

/** Bytes of UTF-8. */
export const KV_KEY_BYTES_MAX = 511
/** Bytes of the value's JSON text. */
export const KV_VALUE_BYTES_MAX = 262_144
export const KV_BATCH_MAX = 64
export const KV_BATCH_WATCH_MAX = 16

/** The schema is wider than the rule, so that what breaks the rule is told by a code of its own. */
const Key = Type.String({
  maxLength: 2 * KV_KEY_BYTES_MAX,
  description: 'At most 511 bytes. What stands before its last slash is its directory; `\\/` is a slash that is none.',
})
const Keys = Type.Array(Key, { maxItems: 2 * KV_BATCH_MAX, description: 'Repeated in the query, at most 64.' })
const Value = Type.Unknown({ description: 'Any JSON, of at most 262,144 bytes.' })
const NamespaceId = Type.Optional(
  Type.String({ format: 'uuid', description: 'For callers whose token does not stand for a namespace.' }),
)
const WatchIndex = Type.Optional(
  Type.String({ maxLength: 512, description: '`watch.index` of the last answer: wait until something has changed.' }),
)
const Watch = object({ index: Type.String() })
const Deleted = Type.Optional(
  Type.Boolean({ description: 'Only to who watches: it was there when he looked last, and is not any more.' }),
)
const PutEntry = object({ key: Key, value: Value })
export const KvEntry = object({ key: Key, value: Value, deleted: Deleted })

const reading = {
  service: 'api',
  auth: ['development', 'lobby', 'identity', 'cloud', 'user', 'admin'],
  role: 'viewer',
  rate_limit: 'kv',
  method: 'GET',
} as const
const writing = {
  service: 'api',
  auth: ['development', 'lobby', 'cloud', 'user', 'admin'],
  role: 'developer',
  rate_limit: 'kv',
  response: Empty,
} as const

export const getKvEntry = operation({
  ...reading,
  id: 'kv.get',
  path: '/kv/entries',
  summary: 'Gets an entry; null when there is none. With the last watch index, it waits a while for another answer.',
  query: object({ key: Key, watch_index: WatchIndex, namespace_id: NamespaceId }),
  response: object({ value: Value, deleted: Deleted, watch: Watch }),
  errors: ['NAMESPACE_NOT_FOUND', 'KV_KEY_VALIDATION_ERROR'],
})

export const putKvEntry = operation({
  ...writing,
  id: 'kv.put',
  method: 'PUT',
  path: '/kv/entries',
  summary: 'Writes an entry, in the place of what was there.',
  body: object({ namespace_id: NamespaceId, key: Key, value: Value }),
  errors: ['NAMESPACE_NOT_FOUND', 'KV_KEY_VALIDATION_ERROR', 'KV_VALUE_TOO_LONG', 'QUOTA_REACHED'],
})

export const deleteKvEntry = operation({
  ...writing,
  id: 'kv.delete',
  method: 'DELETE',
  path: '/kv/entries',
  summary: 'Deletes an entry, if there is one.',
  query: object({ key: Key, namespace_id: NamespaceId }),
  errors: ['NAMESPACE_NOT_FOUND', 'KV_KEY_VALIDATION_ERROR'],
})

const batch = { path: '/kv/entries/batch' } as const

export const getKvBatch = operation({
  ...reading,
  ...batch,
  id: 'kv.getBatch',
  summary:
    'Gets those of the entries that are there. With the last watch index (at most 16 keys), it waits a while for a change, and answers what changed.',
  query: object({ keys: Type.Optional(Keys), watch_index: WatchIndex, namespace_id: NamespaceId }),
  response: object({ entries: Type.Array(KvEntry), watch: Watch }),
  errors: ['NAMESPACE_NOT_FOUND', 'KV_KEYS_MISSING', 'KV_BATCH_TOO_LARGE', 'KV_KEY_VALIDATION_ERROR'],
})

export const putKvBatch = operation({
  ...writing,
  ...batch,
  id: 'kv.putBatch',
  method: 'PUT',
  summary: 'Writes all of the entries, or none. A body has at most 4 MiB.',
  body: object({
    namespace_id: NamespaceId,
    entries: Type.Array(PutEntry, { maxItems: 2 * KV_BATCH_MAX, description: 'At most 64, each key once.' }),
  }),
  errors: [
    'NAMESPACE_NOT_FOUND',
    'KV_ENTRIES_MISSING',
    'KV_BATCH_TOO_LARGE',
    'KV_KEY_VALIDATION_ERROR',
    'KV_VALUE_TOO_LONG',
    'QUOTA_REACHED',
  ],
})

export const deleteKvBatch = operation({
  ...writing,
  ...batch,
  id: 'kv.deleteBatch',
  method: 'DELETE',
  summary: 'Deletes those of the entries that are there, all at once.',
  query: object({ keys: Type.Optional(Keys), namespace_id: NamespaceId }),
  errors: ['NAMESPACE_NOT_FOUND', 'KV_KEYS_MISSING', 'KV_BATCH_TOO_LARGE', 'KV_KEY_VALIDATION_ERROR'],
})

export const listKvEntries = operation({
  ...reading,
  id: 'kv.list',
  path: '/kv/entries/list',
  summary: 'Lists the entries of a directory, by key, a page at a time; not those of the directories in it.',
  query: object({
    directory: Type.String({
      maxLength: 2 * KV_KEY_BYTES_MAX,
      description: 'With or without the slash at its end; empty: the keys that have no slash.',
    }),
    anchor: Type.Optional(
      Type.String({ maxLength: 2 * KV_KEY_BYTES_MAX, description: 'What the last page answered.' }),
    ),
    namespace_id: NamespaceId,
  }),
  response: object({
    entries: Type.Array(KvEntry),
    anchor: Type.Optional(Type.String({ description: 'There are more: what the next page is asked for with.' })),
  }),
  errors: ['NAMESPACE_NOT_FOUND'],
})
