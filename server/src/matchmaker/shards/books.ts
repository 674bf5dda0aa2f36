// All books of this process: the shards that it has, the tick that ends what is due, and the callers that wait for a change.
// Shards come and go (shard-leases.ts). A command for a shard that is not here throws ShardMoved.
import { ApiError } from '@musterhost/contract'
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import type { Change } from '../../journal/changes.ts'
import { shardOf } from '../../journal/pages.ts'
import type { Metrics } from '../../observe/metrics.ts'
import type { Decision, Refused, SeatTaken } from '../book/commands.ts'
import type { IdleRules } from '../book/idle.ts'
import type { Lobby } from '../book/lobby.ts'
import type { TicketCall } from '../book/matching/ticket.ts'
import type { ScheduleRules } from '../book/schedule-rules.ts'
import type { Book } from '../book/state.ts'
import type { Projection } from '../projection/projection.ts'
import { BookTime } from './book-time.ts'
import { Capacity } from './capacity.ts'
import { ChangeWatch } from './change-watch.ts'
import { concernedIdentities, concernedLobbies } from './concerned.ts'
import { type TakenShard, takeOverEmpty } from './empty-shards.ts'
import { endOfMatchWait, type MatchWaitEnd, MatchWaiters } from './match-waiters.ts'
import { readOtherShards } from './other-shards.ts'
import type { Decide } from './pending.ts'
import { releaseClaims } from './port-claims.ts'
import { createPortPool, type OpenedPort, type PortPool } from './port-pool.ts'
import { regionFull } from './region-full.ts'
import type { RegionUse } from './room-claims.ts'
import { endOfWait, SeatWaiters, type WaitEnd } from './seat-waiters.ts'
import { Shard, type ShardState } from './shard.ts'
import { ShardMoved } from './shard-moved.ts'
import type { Patience } from './waiters.ts'

/** How often each shard removes what is due. */
const TICK_MS = 100
/** The same at rest: no command has come for REST_AFTER_MS, no caller waits, and nothing is due before the next tick. */
const REST_TICK_MS = 500
const REST_AFTER_MS = 10_000

export type CommitWatcher = {
  /** Called in order with the changes that have become durable. */
  onCommit: (namespace_id: string, changes: readonly Change[]) => void
  /** The books of a shard have been read: it has come to this process, or its books were read again. */
  onReload: (shard: number) => void
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
  /** What schedules say of each namespace, for a new book. */
  schedule_rules?: ReadonlyMap<string, ScheduleRules> | undefined
  /** Every edge has reported up to this time, for a book whose own time has not been set. */
  reported_ms: number
  log: Logger
  metrics: Metrics
  /** Called when another process writes a shard now. This process does not have it any more. */
  onDeposed: (shard: number) => void
}

export class Books {
  /** The time of the books. */
  readonly nowMs: () => number
  readonly time: BookTime
  /** Where lobbies are placed. */
  readonly capacity: Capacity
  /** Callers that wait for events of an identity, or for a change of its party. */
  readonly watch: ChangeWatch
  /** Servers that wait for a change of their own lobby. */
  readonly lobby_watch: ChangeWatch
  readonly #options: BooksOptions
  readonly #ports: PortPool
  readonly #shards = new Map<number, Shard>()
  #timer: NodeJS.Timeout | undefined
  #is_at_rest = false
  #last_command_ms = performance.now()
  readonly #watchers = new Set<CommitWatcher>()
  readonly #waiters = new SeatWaiters()
  readonly #match_waiters = new MatchWaiters()
  #more_ports = Promise.withResolvers<void>()
  /** Ended lobbies whose ports are still claimed, with the book time of their end. */
  #unused_ports = new Map<string, number>()
  #is_waiting_over = false
  #is_closed = false

  constructor(options: BooksOptions) {
    this.#options = options
    this.capacity = new Capacity(options.regions, options.node_capacity)
    this.#ports = createPortPool(options.log)
    this.watch = new ChangeWatch(options.elapsed, concernedIdentities)
    this.lobby_watch = new ChangeWatch(options.elapsed, concernedLobbies)
    this.time = new BookTime(options)
    this.nowMs = () => this.time.now()
    this.#schedule()
  }

  /** Carries out a command and returns its result, which is durable. Throws the ApiError of a refusal, and ShardMoved. */
  async commit<T>(namespace_id: string, decide: Decide<T>): Promise<T> {
    const shard = this.#shards.get(shardOf(namespace_id))
    if (shard === undefined) throw new ShardMoved(shardOf(namespace_id))
    this.#endRest()
    const decision: Decision<T> = await shard.run(namespace_id, decide)
    if ('refused' in decision) throw this.#refusalOf(decision)
    return decision.result
  }

  /** Carries out a command in several namespaces: in one journal row for each shard. A refusal of one throws. */
  async commitTogether<T>(namespace_ids: readonly string[], decide: Decide<T>): Promise<T[]> {
    const by_shard = Map.groupBy(namespace_ids, (namespace_id) => this.#shards.get(shardOf(namespace_id)))
    const commits = [...by_shard].flatMap(([shard, ids]) => {
      const commitAll = () => ids.map((id) => this.commit(id, decide))
      return shard === undefined ? commitAll() : shard.together(commitAll)
    })
    return Promise.all(commits)
  }

  /** The lobby as memory has it now; for reading only. */
  lobby(namespace_id: string, lobby_id: string): Lobby | undefined {
    return this.book(namespace_id)?.lobbies.get(lobby_id)
  }

  book(namespace_id: string): Book | undefined {
    return this.#shards.get(shardOf(namespace_id))?.book(namespace_id)
  }

  /** Whether this process has the shard of the namespace. */
  has(namespace_id: string): boolean {
    return this.#shards.has(shardOf(namespace_id))
  }

  /** Throws ShardMoved unless this process has the shard of the namespace. */
  requireHere(namespace_id: string): void {
    if (!this.has(namespace_id)) throw new ShardMoved(shardOf(namespace_id))
  }

  /** The namespaces that have a book in this process. */
  namespaceIds(): string[] {
    return [...this.#shards.values()].flatMap((shard) => shard.namespaceIds())
  }

  /** The shards that this process has. */
  shards(): number[] {
    return [...this.#shards.keys()]
  }

  /** The state of each shard of this process. */
  shardStates(): ShardState[] {
    return [...this.#shards.values()].map((shard) => shard.state)
  }

  /** The book time until which all of these shards are served; null: one of them cannot write at the moment. */
  servedNow(shards: Iterable<number>): number | null {
    for (const shard of shards) if (this.#shards.get(shard)?.state !== 'writing') return null
    return this.nowMs()
  }

  /** Notifies the watcher from now on, until the returned function is called. */
  onCommits(watcher: CommitWatcher): () => void {
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  /** Sets the ports on which edges listen now. */
  openPorts(opened: readonly OpenedPort[]): void {
    if (!this.#ports.open(opened)) return
    this.#more_ports.resolve()
    this.#more_ports = Promise.withResolvers()
  }

  /** Reads what the lobbies of other processes use. What cannot be read stays as it was. */
  async readOthers(): Promise<void> {
    const { pool, log } = this.#options
    try {
      const { claims, uses } = await readOtherShards(pool, this.shards(), this.nowMs())
      this.#ports.setElsewhere(claims)
      this.capacity.replaceOthers(uses)
    } catch (error) {
      log.warn({ err: error }, 'what lobbies of other processes use could not be read; trying again')
    }
  }

  /** Releases the claims of ended lobbies. */
  async releasePorts(): Promise<void> {
    const ended = this.#unused_ports
    if (ended.size === 0) return
    this.#unused_ports = new Map()
    try {
      await releaseClaims(this.#options.pool, ended)
    } catch (error) {
      for (const [lobby_id, stop_ms] of ended) this.#unused_ports.set(lobby_id, stop_ms)
      throw error
    }
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

  /** Waits until the ticket has ended and that is durable, or the patience is over. */
  waitForMatch(namespace_id: string, ticket_id: string, call: TicketCall, patience: Patience): Promise<MatchWaitEnd> {
    if (this.#is_waiting_over) return Promise.resolve('timeout')
    const waiter = this.#match_waiters.add(namespace_id, ticket_id, call, patience)
    // Reads the changes since the ticket was put; later changes come by onCommit.
    this.commit(namespace_id, (book) => ({ changes: [], result: endOfMatchWait(book, ticket_id) })).then((how) => {
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
    this.lobby_watch.wakeAll()
    this.#waiters.endAll()
    this.#match_waiters.endAll()
  }

  /**
   * Takes over those of the shards that are empty, which takes little. `served`: until when each was served, in book time. Has
   * no effect where it fails: take() does it.
   */
  async takeEmpty(served: ReadonlyMap<number, number>): Promise<void> {
    const { pool, log } = this.#options
    const wanted = new Map([...served].filter(([shard]) => !this.#shards.has(shard)))
    try {
      const all = await takeOverEmpty(pool, wanted, this.nowMs())
      for (const [shard, taken] of all) await this.take(shard, served.get(shard)!, taken)
    } catch (error) {
      log.warn({ err: error }, 'empty shards could not be taken over together; taking over one by one')
    }
  }

  /**
   * Takes a shard over and reads it; until then its commands wait. `served_ms`: until when it was served, in book time. Tries
   * until it succeeds. Returns whether the shard is here then: it may have been closed, or taken over by another process.
   */
  async take(number: number, served_ms: number, taken: TakenShard | null = null): Promise<boolean> {
    if (this.#is_closed || this.#shards.has(number)) return false
    const shard = this.#createShard(number)
    this.#shards.set(number, shard)
    await shard.open(served_ms, taken)
    return this.#shards.get(number) === shard && shard.state === 'writing'
  }

  /**
   * Ends a shard in this process: new commands throw ShardMoved, commands under way finish, and so do waits for its lobbies,
   * with ShardMoved. Returns the book time until which it was served.
   */
  async give(number: number): Promise<number> {
    const shard = this.#shards.get(number)
    if (shard !== undefined) {
      await shard.close()
      this.#forget(number, shard)
      await this.#options.projection.settle(number)
    }
    return this.nowMs()
  }

  async close(): Promise<void> {
    this.#is_closed = true
    clearTimeout(this.#timer)
    await Promise.all([...this.#shards.values()].map((shard) => shard.close()))
    this.endWaiting()
    this.watch.close()
    this.lobby_watch.close()
  }

  #createShard(shard: number): Shard {
    return new Shard({
      ...this.#options,
      book_time: this.time,
      capacity: this.capacity,
      ports: this.#ports,
      shard,
      onCommit: (namespace_id, changes) => this.#onCommit(namespace_id, changes),
      onReload: () => this.#onReload(shard),
      onClaimRefused: () => this.#readClaims(),
      onPortsUnused: (lobby_id, stop_ms) => void this.#unused_ports.set(lobby_id, stop_ms),
      onDeposed: (deposed) => {
        this.#forget(shard, deposed)
        this.#options.onDeposed(shard)
      },
    })
  }

  /** A claim was refused: of a lobby of another process, or of one that has ended here and is not released yet. */
  async #readClaims(): Promise<void> {
    try {
      await this.releasePorts()
    } catch (error) {
      this.#options.log.warn({ err: error }, 'ports of ended lobbies could not be released; trying again')
    }
    await this.readOthers()
  }

  #tick(): void {
    for (const shard of this.#shards.values()) shard.tick()
    this.#waiters.tick(this.#options.elapsed())
    this.#match_waiters.tick(this.#options.elapsed())
    this.#schedule()
  }

  /** Commands begin what becomes due: from now on the shards are ticked often. */
  #endRest(): void {
    this.#last_command_ms = performance.now()
    if (!this.#is_at_rest) return
    clearTimeout(this.#timer)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#is_closed) return
    const is_quiet =
      performance.now() - this.#last_command_ms >= REST_AFTER_MS &&
      this.#waiters.count + this.#match_waiters.count === 0
    const until_ms = this.nowMs() + REST_TICK_MS
    this.#is_at_rest = is_quiet && this.#shards.values().every((shard) => shard.isAtRest(until_ms))
    this.#timer = setTimeout(() => this.#tick(), this.#is_at_rest ? REST_TICK_MS : TICK_MS)
  }

  #onCommit(namespace_id: string, changes: readonly Change[]): void {
    for (const watcher of this.#watchers) watcher.onCommit(namespace_id, changes)
    const book = this.book(namespace_id)
    this.watch.onCommit(book, changes)
    this.lobby_watch.onCommit(book, changes)
    this.#waiters.onCommit(book, changes)
    this.#match_waiters.onCommit(changes)
  }

  #onReload(shard: number): void {
    for (const watcher of this.#watchers) watcher.onReload(shard)
    this.watch.wakeAll()
    this.lobby_watch.wakeAll()
    const bookOf = (namespace_id: string): Book | undefined => this.book(namespace_id)
    this.#waiters.onReload(bookOf, shard)
    this.#match_waiters.onReload(bookOf, shard, this.nowMs())
  }

  /** The shard is not in this process any more. Callers that wait for its changes go where it is. */
  #forget(number: number, shard: Shard): void {
    if (this.#shards.get(number) !== shard) return
    this.#shards.delete(number)
    this.capacity.replace(number, [])
    this.#ports.replace(number, [])
    this.#waiters.failAll(number, () => new ShardMoved(number))
    this.#match_waiters.failAll(number, () => new ShardMoved(number))
    this.watch.wakeAll()
    this.lobby_watch.wakeAll()
  }

  /** The book only knows that a region has no room; the account of all regions knows why. */
  #refusalOf({ refused, metadata, message }: Refused): ApiError {
    if (refused !== 'MATCHMAKER_REGION_FULL')
      return new ApiError(refused, metadata, message === undefined ? {} : { message })
    return regionFull(this.capacity, metadata as RegionUse)
  }
}
