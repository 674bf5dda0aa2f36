// The operations on entries, once their namespace is known (namespace.ts). Writers notify the channel, which wakes the
// watching requests.
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
} from '@musterhost/contract'
import type { Context } from '../context.ts'
import { createKeyQueue, type KeyQueue } from '../database/key-queue.ts'
import { createLongPoll, type LongPoll } from '../database/long-poll.ts'
import { type Prepared, prepare } from '../text/json-text.ts'
import { CHANNELS } from '../wire/channels.ts'
import { requireBatch, requireKey, requireKeys, topicOf } from './keys.ts'
import { indexOf, readDirectory, readEntries, readIndex, readRevisions, type StoredEntry } from './reads.ts'
import { deleteEntries, requireEntry, writeEntries } from './writes.ts'

/** How often a watch reads its entries without a notification. */
const POLL_MS = 10_000
/** Watches of this process: the limit of http/watches.ts, and those that are just ending. */
const WATCHING_MAX = 10_000
const RETRY_AFTER_S = 5

type Answer<O extends Operation> = Promise<Prepared<ResponseOf<O>>>

export function openKv(ctx: Context): Kv {
  return new Kv(ctx)
}

export class Kv {
  readonly #ctx: Context
  readonly #waiting: LongPoll
  readonly #inQueue: KeyQueue = createKeyQueue()

  constructor(ctx: Context) {
    this.#ctx = ctx
    this.#waiting = createLongPoll(ctx, { channel: CHANNELS.kv, poll_ms: POLL_MS, waiting_max: WATCHING_MAX })
  }

  /** Watches until `gone` is aborted. */
  async get(
    namespace_id: string,
    { key, watch_index }: QueryOf<typeof getKvEntry>,
    gone: AbortSignal,
  ): Answer<typeof getKvEntry> {
    requireKey(key, ['query', 'key'])
    const { found, deleted, index } = await this.#read(namespace_id, [key], watch_index, gone)
    const mark = deleted.length > 0 ? '"deleted":true,' : ''
    return prepare(`{"value":${found[0]?.value ?? 'null'},${mark}${watch(index)}}`)
  }

  /** Watches until `gone` is aborted. */
  async getBatch(
    namespace_id: string,
    { keys = [], watch_index }: QueryOf<typeof getKvBatch>,
    gone: AbortSignal,
  ): Answer<typeof getKvBatch> {
    const requested = requireKeys(keys, watch_index === undefined ? KV_BATCH_MAX : KV_BATCH_WATCH_MAX)
    const { changed, deleted, index } = await this.#read(namespace_id, requested, watch_index, gone)
    const entries = [...changed.map(entryText), ...deleted.map(deletedText)]
    return prepare(`{"entries":[${entries.join(',')}],${watch(index)}}`)
  }

  async list(namespace_id: string, { directory, anchor }: QueryOf<typeof listKvEntries>): Answer<typeof listKvEntries> {
    for (const [name, text] of Object.entries({ directory, anchor: anchor ?? '' })) requireNoNul(text, name)
    const { entries, has_more } = await readDirectory(this.#ctx, namespace_id, directory, anchor)
    const next = has_more ? `,"anchor":${JSON.stringify(entries.at(-1)!.key)}` : ''
    return prepare(`{"entries":[${entries.map(entryText).join(',')}]${next}}`)
  }

  async put(namespace_id: string, body: BodyOf<typeof putKvEntry>): Promise<void> {
    await this.#write(namespace_id, [requireEntry(body, [])])
  }

  async putBatch(namespace_id: string, { entries }: BodyOf<typeof putKvBatch>): Promise<void> {
    if (entries.length === 0) throw new ApiError('KV_ENTRIES_MISSING', { path: ['entries'] })
    requireBatch(entries, ['entries'], KV_BATCH_MAX)
    const checked = entries.map((entry, i) => requireEntry(entry, ['entries', String(i)]))
    requireOnce(checked)
    await this.#write(namespace_id, checked)
  }

  async remove(namespace_id: string, key: string): Promise<void> {
    requireKey(key, ['query', 'key'])
    await this.#remove(namespace_id, [key])
  }

  async removeBatch(namespace_id: string, { keys = [] }: QueryOf<typeof deleteKvBatch>): Promise<void> {
    await this.#remove(namespace_id, requireKeys(keys))
  }

  /** Ends every watch, whose client then receives a response. */
  close(): void {
    this.#waiting.close()
  }

  async #write(namespace_id: string, entries: readonly { key: string; text: string }[]): Promise<void> {
    await this.#inQueue(namespace_id, () => writeEntries(this.#ctx, namespace_id, entries))
    await this.#notify(
      namespace_id,
      entries.map(({ key }) => key),
    )
  }

  async #remove(namespace_id: string, keys: readonly string[]): Promise<void> {
    await this.#inQueue(namespace_id, () => deleteEntries(this.#ctx, namespace_id, keys))
    await this.#notify(namespace_id, keys)
  }

  async #notify(namespace_id: string, keys: readonly string[]): Promise<void> {
    await Promise.all(keys.map((key) => this.#ctx.listener.notify(CHANNELS.kv, topicOf(namespace_id, key))))
  }

  /** The current entries, and those that differ from `watch_index`. Without an index all of them count as changed. */
  async #read(
    namespace_id: string,
    keys: readonly string[],
    watch_index: string | undefined,
    gone: AbortSignal,
  ): Promise<{ found: StoredEntry[]; changed: StoredEntry[]; deleted: string[]; index: string }> {
    const known = watch_index === undefined ? null : readIndex(watch_index, keys)
    if (known !== null) await this.#untilChanged(namespace_id, keys, indexOf(keys, known), gone)
    const found = await readEntries(this.#ctx, namespace_id, keys)
    const revisions = new Map(found.map(({ key, revision }) => [key, revision]))
    return {
      found,
      changed: found.filter(({ key, revision }) => known?.get(key) !== revision),
      deleted: keys.filter((key) => (known?.get(key) ?? 0) !== 0 && !revisions.has(key)),
      index: indexOf(keys, revisions),
    }
  }

  /** Returns when a key has another revision than in `known`, or after the time of a long poll. */
  async #untilChanged(namespace_id: string, keys: readonly string[], known: string, gone: AbortSignal): Promise<void> {
    const check = async (): Promise<true | null> =>
      indexOf(keys, await readRevisions(this.#ctx, namespace_id, keys)) === known ? null : true
    const topics = keys.map((key) => topicOf(namespace_id, key))
    if ((await this.#waiting.until(topics, check, () => gone.aborted, gone)) !== 'busy') return
    throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
  }
}

function entryText({ key, value }: StoredEntry): string {
  return `{"key":${JSON.stringify(key)},"value":${value}}`
}

function deletedText(key: string): string {
  return `{"key":${JSON.stringify(key)},"value":null,"deleted":true}`
}

function watch(index: string): string {
  return `"watch":{"index":${JSON.stringify(index)}}`
}

/** Throws VALIDATION_ERROR when a key occurs twice. */
function requireOnce(entries: readonly { key: string }[]): void {
  const seen = new Set<string>()
  for (const [i, { key }] of entries.entries()) {
    if (seen.has(key)) {
      const path = ['entries', String(i), 'key']
      throw validationError([{ path, reason: 'duplicate', message: `${path.join('.')} occurs twice.` }])
    }
    seen.add(key)
  }
}

/** Keys contain no NUL, and the database accepts none. */
function requireNoNul(text: string, name: string): void {
  if (!text.includes('\0')) return
  throw validationError([{ path: ['query', name], reason: 'invalid', message: `${name} must not contain NUL.` }])
}
