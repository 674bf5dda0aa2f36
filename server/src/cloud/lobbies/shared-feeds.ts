// Feeds that many subscribers share: one copy of the state of a namespace in memory, which is kept for as long as a
// subscriber listens. A client that opens many feeds takes no slot from other clients.
import { ApiError, validationError } from '@musterhost/contract'
import { ClientShare, type ClientSlot } from '../../addresses/client-share.ts'
import type { Context } from '../../context.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame, requireNamespace } from '../access.ts'

/** Namespaces whose feed is open at once. Each feed follows tables. */
const FEEDS_MAX = 256
/** Namespaces whose feed one client opened: a developer has that many open in pages. */
const CLIENT_FEEDS_MAX = 32
const RETRY_AFTER_S = 5

export type Feed<L> = {
  /**
   * The state. A new object after a gap: then its subscribers receive everything anew. Throws API_NOT_AVAILABLE when the slot
   * of the feed was given to another client.
   */
  live(): L
  /** `wake` is called whenever there may be something new. Returns what ends that. */
  onNews(wake: () => void): () => void
}

/** What keeps the state of a namespace. `wakes`: to be called after each change. */
export type OpenFeed<L> = { live: () => L; wakes: Set<() => void>; close: () => void }

export type Feeds<L> = {
  /**
   * The caller that enters it leaves it. A feed that has to be opened is the client's. Throws NAMESPACE_NOT_FOUND, and
   * API_RATE_LIMIT or API_NOT_AVAILABLE when the client, or all clients together, have too many.
   */
  enter(namespace_id: string, client_key: string): Promise<{ feed: Feed<L>; leave: () => void }>
}

/** A namespace, and where its subscriber continues. */
export type FeedWish = { game_id: string; namespace_id: string; watch_index: string | undefined }

/** Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND, and VALIDATION_ERROR with `message` for an index without this form. */
export async function requireFeed(
  ctx: Context,
  caller: Caller,
  { game_id, namespace_id, watch_index }: FeedWish,
  index: { form: RegExp; message: string },
): Promise<void> {
  await requireGame(ctx, caller, game_id)
  await requireNamespace(ctx, game_id, namespace_id)
  if (watch_index === undefined || index.form.test(watch_index)) return
  throw validationError([{ path: ['watch_index'], reason: 'invalid', message: index.message }])
}

type Entry<L> = { opening: Promise<OpenFeed<L>>; listeners: number; slot: ClientSlot; is_displaced: boolean }

export function createFeeds<L>(openFeed: (namespace_id: string) => Promise<OpenFeed<L>>): Feeds<L> {
  const feeds = new Map<string, Entry<L>>()
  const share = new ClientShare({ slots_max: FEEDS_MAX, client_max: CLIENT_FEEDS_MAX })

  function open(namespace_id: string, client_key: string): Entry<L> {
    const slot = share.enter(client_key, () => displace(namespace_id, entry))
    if (slot === 'client_full') throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: RETRY_AFTER_S })
    if (slot === 'full') throw notAvailable()
    const entry: Entry<L> = { opening: openFeed(namespace_id), listeners: 0, slot, is_displaced: false }
    feeds.set(namespace_id, entry)
    return entry
  }

  function displace(namespace_id: string, entry: Entry<L>): void {
    feeds.delete(namespace_id)
    entry.is_displaced = true
    // The subscribers that entered have received the error of opening it.
    entry.opening
      .then(({ wakes }) => {
        for (const wake of wakes) wake()
      })
      .catch(() => {})
  }

  function leave(namespace_id: string, entry: Entry<L>): void {
    if (--entry.listeners > 0) return
    if (feeds.get(namespace_id) === entry) feeds.delete(namespace_id)
    entry.slot.leave()
    // The same.
    entry.opening.then(({ close }) => close()).catch(() => {})
  }

  return {
    async enter(namespace_id, client_key) {
      const entry = feeds.get(namespace_id) ?? open(namespace_id, client_key)
      entry.listeners++
      try {
        return { feed: feedOf(entry, await entry.opening), leave: () => leave(namespace_id, entry) }
      } catch (error) {
        leave(namespace_id, entry)
        throw error
      }
    },
  }
}

function feedOf<L>(entry: Entry<L>, { live, wakes }: OpenFeed<L>): Feed<L> {
  return {
    live() {
      if (entry.is_displaced) throw notAvailable()
      return live()
    },
    onNews(wake) {
      wakes.add(wake)
      return () => wakes.delete(wake)
    },
  }
}

function notAvailable(): ApiError {
  return new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
}
