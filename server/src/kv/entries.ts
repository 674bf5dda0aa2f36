// The operations on entries, behind the question whose they are (namespace.ts). Whoever watches is woken by the words of
// those who write.
import {
  ApiError,
  type BodyOf,
  type deleteKvBatch,
  type getKvBatch,
  type getKvEntry,
  KV_BATCH_MAX,
  KV_BATCH_WATCH_MAX,
  type listKvEntries,
  type Operation,
  type putKvBatch,
  type putKvEntry,
  type QueryOf,
  type ResponseOf,
  validationError,
} from '@muster/contract'
import type { Context } from '../context.ts'
import { createLongPoll } from '../database/long-poll.ts'
import { type Prepared, prepare } from '../json-text.ts'
import { requireBatch, requireKey, requireKeys } from './keys.ts'
import { type Found, indexOf, readDirectory, readEntries, readIndex, readRevisions } from './reads.ts'
import { createTurns } from './turns.ts'
import { deleteEntries, requireEntry, writeEntries } from './writes.ts'

const CHANNEL = 'kv'
/** How often a watcher looks by himself. */
const LOOK_MS = 10_000
/** All that http/watches.ts lets wait, and those that are just ending. */
const WATCHING_MAX = 10_000
const RETRY_AFTER_S = 5

type Answer<O extends Operation> = Promise<Prepared<ResponseOf<O>>>

export type Kv = {
  /** Watches until `gone` is aborted. */
  get: (namespace_id: string, query: QueryOf<typeof getKvEntry>, gone: AbortSignal) => Answer<typeof getKvEntry>
  getBatch: (namespace_id: string, query: QueryOf<typeof getKvBatch>, gone: AbortSignal) => Answer<typeof getKvBatch>
  list: (namespace_id: string, query: QueryOf<typeof listKvEntries>) => Answer<typeof listKvEntries>
  put: (namespace_id: string, body: BodyOf<typeof putKvEntry>) => Promise<void>
  putBatch: (namespace_id: string, body: BodyOf<typeof putKvBatch>) => Promise<void>
  remove: (namespace_id: string, key: string) => Promise<void>
  removeBatch: (namespace_id: string, query: QueryOf<typeof deleteKvBatch>) => Promise<void>
  /** Answers everybody who watches. */
  close: () => void
}

export function openKv(ctx: Context): Kv {
  const waiting = createLongPoll(ctx, { channel: CHANNEL, look_ms: LOOK_MS, waiting_max: WATCHING_MAX })
  const inTurn = createTurns()

  const topic = (namespace_id: string, key: string): string => `${namespace_id} ${key}`

  async function tell(namespace_id: string, keys: readonly string[]): Promise<void> {
    await Promise.all(keys.map((key) => ctx.listener.notify(CHANNEL, topic(namespace_id, key))))
  }

  async function write(namespace_id: string, entries: readonly { key: string; text: string }[]): Promise<void> {
    await inTurn(namespace_id, () => writeEntries(ctx, namespace_id, entries))
    await tell(
      namespace_id,
      entries.map(({ key }) => key),
    )
  }

  async function remove(namespace_id: string, keys: readonly string[]): Promise<void> {
    await inTurn(namespace_id, () => deleteEntries(ctx, namespace_id, keys))
    await tell(namespace_id, keys)
  }

  /** Returns when one of the keys is another than in `known`, or after a while. */
  async function untilChanged(
    namespace_id: string,
    keys: readonly string[],
    known: string,
    gone: AbortSignal,
  ): Promise<void> {
    const look = async (): Promise<true | null> =>
      indexOf(keys, await readRevisions(ctx, namespace_id, keys)) === known ? null : true
    const topics = keys.map((key) => topic(namespace_id, key))
    if ((await waiting.until(topics, look, () => gone.aborted, gone)) !== 'busy') return
    throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
  }

  /** What is there now, and what of it is not as in `watch_index`; without one all is news. */
  async function read(
    namespace_id: string,
    keys: readonly string[],
    watch_index: string | undefined,
    gone: AbortSignal,
  ): Promise<{ found: Found[]; news: Found[]; deleted: string[]; index: string }> {
    const known = watch_index === undefined ? null : readIndex(watch_index, keys)
    if (known !== null) await untilChanged(namespace_id, keys, indexOf(keys, known), gone)
    const found = await readEntries(ctx, namespace_id, keys)
    const revisions = new Map(found.map(({ key, revision }) => [key, revision]))
    return {
      found,
      news: found.filter(({ key, revision }) => known?.get(key) !== revision),
      deleted: keys.filter((key) => (known?.get(key) ?? 0) !== 0 && !revisions.has(key)),
      index: indexOf(keys, revisions),
    }
  }

  return {
    async get(namespace_id, { key, watch_index }, gone) {
      requireKey(key, ['query', 'key'])
      const { found, deleted, index } = await read(namespace_id, [key], watch_index, gone)
      const mark = deleted.length > 0 ? '"deleted":true,' : ''
      return prepare(`{"value":${found[0]?.value ?? 'null'},${mark}${watch(index)}}`)
    },
    async getBatch(namespace_id, { keys = [], watch_index }, gone) {
      const asked = requireKeys(keys, watch_index === undefined ? KV_BATCH_MAX : KV_BATCH_WATCH_MAX)
      const { news, deleted, index } = await read(namespace_id, asked, watch_index, gone)
      const entries = [...news.map(entryText), ...deleted.map(deletedText)]
      return prepare(`{"entries":[${entries.join(',')}],${watch(index)}}`)
    },
    async list(namespace_id, { directory, anchor }) {
      for (const [name, text] of Object.entries({ directory, anchor: anchor ?? '' })) requireNoNul(text, name)
      const { entries, has_more } = await readDirectory(ctx, namespace_id, directory, anchor)
      const next = has_more ? `,"anchor":${JSON.stringify(entries.at(-1)!.key)}` : ''
      return prepare(`{"entries":[${entries.map(entryText).join(',')}]${next}}`)
    },
    put: (namespace_id, body) => write(namespace_id, [requireEntry(body, [])]),
    async putBatch(namespace_id, { entries }) {
      if (entries.length === 0) throw new ApiError('KV_ENTRIES_MISSING', { path: ['entries'] })
      requireBatch(entries, ['entries'], KV_BATCH_MAX)
      const checked = entries.map((entry, i) => requireEntry(entry, ['entries', String(i)]))
      requireOnce(checked)
      await write(namespace_id, checked)
    },
    remove(namespace_id, key) {
      requireKey(key, ['query', 'key'])
      return remove(namespace_id, [key])
    },
    removeBatch: async (namespace_id, { keys = [] }) => remove(namespace_id, requireKeys(keys)),
    close: () => waiting.close(),
  }
}

function entryText({ key, value }: Found): string {
  return `{"key":${JSON.stringify(key)},"value":${value}}`
}

function deletedText(key: string): string {
  return `{"key":${JSON.stringify(key)},"value":null,"deleted":true}`
}

function watch(index: string): string {
  return `"watch":{"index":${JSON.stringify(index)}}`
}

/** Of two values for one key none is meant more than the other. */
function requireOnce(entries: readonly { key: string }[]): void {
  const seen = new Set<string>()
  for (const [i, { key }] of entries.entries()) {
    if (seen.has(key)) {
      const path = ['entries', String(i), 'key']
      throw validationError([{ path, reason: 'duplicate', message: `${path.join('.')} is there twice.` }])
    }
    seen.add(key)
  }
}

/** No key has one, and the database takes none. */
function requireNoNul(text: string, name: string): void {
  if (!text.includes('\0')) return
  throw validationError([{ path: ['query', name], reason: 'invalid', message: `${name} must not contain NUL.` }])
}
