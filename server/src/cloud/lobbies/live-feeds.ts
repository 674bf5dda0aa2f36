// What changes about the lobbies of a namespace, for all who stay to hear of it: one copy of them in memory a namespace,
// which follows the journal and what is deployed for as long as somebody listens.
import type { getAnalyticsMatchmakerLive, ResponseOf } from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { watchChannel, watchEvery } from '../../database/poller.ts'
import { followShard } from '../../journal/follow.ts'
import { shardOf } from '../../journal/pages.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { LiveLobbies } from './live.ts'
import { applyRow, loadLiveLobbies, readDeployed, readUsage } from './load-live.ts'
import { type FeedWish, type OpenFeed, requireFeed } from './shared-feeds.ts'

/** What a lost word about a deployment costs. */
const DEPLOYED_EVERY_MS = 2_000
const RELOAD_MS = 1_000
const INDEX = {
  form: /^\d{1,16}\.[0-9a-f-]{36}(\+[0-9a-f-]{36})?(\.\d{1,16})?$/,
  message: 'A watch_index is what an answer had as its watch.index, or a message as its index.',
}
/** As often as the runner samples a young lobby. */
const USAGE_EVERY_MS = 5_000

export async function openLobbyFeed(ctx: Context, namespace_id: string): Promise<OpenFeed<LiveLobbies>> {
  const wakes = new Set<() => void>()
  const notify = (): void => {
    for (const wake of wakes) wake()
  }
  let live = await loadLiveLobbies(ctx, namespace_id)
  let is_closed = false
  let following = follow()

  function follow(): { close: () => Promise<void> } {
    return followShard(ctx, {
      shard: shardOf(namespace_id),
      after: live.seq,
      take(row) {
        const before = live.revision
        applyRow(live, namespace_id, row)
        if (live.revision !== before) notify()
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
    notify()
  }

  const deployed = watchChannel(ctx, {
    channel: CHANNELS.namespaces,
    concerns: (payload) => payload === '' || payload === namespace_id,
    every_ms: DEPLOYED_EVERY_MS,
    async run() {
      const versions = await readDeployed(ctx.pool, namespace_id)
      if (versions !== undefined && live.deploy(versions)) notify()
    },
    failure: 'what is deployed could not be read; trying again',
  })

  const usage = watchEvery(ctx, USAGE_EVERY_MS, {
    async run() {
      if (live.measure(await readUsage(ctx, namespace_id), ctx.now())) notify()
    },
    failure: 'usage of running lobbies could not be read; trying again',
  })

  return {
    live: () => live,
    wakes,
    close() {
      is_closed = true
      void following.close()
      void deployed.close()
      void usage.close()
    },
  }
}

/** Throws as `requireLive`. */
export async function liveLobbies(
  ctx: Context,
  caller: Caller,
  wish: FeedWish,
): Promise<ResponseOf<typeof getAnalyticsMatchmakerLive>> {
  await requireLive(ctx, caller, wish)
  const { message } = (await loadLiveLobbies(ctx, wish.namespace_id)).snapshot()
  return { lobbies: message.kind === 'snapshot' ? message.lobbies : [], watch: { index: message.index } }
}

/** Throws what a call without a WebSocket would be refused with. */
export function requireLive(ctx: Context, caller: Caller, wish: FeedWish): Promise<void> {
  return requireFeed(ctx, caller, wish, INDEX)
}
