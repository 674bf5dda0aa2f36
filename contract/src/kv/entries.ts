// Entries: JSON values by key that outlive lobbies, in each namespace on its own. Lobby, development and identity tokens stand
// for their namespace; all other callers name the namespace.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { described, Empty, object, Timestamp, Watch } from '../records.ts'

/** Bytes of UTF-8. */
export const KV_KEY_BYTES_MAX = 511
/** Bytes of the value's JSON text. */
export const KV_VALUE_BYTES_MAX = 262_144
/** Entries of a batch. */
export const KV_BATCH_MAX = 64
/** Entries of a batch that is watched. */
export const KV_BATCH_WATCH_MAX = 16

/** The schema is wider than the rule, so that a key that breaks the rule is refused with an error code of its own. */
const Key = Type.String({
  maxLength: 2 * KV_KEY_BYTES_MAX,
  description:
    'Key of the entry: 1 to 511 bytes. The part before the last slash is its directory. Write `\\/` for a slash that does not separate. Example: `players/ada`.',
})
const Keys = Type.Array(Key, {
  maxItems: 2 * KV_BATCH_MAX,
  description: 'Keys of the entries, at most 64. Repeat the parameter for each key.',
})
const Value = Type.Unknown({ description: 'Value of the entry: any JSON of at most 262,144 bytes.' })
const NamespaceId = Type.Optional(
  Type.String({
    format: 'uuid',
    description:
      'Id of the namespace. Required for users, administrators and cloud tokens; other tokens stand for their namespace.',
  }),
)
const WatchIndex = Type.Optional(
  Type.String({
    maxLength: 512,
    description: 'Long poll: `watch.index` of the previous response. The call waits up to 40 s for a change.',
  }),
)
const Deleted = Type.Optional(
  Type.Boolean({ description: 'Long poll only: true when the entry was deleted since the previous response.' }),
)
const PutEntry = object({ key: Key, value: Value })
export const KvEntry = object({ key: Key, value: Value, deleted: Deleted }, 'An entry.')

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
  summary: 'Gets an entry; its value is null when there is none. With a watch index, the call waits for a change.',
  query: object({ key: Key, watch_index: WatchIndex, namespace_id: NamespaceId }),
  response: object({
    value: described(Value, 'Value of the entry: any JSON. Null when there is no entry.'),
    deleted: Deleted,
    watch: Watch,
  }),
  errors: ['NAMESPACE_NOT_FOUND', 'KV_KEY_VALIDATION_ERROR'],
})

export const putKvEntry = operation({
  ...writing,
  id: 'kv.put',
  method: 'PUT',
  path: '/kv/entries',
  summary: 'Writes an entry and replaces the previous value.',
  body: object({ namespace_id: NamespaceId, key: Key, value: Value }),
  errors: ['NAMESPACE_NOT_FOUND', 'KV_KEY_VALIDATION_ERROR', 'KV_VALUE_TOO_LONG', 'QUOTA_REACHED'],
})

export const deleteKvEntry = operation({
  ...writing,
  id: 'kv.delete',
  method: 'DELETE',
  path: '/kv/entries',
  summary: 'Deletes an entry. Without such an entry, it changes nothing.',
  query: object({ key: Key, namespace_id: NamespaceId }),
  errors: ['NAMESPACE_NOT_FOUND', 'KV_KEY_VALIDATION_ERROR'],
})

const batch = { path: '/kv/entries/batch' } as const

export const getKvBatch = operation({
  ...reading,
  ...batch,
  id: 'kv.getBatch',
  summary:
    'Gets several entries; missing ones are left out. With a watch index (at most 16 keys), the call waits, and returns only what changed.',
  query: object({ keys: Type.Optional(Keys), watch_index: WatchIndex, namespace_id: NamespaceId }),
  response: object({
    entries: Type.Array(KvEntry, { description: 'The entries that exist. With a watch index: those that changed.' }),
    watch: Watch,
  }),
  errors: ['NAMESPACE_NOT_FOUND', 'KV_KEYS_MISSING', 'KV_BATCH_TOO_LARGE', 'KV_KEY_VALIDATION_ERROR'],
})

export const putKvBatch = operation({
  ...writing,
  ...batch,
  id: 'kv.putBatch',
  method: 'PUT',
  summary: 'Writes several entries: all of them, or none. The body has at most 4 MiB.',
  body: object({
    namespace_id: NamespaceId,
    entries: Type.Array(PutEntry, {
      maxItems: 2 * KV_BATCH_MAX,
      description: 'Entries to write, at most 64, each key once.',
    }),
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
  summary: 'Deletes several entries in one step. Missing ones are ignored.',
  query: object({ keys: Type.Optional(Keys), namespace_id: NamespaceId }),
  errors: ['NAMESPACE_NOT_FOUND', 'KV_KEYS_MISSING', 'KV_BATCH_TOO_LARGE', 'KV_KEY_VALIDATION_ERROR'],
})

export const listKvEntries = operation({
  ...reading,
  id: 'kv.list',
  path: '/kv/entries/list',
  summary: 'Lists the entries of a directory, sorted by key, in pages. Subdirectories are not included.',
  query: object({
    directory: Type.String({
      maxLength: 2 * KV_KEY_BYTES_MAX,
      description: 'Directory, with or without a trailing slash. Empty for keys without a slash. Example: `players`.',
    }),
    anchor: Type.Optional(
      Type.String({ maxLength: 2 * KV_KEY_BYTES_MAX, description: 'Next page: `anchor` of the previous page.' }),
    ),
    namespace_id: NamespaceId,
  }),
  response: object({
    entries: Type.Array(KvEntry, { description: 'A page of entries: at most 256, and at most 4 MiB.' }),
    anchor: Type.Optional(Type.String({ description: 'Send it to get the next page. Absent on the last page.' })),
  }),
  errors: ['NAMESPACE_NOT_FOUND'],
})

const Anchor = Type.Optional(
  Type.String({ maxLength: 2 * KV_KEY_BYTES_MAX, description: 'Next page: `anchor` of the previous page.' }),
)
const NextAnchor = Type.Optional(Type.String({ description: 'Send it to get the next page. Absent on the last page.' }))
const Prefix = (of: string) =>
  Type.Optional(
    Type.String({
      maxLength: 2 * KV_KEY_BYTES_MAX,
      description: `Beginning of ${of}. Default: all. Example: \`players\`.`,
    }),
  )
const browsing = { ...reading, auth: ['cloud', 'user', 'admin'] } as const
const BrowsedNamespaceId = Type.String({ format: 'uuid', description: 'Id of the namespace.' })

export const listKvDirectories = operation({
  ...browsing,
  id: 'kv.listDirectories',
  path: '/kv/entries/directories',
  summary: 'Lists the directories that have entries, sorted, in pages. For people who look through the entries.',
  query: object({ prefix: Prefix('the directories'), anchor: Anchor, namespace_id: BrowsedNamespaceId }),
  response: object({
    directories: Type.Array(Type.String(), {
      description: 'A page of at most 256 directories, without a slash at their ends. Empty: keys without a slash.',
    }),
    anchor: NextAnchor,
  }),
  errors: ['NAMESPACE_NOT_FOUND'],
})

export const listKvKeys = operation({
  ...browsing,
  id: 'kv.listKeys',
  path: '/kv/entries/keys',
  summary: 'Lists keys with a beginning, sorted, in pages, without their values. Subdirectories are included.',
  query: object({ prefix: Prefix('the keys'), anchor: Anchor, namespace_id: BrowsedNamespaceId }),
  response: object({
    keys: Type.Array(
      object(
        {
          key: Type.String({ description: 'Key of the entry. Example: `players/ada`.' }),
          value_bytes: Type.Integer({ minimum: 0, description: "Bytes of the value's JSON text." }),
          update_ts: Timestamp('When the entry was last written.'),
        },
        'An entry without its value.',
      ),
      { description: 'A page of at most 256 keys.' },
    ),
    anchor: NextAnchor,
  }),
  errors: ['NAMESPACE_NOT_FOUND'],
})
