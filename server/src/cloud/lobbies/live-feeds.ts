// What changes about the lobbies of a namespace, for all who stay to hear of it: one copy of them in memory a namespace,
// which follows the journal and what is deployed for as long as somebody listens.
import { ApiError, type getAnalyticsMatchmakerLive, type ResponseOf, validationError } from '@muster/contract'
import { type ClientPlace, ClientShare } from '../../addresses/client-share.ts'
import type { Caller } from '../../caller.ts'
import type { Context } from '../../context.ts'
import { watchChannel } from '../../database/poller.ts'
import { followShard } from '../../journal/follow.ts'
import { shardOf } from '../../journal/pages.ts'
import { requireGame, requireNamespace } from '../access.ts'
import type { LiveLobbies } from './live.ts'
import { applyRow, loadLiveLobbies } from './load-live.ts'

/** Each follows the journal. Of one client: a developer has that many namespaces open in pages. */
const FEEDS_MAX = 256
/** Of these, namespaces whose feed one client opened. */
const CLIENT_FEEDS_MAX = 32
const RETRY_AFTER_S = 5
/** What a lost word about a deployment costs. */
const DEPLOYED_EVERY_MS = 2_000
const RELOAD_MS = 1_000
const INDEX = /^\d{1,16}\.[0-9a-f-]{36}$/

type OfNamespace = { game_id: string; namespace_id: string }

export type Feed = {
  /**
   * A new object after a gap of the journal: then its subscribers receive everything anew. Throws API_NOT_AVAILABLE when the
   * place of the feed was given to another client.
   */
  live(): LiveLobbies
  /** `wake` is called whenever there may be something new. Returns what ends that. */
  onNews(wake: () => void): () => void
}

export type LiveFeeds = {
  /**
   * The caller that enters it leaves it. A feed that has to be opened is the client's. Throws NAMESPACE_NOT_FOUND, and
   * API_RATE_LIMIT or API_NOT_AVAILABLE when the client, or everybody, has too many.
   */
  enter(namespace_id: string, client_key: string): Promise<{ feed: Feed; leave: () => void }>
}

type Open = { feed: Feed; displace: () => void; close: () => void }
type Entry = { opening: Promise<Open>; listeners: number; place: ClientPlace }

export function createLiveFeeds(ctx: Context): LiveFeeds {
  const feeds = new Map<string, Entry>()
  const share = new ClientShare({ places_max: FEEDS_MAX, client_max: CLIENT_FEEDS_MAX })

  function open(namespace_id: string, client_key: string): Entry {
    const place = share.enter(client_key, () => displace(namespace_id, entry))
    if (place === 'client_full') throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: RETRY_AFTER_S })
    if (place === 'full') throw notAvailable()
    const entry: Entry = { opening: openFeed(ctx, namespace_id), listeners: 0, place }
    feeds.set(namespace_id, entry)
    return entry
  }

  function displace(namespace_id: string, entry: Entry): void {
    feeds.delete(namespace_id)
    // The subscribers that entered have received the error of opening it.
    entry.opening.then((opened) => opened.displace()).catch(() => {})
  }

  function leave(namespace_id: string, entry: Entry): void {
    if (--entry.listeners > 0) return
    if (feeds.get(namespace_id) === entry) feeds.delete(namespace_id)
    entry.place.leave()
    // The same.
    entry.opening.then(({ close }) => close()).catch(() => {})
  }

  return {
    async enter(namespace_id, client_key) {
      const entry = feeds.get(namespace_id) ?? open(namespace_id, client_key)
      entry.listeners++
      try {
        const { feed } = await entry.opening
        return { feed, leave: () => leave(namespace_id, entry) }
      } catch (error) {
        leave(namespace_id, entry)
        throw error
      }
    },
  }
}

function notAvailable(): ApiError {
  return new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
}

async function openFeed(ctx: Context, namespace_id: string): Promise<Open> {
  const wakes = new Set<() => void>()
  const tell = (): void => {
    for (const wake of wakes) wake()
  }
  let live = await loadLiveLobbies(ctx, namespace_id)
  let is_closed = false
  let is_displaced = false
  let following = follow()

  function follow(): { close: () => Promise<void> } {
    return followShard(ctx, {
      shard: shardOf(namespace_id),
      after: live.seq,
      take(row) {
        const before = live.revision
        applyRow(live, namespace_id, row)
        if (live.revision !== before) tell()
      },
      onGap: () => void reload(),
    })
  }

  async function reload(): Promise<void> {
    if (is_closed) return
    try {
      live = await loadLiveLobbies(ctx, namespace_id)
    } catch (error) {
      ctx.log.warn({ err: error, namespace_id }, 'running lobbies could not be read anew; trying again')
      setTimeout(reload, RELOAD_MS)
      return
    }
    if (is_closed) return
    void following.close()
    following = follow()
    tell()
  }

  const deployed = watchChannel(ctx, {
    channel: 'namespaces',
    concerns: (payload) => payload === '' || payload === namespace_id,
    every_ms: DEPLOYED_EVERY_MS,
    async look() {
      const { rows } = await ctx.pool.query<{ version_id: string }>(
        'select version_id from namespaces where namespace_id = $1',
        [namespace_id],
      )
      if (rows[0] !== undefined && live.deploy(rows[0].version_id)) tell()
    },
    failure: 'what is deployed could not be read; trying again',
  })

  return {
    feed: {
      live() {
        if (is_displaced) throw notAvailable()
        return live
      },
      onNews(wake) {
        wakes.add(wake)
        return () => wakes.delete(wake)
      },
    },
    displace() {
      is_displaced = true
      tell()
    },
    close() {
      is_closed = true
      void following.close()
      void deployed.close()
    },
  }
}

/** Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND, and VALIDATION_ERROR for what is no index. */
export async function liveLobbies(
  ctx: Context,
  caller: Caller,
  params: OfNamespace,
  watch_index: string | undefined,
): Promise<ResponseOf<typeof getAnalyticsMatchmakerLive>> {
  await requireLive(ctx, caller, params, watch_index)
  const { message } = (await loadLiveLobbies(ctx, params.namespace_id)).snapshot()
  return { lobbies: message.kind === 'snapshot' ? message.lobbies : [], watch: { index: message.index } }
}

/** Throws what a call without a WebSocket would be refused with. */
export async function requireLive(
  ctx: Context,
  caller: Caller,
  { game_id, namespace_id }: OfNamespace,
  watch_index: string | undefined,
): Promise<void> {
  await requireGame(ctx, caller, game_id)
  await requireNamespace(ctx, game_id, namespace_id)
  if (watch_index === undefined || INDEX.test(watch_index)) return
  const message = 'A watch_index is what an answer had as its watch.index, or a message as its index.'
  throw validationError([{ path: ['watch_index'], reason: 'invalid', message }])
}
