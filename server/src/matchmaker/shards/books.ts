// All books of this process: 64 shards, the tick that ends what is due, and the callers that wait for a change.
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
import type { Decide } from './batch.ts'
import { type BookTime, createBookTime } from './book-time.ts'
import { Capacity, type RegionUse } from './capacity.ts'
import { IdentityWatch } from './identity-watch.ts'
import { createPortPool, type PortPool } from './port-pool.ts'
import { regionFull } from './region-full.ts'
import { endOfWait, type Patience, SeatWaiters, type WaitEnd } from './seat-waiters.ts'
import { Shard, type ShardState } from './shard.ts'

/** How often each shard removes what is due. */
const TICK_MS = 100
/** Shards that are read at the same time when a process starts. */
const OPENING_MAX = 8

export type CommitWatcher = {
  /** Called in order with the changes that have become durable. */
  onCommit: (namespace_id: string, changes: readonly Change[]) => void
  /** Books have been read again. */
  onReload: () => void
}

export type BooksOptions = {
  pool: Pool
  projection: Projection
  regions: Config['regions']
  node_capacity: Config['node_capacity']
  now: () => number
  elapsed: () => number
  /** For a book whose own rules have not been set. */
  idle_rules: IdleRules
  /** Every edge has reported up to this time, for a book whose own time has not been set. */
  reported_ms: number
  log: Logger
  metrics: Metrics
  /** Called once: another process writes now. */
  onDeposed: () => void
}

export class Books {
  /** The time of the books. */
  readonly nowMs: () => number
  /** Where lobbies are placed. */
  readonly capacity: Capacity
  /** Callers that wait for events of an identity, or for a change of its party. */
  readonly watch: IdentityWatch
  readonly #options: BooksOptions
  readonly #book_time: BookTime
  readonly #ports: PortPool
  readonly #shards: readonly Shard[]
  readonly #timer: NodeJS.Timeout
  readonly #watchers = new Set<CommitWatcher>()
  readonly #waiters = new SeatWaiters()
  #more_ports = Promise.withResolvers<void>()
  #is_waiting_over = false
  #is_deposed = false

  constructor(options: BooksOptions) {
    this.#options = options
    this.capacity = new Capacity(options.regions, options.node_capacity)
    this.#ports = createPortPool(options.log)
    this.watch = new IdentityWatch(options.elapsed)
    const isServing = (): boolean => this.#shards.every((shard) => shard.state === 'writing')
    this.#book_time = createBookTime({ ...options, isServing })
    this.nowMs = this.#book_time.now
    this.#shards = Array.from({ length: SHARD_COUNT }, (_, shard) => this.#createShard(shard))
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
  }

  /** Carries out a command and returns its result, which is durable. Throws the ApiError of a refusal. */
  async commit<T>(namespace_id: string, decide: Decide<T>): Promise<T> {
    const decision: Decision<T> = await this.#shardOf(namespace_id).run(namespace_id, decide)
    if ('refused' in decision) throw this.#refusalOf(decision)
    return decision.result
  }

  /** Carries out a command in several namespaces: in one journal row for each shard. A refusal of one throws. */
  async commitTogether<T>(namespace_ids: readonly string[], decide: Decide<T>): Promise<T[]> {
    const by_shard = Map.groupBy(namespace_ids, (namespace_id) => this.#shardOf(namespace_id))
    const commits = [...by_shard].flatMap(([shard, ids]) =>
      shard.together(() => ids.map((id) => this.commit(id, decide))),
    )
    return Promise.all(commits)
  }

  /** The lobby as memory has it now; for reading only. */
  lobby(namespace_id: string, lobby_id: string): Lobby | undefined {
    return this.book(namespace_id)?.lobbies.get(lobby_id)
  }

  book(namespace_id: string): Book | undefined {
    return this.#shardOf(namespace_id).book(namespace_id)
  }

  /** The namespaces that have a book. */
  namespaceIds(): string[] {
    return this.#shards.flatMap((shard) => shard.namespaceIds())
  }

  /** The state of each shard. */
  shardStates(): ShardState[] {
    return this.#shards.map((shard) => shard.state)
  }

  /** Notifies the watcher from now on, until the returned function is called. */
  onCommits(watcher: CommitWatcher): () => void {
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  /** Sets the ports on which the edge listens now. */
  openPorts(opened: readonly Pick<EdgePort, 'transport' | 'port'>[]): void {
    if (!this.#ports.open(opened)) return
    this.#more_ports.resolve()
    this.#more_ports = Promise.withResolvers()
  }

  /** Resolves when the edge listens on more ports than now, or after `wait_ms`. */
  async morePorts(wait_ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, wait_ms)
    await Promise.race([this.#more_ports.promise, promise])
    clearTimeout(timer)
  }

  /** Waits until the lobby of this seat is ready, or never will be for this player, and that is durable. */
  waitUntilReady(namespace_id: string, seat: SeatTaken, patience: Patience): Promise<WaitEnd> {
    if (this.#is_waiting_over) return Promise.resolve('timeout')
    const waiter = this.#waiters.add(namespace_id, seat, patience)
    // Reads the changes since the seat was taken; later changes come by onCommit.
    this.commit(namespace_id, (book) => ({ changes: [], result: endOfWait(book, seat) })).then((how) => {
      if (how !== null) waiter.end(how)
    }, waiter.fail)
    return waiter.ended
  }

  isWaitingOver(): boolean {
    return this.#is_waiting_over
  }

  /** Ends all waiting, now and from now on: the process is about to stop. */
  endWaiting(): void {
    this.#is_waiting_over = true
    this.watch.wakeAll()
    this.#waiters.endAll()
  }

  /** Takes all shards over and reads them. */
  async open(): Promise<void> {
    await this.#book_time.open(newId(this.#options.now()))
    const next = this.#shards.values()
    const openSome = async (): Promise<void> => {
      for (const shard of next) await shard.open()
    }
    await Promise.all(Array.from({ length: OPENING_MAX }, openSome))
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#book_time.close()
    await Promise.all(this.#shards.map((shard) => shard.close()))
    this.endWaiting()
    this.watch.close()
  }

  #createShard(shard: number): Shard {
    return new Shard({
      ...this.#options,
      book_time: this.#book_time,
      capacity: this.capacity,
      ports: this.#ports,
      shard,
      onCommit: (namespace_id, changes) => this.#onCommit(namespace_id, changes),
      onReload: () => this.#onReload(),
      onDeposed: () => this.#onDeposed(),
    })
  }

  #shardOf(namespace_id: string): Shard {
    return this.#shards[shardOf(namespace_id)]!
  }

  #tick(): void {
    for (const shard of this.#shards) shard.tick()
    this.#waiters.tick(this.#options.elapsed())
  }

  #onCommit(namespace_id: string, changes: readonly Change[]): void {
    for (const watcher of this.#watchers) watcher.onCommit(namespace_id, changes)
    const book = this.book(namespace_id)
    this.watch.onCommit(book, changes)
    this.#waiters.onCommit(book, changes)
  }

  #onReload(): void {
    for (const watcher of this.#watchers) watcher.onReload()
    this.watch.wakeAll()
    this.#waiters.onReload((namespace_id) => this.book(namespace_id))
  }

  #onDeposed(): void {
    if (this.#is_deposed) return
    this.#is_deposed = true
    this.#options.onDeposed()
  }

  /** The book only knows that a region has no room; the account of all regions knows why. */
  #refusalOf({ refused, metadata }: Refused): ApiError {
    if (refused !== 'MATCHMAKER_REGION_FULL') return new ApiError(refused, metadata)
    return regionFull(this.capacity, metadata as RegionUse)
  }
}
