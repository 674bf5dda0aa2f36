// The running lobbies of a namespace, from the live feed. They are one map outside React: messages change it at once, and the
// page draws it at most once a frame and ten times a second, however many messages come.
import type { LiveMessage, LobbySummaryAnalytics, getAnalyticsMatchmakerLive as of } from '@musterhost/contract'
import { useEffect, useMemo, useSyncExternalStore } from 'react'
import { getAnalyticsMatchmakerLive } from '../../api/operations.gen.ts'
import { type FeedState, openFeed } from '../../api/socket.ts'

export type LiveLobby = LobbySummaryAnalytics

/** People do not read faster, and a phone stays cool. */
const DRAW_EVERY_MS = 100

export class LiveLobbyStore {
  readonly lobbies = new Map<string, LiveLobby>()
  feed: FeedState = 'connecting'
  /** Whether the first snapshot has arrived. */
  is_loaded = false
  /** When the connection was lost, in ms since the epoch. */
  lost_ms = 0
  /** Grows each time that the page should be drawn anew. */
  revision = 0
  #index: string | undefined
  #drawn_ms = 0
  #is_scheduled = false
  readonly #listeners = new Set<() => void>()

  get index(): string | undefined {
    return this.#index
  }

  take(message: LiveMessage): void {
    this.#index = message.index
    if (message.kind === 'heartbeat') return
    if (message.kind === 'snapshot') {
      this.lobbies.clear()
      this.is_loaded = true
    }
    for (const lobby of message.lobbies) this.lobbies.set(lobby.lobby_id, lobby)
    if (message.kind === 'changes') for (const lobby_id of message.stopped_lobby_ids) this.lobbies.delete(lobby_id)
    this.#schedule()
  }

  setFeed(feed: FeedState): void {
    if (feed === 'lost' && this.feed !== 'lost') this.lost_ms = Date.now()
    this.feed = feed
    this.#schedule()
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #schedule(): void {
    if (this.#is_scheduled) return
    this.#is_scheduled = true
    const wait_ms = DRAW_EVERY_MS - (performance.now() - this.#drawn_ms)
    if (wait_ms > 0) setTimeout(() => requestAnimationFrame(this.#draw), wait_ms)
    else requestAnimationFrame(this.#draw)
  }

  readonly #draw = (): void => {
    this.#is_scheduled = false
    this.#drawn_ms = performance.now()
    this.revision++
    for (const listener of this.#listeners) listener()
  }
}

/** Follows a namespace while the component is shown. `revision` says when the lobbies have changed. */
export function useLiveLobbies(game_id: string, namespace_id: string): { live: LiveLobbyStore; revision: number } {
  // biome-ignore lint/correctness/useExhaustiveDependencies: another namespace has lobbies of its own.
  const live = useMemo(() => new LiveLobbyStore(), [game_id, namespace_id])
  useEffect(
    () =>
      openFeed<typeof of, LiveMessage>({
        operation: getAnalyticsMatchmakerLive,
        input: () => ({
          params: { game_id, namespace_id },
          ...(live.index === undefined ? {} : { query: { watch_index: live.index } }),
        }),
        onMessage: (message) => live.take(message),
        onState: (state) => live.setFeed(state),
      }),
    [live, game_id, namespace_id],
  )
  const revision = useSyncExternalStore(
    (listener) => live.listen(listener),
    () => live.revision,
  )
  return { live, revision }
}
