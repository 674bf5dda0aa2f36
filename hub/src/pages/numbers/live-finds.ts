// The requests for seats of a namespace as they end, from the live feed: the newest ones, and the
// newest refusals.
import type { FindsMessage, LiveFind, getAnalyticsMatchmakerFinds as of } from '@musterhost/contract'
import { useEffect, useMemo, useSyncExternalStore } from 'react'
import { getAnalyticsMatchmakerFinds } from '../../api/operations.gen.ts'
import { type FeedState, openFeed } from '../../api/socket.ts'

const SHOWN_MAX = 30
/** Refusals that the page counts by code: the newest. */
export const REFUSALS_MAX = 1_000

export type FindsState = {
  feed: FeedState
  is_loaded: boolean
  /** The newest first. */
  finds: readonly LiveFind[]
  /** Requests that the platform left out, because this page was too slow. */
  left_out_count: number
  /** The newest refusals, in the order in which they ended. */
  refusals: readonly LiveFind[]
}

class LiveFinds {
  state: FindsState = { feed: 'connecting', is_loaded: false, finds: [], left_out_count: 0, refusals: [] }
  index: string | undefined
  readonly #listeners = new Set<() => void>()

  take(message: FindsMessage): void {
    this.index = message.index
    if (message.kind === 'heartbeat') return
    const is_first = message.kind === 'snapshot'
    const { finds, refusals } = is_first ? { finds: [], refusals: [] } : this.state
    this.#change({
      is_loaded: true,
      finds: [...message.finds.toReversed(), ...finds].slice(0, SHOWN_MAX),
      refusals: [...refusals, ...message.finds.filter(({ code }) => code !== undefined)].slice(-REFUSALS_MAX),
      left_out_count: this.state.left_out_count + (is_first ? 0 : message.left_out_count),
    })
  }

  setFeed(feed: FeedState): void {
    this.#change({ feed })
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #change(changed: Partial<FindsState>): void {
    this.state = { ...this.state, ...changed }
    for (const listener of this.#listeners) listener()
  }
}

/** Follows a namespace while the component is shown. */
export function useLiveFinds(game_id: string, namespace_id: string): FindsState {
  // biome-ignore lint/correctness/useExhaustiveDependencies: another namespace has requests of its own.
  const live = useMemo(() => new LiveFinds(), [game_id, namespace_id])
  useEffect(
    () =>
      openFeed<typeof of, FindsMessage>({
        operation: getAnalyticsMatchmakerFinds,
        input: () => ({
          params: { game_id, namespace_id },
          ...(live.index === undefined ? {} : { query: { watch_index: live.index } }),
        }),
        onMessage: (message) => live.take(message),
        onState: (state) => live.setFeed(state),
      }),
    [live, game_id, namespace_id],
  )
  return useSyncExternalStore(
    (listener) => live.listen(listener),
    () => live.state,
  )
}
