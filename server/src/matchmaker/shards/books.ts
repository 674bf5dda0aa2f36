// All books of this process: 64 shards, the clock that ends what is due, and those who wait for a lobby to be ready.
import { ApiError } from '@muster/contract'
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import { newId } from '../../ids.ts'
import type { Change, EdgePort } from '../../journal/changes.ts'
import { SHARD_COUNT, shardOf } from '../../journal/pages.ts'
import type { Metrics } from '../../observe/metrics.ts'
import type { Decision, Refused, SeatTaken } from '../book/commands.ts'
import type { IdleRules } from '../book/idle.ts'
import type { Lobby } from '../book/lobby.ts'
import type { Book } from '../book/state.ts'
import type { Projection } from '../projection/projection.ts'
import { createBookTime } from './book-time.ts'
import { type Capacity, createCapacity, type RegionUse } from './capacity.ts'
import { createIdentityWatch, type IdentityWatch } from './identity-watch.ts'
import { createPortPool } from './port-pool.ts'
import { regionFull } from './region-full.ts'
import { createShard, type Decide, type Shard, type ShardState } from './shard.ts'

/** How often what is due is looked for. */
const TICK_MS = 100
/** Requests that may wait for a lobby to start. */
const WAITERS_MAX = 50_000
/** Shards that are read at the same time when a process starts. */
const OPENING_MAX = 8

/** How the wait for a seat's lobby ended: it is ready; the seat is gone with it; the time is over. */
export type WaitEnd = 'ready' | 'gone' | 'timeout'

export type Books = {
  /** Carries out a command and answers its result, durable. Throws the ApiError of a refusal. */
  commit: <T>(namespace_id: string, decide: Decide<T>) => Promise<T>
  /** The lobby as memory has it now; for reading, never to be changed. */
  lobby: (namespace_id: string, lobby_id: string) => Lobby | undefined
  book: (namespace_id: string) => Book | undefined
  /** The time of the books. */
  nowMs: () => number
  /** The namespaces that have a book. */
  namespaceIds: () => string[]
  /** What each shard does. */
  shardStates: () => ShardState[]
  /** Tells what becomes durable, in order, from now on; and when books are read anew. Ends with the function that it answers. */
  onCommits: (watcher: CommitWatcher) => () => void
  closeRegions: Capacity['closeRegions']
  /** Where the edge listens now. */
  openPorts: (ports: readonly Pick<EdgePort, 'transport' | 'port'>[]) => void
  /** Resolves when the edge listens at more ports than now, or after `wait_ms`. */
  morePorts: (wait_ms: number) => Promise<void>
  /** Waits until the lobby of this seat is ready, or will never be for this player, durably. */
  waitUntilReady: (namespace_id: string, seat: SeatTaken, patience: Patience) => Promise<WaitEnd>
  /** Who waits for events and for what becomes of his party. */
  watch: IdentityWatch
  /** Whether nobody is to wait any longer. */
  isWaitingOver: () => boolean
  /** Ends all waiting, now and from now on: the process is about to stop. */
  endWaiting: () => void
  /** Takes all shards over and reads them. */
  open: () => Promise<void>
  close: () => Promise<void>
}

export type CommitWatcher = {
  onCommit: (namespace_id: string, changes: readonly Change[]) => void
  onReload: () => void
}

export type BooksOptions = {
  pool: Pool
  projection: Projection
  regions: Config['regions']
  now: () => number
  elapsed: () => number
  /** Of a book that has not been told its own. */
  idle_rules: IdleRules
  /** Until when every edge has reported, for a book that has not been told. */
  reported_ms: number
  log: Logger
  metrics: Metrics
  /** Called once: another process writes now. */
  onDeposed: () => void
}

/** Until when a caller waits, by the monotonic clock, and whether he still does. */
export type Patience = {
  deadline_ms: number
  isGone: () => boolean
  /** Without it, isGone() is asked every TICK_MS. Aborted when it becomes true. */
  hangUpSignal?: () => AbortSignal
}

/** A seat may have several: a repeated request with the same Idempotency-Key waits for the same seat. */
type Waiter = {
  namespace_id: string
  lobby_id: string
  player_id: string
  patience: Patience
  end: (how: WaitEnd) => void
}

export function createBooks(options: BooksOptions): Books {
  /** By lobby. */
  const waiters = new Map<string, Set<Waiter>>()
  let waiter_count = 0
  const watchers = new Set<CommitWatcher>()
  let is_waiting_over = false
  let is_deposed = false
  const capacity = createCapacity(options.regions)
  const ports = createPortPool(options.log)
  const watch = createIdentityWatch(options.elapsed)
  let more_ports = Promise.withResolvers<void>()
  const isServing = (): boolean => shards.every((shard) => shard.state() === 'writing')
  const book_time = createBookTime({ ...options, isServing })
  const shards: Shard[] = Array.from({ length: SHARD_COUNT }, (_, shard) =>
    createShard({ ...options, book_time, capacity, ports, shard, onCommit: wake, onReload: wakeAll, onDeposed }),
  )
  const timer = setInterval(() => {
    for (const shard of shards) shard.tick()
    endImpatient()
  }, TICK_MS)

  const shardFor = (namespace_id: string): Shard => shards[shardOf(namespace_id)]!

  function onDeposed(): void {
    if (is_deposed) return
    is_deposed = true
    options.onDeposed()
  }

  async function commit<T>(namespace_id: string, decide: Decide<T>): Promise<T> {
    const decision: Decision<T> = await shardFor(namespace_id).run(namespace_id, decide)
    if ('refused' in decision) throw refusalOf(decision)
    return decision.result
  }

  /** The book only knows that a region has no room; the account of all regions knows why. */
  function refusalOf({ refused, metadata }: Refused): ApiError {
    if (refused !== 'MATCHMAKER_REGION_FULL') return new ApiError(refused, metadata)
    return regionFull(capacity, metadata as RegionUse)
  }

  /** Told of what has become durable; memory is ahead of that, so only what never changes is read from it. */
  function wake(namespace_id: string, changes: readonly Change[]): void {
    for (const watcher of watchers) watcher.onCommit(namespace_id, changes)
    watch.told(shardFor(namespace_id).book(namespace_id), changes)
    if (waiter_count === 0) return
    for (const change of changes) {
      if (change.kind === 'lobby_ready') endAll(change.lobby_id, () => 'ready')
      else if (change.kind === 'lobby_stopped') endAll(change.lobby_id, () => 'gone')
      else if (change.kind === 'player_removed') {
        const player = shardFor(namespace_id).book(namespace_id)?.players.get(change.player_id)
        if (player) endAll(player.lobby_id, (waiter) => (waiter.player_id === change.player_id ? 'gone' : null))
      }
    }
  }

  /** After a reload memory is what is durable. */
  function wakeAll(): void {
    for (const watcher of watchers) watcher.onReload()
    watch.wakeAll()
    for (const lobby_id of [...waiters.keys()]) {
      endAll(lobby_id, (waiter) => stateOf(shardFor(waiter.namespace_id).book(waiter.namespace_id), waiter))
    }
  }

  function endAll(lobby_id: string, howOf: (waiter: Waiter) => WaitEnd | null): void {
    for (const waiter of [...(waiters.get(lobby_id) ?? [])]) {
      const how = howOf(waiter)
      if (how !== null) waiter.end(how)
    }
  }

  /** Null: the lobby is still starting. */
  function stateOf(book: Book | undefined, seat: { lobby_id: string; player_id: string }): WaitEnd | null {
    const player = book?.players.get(seat.player_id)
    if (player === undefined || player.remove_ms !== null) return 'gone'
    return book?.lobbies.get(seat.lobby_id)?.ready_ms === null ? null : 'ready'
  }

  /** Whoever has waited long enough, or has hung up. */
  function endImpatient(): void {
    if (waiter_count === 0) return
    const now_ms = options.elapsed()
    const isOver = ({ deadline_ms, isGone }: Patience): boolean => deadline_ms <= now_ms || isGone()
    for (const lobby_id of [...waiters.keys()]) {
      endAll(lobby_id, (waiter) => (isOver(waiter.patience) ? 'timeout' : null))
    }
  }

  function endWaiting(): void {
    is_waiting_over = true
    watch.wakeAll()
    for (const lobby_id of [...waiters.keys()]) endAll(lobby_id, () => 'timeout')
  }

  function waitUntilReady(namespace_id: string, seat: SeatTaken, patience: Patience): Promise<WaitEnd> {
    if (is_waiting_over) return Promise.resolve('timeout')
    if (waiter_count >= WAITERS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
    return new Promise((resolve, reject) => {
      const { lobby_id, player_id } = seat
      const of_lobby = waiters.get(lobby_id) ?? new Set()
      const waiter: Waiter = {
        namespace_id,
        lobby_id,
        player_id,
        patience,
        end(how) {
          if (of_lobby.delete(waiter)) waiter_count--
          if (of_lobby.size === 0 && waiters.get(lobby_id) === of_lobby) waiters.delete(lobby_id)
          resolve(how)
        },
      }
      waiters.set(lobby_id, of_lobby.add(waiter))
      waiter_count++
      patience.hangUpSignal?.().addEventListener('abort', () => waiter.end('timeout'), { once: true })
      // What has come true since the seat was taken; from here on the commits tell.
      commit(namespace_id, (book) => ({ changes: [], result: stateOf(book, seat) })).then(
        (how) => {
          if (how !== null) waiter.end(how)
        },
        (error: unknown) => {
          reject(error)
          waiter.end('timeout')
        },
      )
    })
  }

  async function open(): Promise<void> {
    await book_time.open(newId(options.now()))
    const next = shards.values()
    const openSome = async (): Promise<void> => {
      for (const shard of next) await shard.open()
    }
    await Promise.all(Array.from({ length: OPENING_MAX }, openSome))
  }

  async function close(): Promise<void> {
    clearInterval(timer)
    await book_time.close()
    await Promise.all(shards.map((shard) => shard.close()))
    endWaiting()
    watch.close()
  }

  return {
    commit,
    lobby: (namespace_id, lobby_id) => shardFor(namespace_id).book(namespace_id)?.lobbies.get(lobby_id),
    book: (namespace_id) => shardFor(namespace_id).book(namespace_id),
    nowMs: book_time.now,
    namespaceIds: () => shards.flatMap((shard) => shard.namespaceIds()),
    shardStates: () => shards.map((shard) => shard.state()),
    onCommits(watcher) {
      watchers.add(watcher)
      return () => void watchers.delete(watcher)
    },
    closeRegions: capacity.closeRegions,
    openPorts(opened) {
      if (!ports.open(opened)) return
      more_ports.resolve()
      more_ports = Promise.withResolvers()
    },
    async morePorts(wait_ms) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, wait_ms)
      await Promise.race([more_ports.promise, promise])
      clearTimeout(timer)
    },
    waitUntilReady,
    watch,
    isWaitingOver: () => is_waiting_over,
    endWaiting,
    open,
    close,
  }
}
