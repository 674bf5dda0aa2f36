// One shard: its books in memory, and the batches in which their changes become durable. A command is carried out in
// memory at once, and its caller gets the result when its batch has committed. While one append is in flight, the next
// batch gathers. An idle shard appends at once: there is no timer.
//
// A shard is writing; or recovering, when an append failed or its outcome is unknown; or deposed, when another writer has
// taken over; or closed. While it recovers, commands are queued for RECOVERY_WAIT_MS_MAX at most. A deposed or closed shard
// never writes again. A command that it has not carried out throws ShardMoved, and may be sent to the next holder.
import { ApiError } from '@musterhost/contract'
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import { clientNetworks } from '../../addresses/client-networks.ts'
import { newId } from '../../ids.ts'
import type { Change } from '../../journal/changes.ts'
import { encodePage } from '../../journal/pages.ts'
import type { Metrics } from '../../observe/metrics.ts'
import type { Decision, Env } from '../book/commands.ts'
import { expire } from '../book/decide.ts'
import { forget } from '../book/evolve.ts'
import type { IdleRules } from '../book/idle.ts'
import { BrokenLaw } from '../book/laws.ts'
import { Book } from '../book/state.ts'
import { noRowSnapshots, takeSnapshots } from '../projection/affected-rows.ts'
import { bookOf, type LoadedShard, loadShard } from '../projection/load.ts'
import type { Projection } from '../projection/projection.ts'
import { wakesOfChanges, wakesOfRows } from '../projection/wakes.ts'
import { Batch, type Decide, type Pending } from './batch.ts'
import type { BookTime } from './book-time.ts'
import type { Capacity } from './capacity.ts'
import type { TakenShard } from './empty-shards.ts'
import { type AppendOutcome, append, didCommit, type Takeover, takeOver } from './fence.ts'
import { type PortClaim, replaceClaims } from './port-claims.ts'
import type { PortPool } from './port-pool.ts'
import { replaceRoom } from './room-claims.ts'
import { ShardMoved } from './shard-moved.ts'

/** Commands of one journal row; further commands wait for the next row. */
const BATCH_COMMANDS_MAX = 1_024
/** Commands that may wait while the shard cannot write. */
const QUEUED_COMMANDS_MAX = 20_000
/** Long enough that a database restart removes no connected player; short enough for a caller to wait. */
const RECOVERY_WAIT_MS_MAX = 5_000
/** Ended seats and lobbies that one command removes first. */
const EXPIRIES_PER_COMMAND_MAX = 1_000
/** How often commands decide again because their ports or their room are taken elsewhere. */
const CLAIM_CONFLICTS_MAX = 16
/** Between two tries to read the journal. */
const RECOVER_PAUSE_MS = 100

export type ShardState = 'recovering' | 'writing' | 'deposed' | 'closed'

export type ShardOptions = {
  shard: number
  pool: Pool
  projection: Projection
  capacity: Capacity
  ports: PortPool
  book_time: BookTime
  elapsed: () => number
  /** For a book whose own rules have not been set. */
  idle_rules: IdleRules
  /** Every edge has reported up to this time, for a book whose own time has not been set. */
  reported_ms: number
  log: Logger
  metrics: Metrics
  /** Called in order with the changes that have become durable. */
  onCommit: (namespace_id: string, changes: readonly Change[]) => void
  /** The books have been read again: a caller that waits for a change must read the book. */
  onReload: () => void
  onDeposed: (shard: Shard) => void
  /** Lobbies of another process have a port or the room that was chosen. Resolves when their use has been read. */
  onClaimRefused: () => Promise<void>
  /** The end of a lobby with ports is durable. `stop_ms`: in book time. */
  onPortsUnused: (lobby_id: string, stop_ms: number) => void
}

type FailedAppend = Exclude<AppendOutcome, { kind: 'committed' }>

export class Shard {
  readonly #options: ShardOptions
  readonly #env: Env
  #state: ShardState = 'recovering'
  #books = new Map<string, Book>()
  /** The name under which this process appends; new with each takeover. */
  #writer = ''
  /** Sequence number of the last journal row. */
  #seq = 0
  #time_ms = 0
  /** The time of the last row: everything that happened until then is durable. */
  #durable_ms = 0
  #gathering = new Batch()
  #is_appending = false
  /** Commands gather, and no append begins: see together(). */
  #is_held = false
  #queued: Pending[] = []
  /** The commands of a batch whose outcome is unknown. */
  #undecided: Pending[] = []
  /** Settles when no append is in flight. */
  #appended = Promise.resolve()
  /** It accepts no more commands. */
  #is_closing = false

  constructor(options: ShardOptions) {
    this.#options = options
    const { capacity, ports } = options
    this.#env = {
      now_ms: 0,
      choosePlace: (plan, reserved) => capacity.choose(plan, reserved),
      choosePorts: ports.choose,
    }
  }

  get state(): ShardState {
    return this.#state
  }

  /** The namespaces that have a book. */
  namespaceIds(): string[] {
    return [...this.#books.keys()]
  }

  /** For reads that need not be durable. Undefined when the namespace has no book. */
  book(namespace_id: string): Book | undefined {
    return this.#books.get(namespace_id)
  }

  /**
   * Carries out a command. Resolves when everything that the result rests on is durable, refusals included. Throws
   * API_NOT_AVAILABLE when the shard cannot write for too long, ShardMoved, and the errors of `decide`.
   */
  run<T>(namespace_id: string, decide: Decide<T>): Promise<Decision<T>> {
    return new Promise((resolve, reject) => {
      const pending: Pending = {
        namespace_id,
        decide,
        since_ms: this.#options.elapsed(),
        decision: null,
        is_settled: false,
        resolve,
        reject,
      }
      const is_over = this.#is_closing || this.#state === 'deposed' || this.#state === 'closed'
      if (is_over) return reject(this.#moved())
      if (this.#queued.length >= QUEUED_COMMANDS_MAX) return reject(notAvailable())
      const must_wait = this.#state === 'recovering' || this.#gathering.pendings.length >= BATCH_COMMANDS_MAX
      if (must_wait) this.#queued.push(pending)
      else this.#accept(pending)
    })
  }

  /** Carries out all commands that `work` gives to run() in one journal row, as far as one takes them. */
  together<T>(work: () => T): T {
    this.#is_held = true
    try {
      return work()
    } finally {
      this.#is_held = false
      if (!this.#is_appending && !this.#gathering.is_empty) this.#appended = this.#appendAll()
    }
  }

  /** Removes seats and lobbies whose time is over, and rejects commands that were queued for too long. */
  tick(): void {
    const { book_time, shard, log } = this.#options
    for (const pending of [...this.#undecided, ...this.#queued]) {
      if (!pending.is_settled && this.#hasWaitedTooLong(pending)) reject(pending, notAvailable())
    }
    this.#queued = this.#queued.filter((pending) => !pending.is_settled)
    if (this.#state !== 'writing') return
    const now_ms = book_time.now()
    if (!this.#is_appending && !this.#gathering.has_changes) {
      this.#time_ms = this.#durable_ms = Math.max(this.#time_ms, now_ms)
    }
    for (const [namespace_id, book] of this.#books) {
      forget(book, this.#durable_ms)
      const due_ms = book.nextDueMs()
      if (due_ms !== null && due_ms <= now_ms) {
        this.run(namespace_id, () => ({ changes: [], result: null })).catch((error: unknown) => {
          log.warn({ err: error, shard }, 'expired seats and lobbies could not be removed; trying again')
        })
      } else if (book.isEmpty()) {
        this.#books.delete(namespace_id)
      }
    }
  }

  /** Takes the shard over and reads it. `served_ms`: until when it was served before. `taken`: it is, and was empty. */
  async open(served_ms: number, taken: TakenShard | null): Promise<void> {
    if (taken === null) await this.#reload(null, [], served_ms)
    else {
      this.#begin(taken.writer, taken.takeover, { books: new Map(), snapshots: noRowSnapshots() })
      this.#acceptQueued()
    }
    if (this.#gathering.pendings.length > 0) this.#appended = this.#appendAll()
  }

  /** Commands under way finish, and their callers get the results. Commands that were not carried out throw ShardMoved. */
  async close(): Promise<void> {
    this.#is_closing = true
    if (this.#state === 'recovering') this.#state = 'closed'
    await this.#appended
    if (this.#state === 'writing') this.#state = 'closed'
    for (const pending of [...this.#queued, ...this.#gathering.pendings]) {
      if (!pending.is_settled) reject(pending, this.#moved())
    }
    for (const pending of this.#undecided) if (!pending.is_settled) reject(pending, notAvailable())
    this.#queued = []
  }

  /** Room for planned lobbies is taken in the region. A reload leaves no planned lobby: see Capacity.replace. */
  readonly #newBook = (): Book => {
    const { capacity, shard, idle_rules, reported_ms } = this.#options
    return new Book({
      onPlanned: (lobby, sign) => (sign === 1 ? capacity.take(shard, lobby) : capacity.release(shard, lobby)),
      idle_rules,
      networksOf: clientNetworks,
      reported_ms,
    })
  }

  /** Carries the command out in memory. Its caller gets the result with the batch, or now if everything is committed. */
  #accept(pending: Pending): void {
    if (!this.#execute(pending, this.#gathering)) return
    if (!this.#is_appending && !this.#gathering.has_changes) {
      settle(pending)
      return
    }
    this.#gathering.pendings.push(pending)
    if (!this.#is_appending && !this.#is_held) this.#appended = this.#appendAll()
  }

  /** Returns false when the command itself failed: it has been rejected and has changed nothing. */
  #execute(pending: Pending, batch: Batch): boolean {
    const { book_time, shard, log } = this.#options
    const { namespace_id } = pending
    const book = bookOf(this.#books, namespace_id, this.#newBook)
    this.#time_ms = Math.max(this.#time_ms, book_time.now())
    this.#env.now_ms = this.#time_ms
    const undo_count = batch.undo_count
    const change_count = batch.changeCount(namespace_id)
    try {
      for (let expiries = 0; expiries < EXPIRIES_PER_COMMAND_MAX; expiries++) {
        const change = expire(book, this.#time_ms)
        if (change === null) break
        this.#apply(book, namespace_id, change, batch)
      }
      const decision = pending.decide(book, this.#env)
      pending.decision = decision
      for (const change of 'changes' in decision ? decision.changes : (decision.noted ?? [])) {
        this.#apply(book, namespace_id, change, batch)
      }
      return true
    } catch (error) {
      batch.undoCommand(namespace_id, undo_count, change_count)
      if (error instanceof BrokenLaw) {
        const facts = { err: error, shard, namespace_id, time_ms: this.#time_ms }
        log.error(facts, 'a command would have broken a law; it has been undone')
      }
      reject(pending, error)
      return false
    }
  }

  #apply(book: Book, namespace_id: string, change: Change, batch: Batch): void {
    const { shard, capacity, ports } = this.#options
    if (change.kind === 'lobby_placed') {
      const before = { ...book.lobby(change.lobby_id) }
      capacity.release(shard, before)
      capacity.take(shard, { ...before, node_id: change.node_id })
      batch.addRoom(before, -1)
      batch.addRoom({ ...before, node_id: change.node_id }, 1)
      batch.onUndo(() => {
        capacity.release(shard, { ...before, node_id: change.node_id })
        capacity.take(shard, before)
      })
    }
    if (change.kind === 'lobby_stopped') batch.addRoom(book.lobby(change.lobby_id), -1)
    batch.apply(book, namespace_id, change)
    if (change.kind !== 'lobby_created') return
    const { lobby } = change
    batch.addRoom(lobby, 1)
    capacity.take(shard, lobby)
    batch.onUndo(() => capacity.release(shard, lobby))
    ports.take(shard, lobby)
    batch.onUndo(() => ports.undo(shard, lobby))
  }

  /** Appends batch after batch until none is left. */
  async #appendAll(): Promise<void> {
    while (this.#state === 'writing' && !this.#gathering.is_empty) {
      const batch = this.#gathering
      this.#gathering = new Batch()
      if (!batch.has_changes) {
        for (const pending of batch.pendings) settle(pending)
        this.#acceptQueued()
        continue
      }
      this.#is_appending = true
      const appending = this.#append(batch)
      this.#acceptQueued()
      const outcome = await appending
      this.#is_appending = false
      if (outcome.kind !== 'committed') await this.#recover(batch, outcome)
    }
  }

  /** Appends a batch. The rows are copied at once: memory is at this batch then, and not ahead of it. */
  async #append(batch: Batch): Promise<AppendOutcome> {
    const { shard, pool, metrics, projection, capacity, onCommit } = this.#options
    const snapshots = noRowSnapshots()
    for (const [namespace_id, affected] of batch.affected) {
      takeSnapshots(bookOf(this.#books, namespace_id, this.#newBook), namespace_id, affected, snapshots)
    }
    const entries = batch.entries()
    const ms = this.#time_ms
    const payload = encodePage({ format: 1, ms, entries })
    const since = performance.now()
    const row = { shard, seq: this.#seq + 1, writer: this.#writer, payload }
    const room = batch.room.sums()
    const ports = claimsOf(entries)
    const claims = { ports, now_ms: ms, room, placesOf: capacity.placesOf }
    const outcome = await append(pool, row, room.length === 0 && ports.length === 0 ? null : claims)
    metrics.append_seconds.observe({ outcome: outcome.kind }, (performance.now() - since) / 1_000)
    metrics.batch_commands.observe(batch.pendings.length)
    if (outcome.kind !== 'committed') return outcome
    this.#seq += 1
    this.#durable_ms = ms
    projection.add(shard, this.#seq, snapshots, wakesOfChanges(entries, snapshots.lobbies))
    for (const { namespace_id, changes } of entries) {
      this.#releaseStopped(namespace_id, changes)
      onCommit(namespace_id, changes)
    }
    for (const pending of batch.pendings) settle(pending)
    return outcome
  }

  /** Releases the room and the ports of lobbies whose end is durable: see capacity.ts. */
  #releaseStopped(namespace_id: string, changes: readonly Change[]): void {
    const { shard, capacity, ports, onPortsUnused } = this.#options
    for (const change of changes) {
      if (change.kind !== 'lobby_stopped') continue
      const lobby = this.#books.get(namespace_id)?.lobbies.get(change.lobby_id)
      if (lobby === undefined) continue
      capacity.release(shard, lobby)
      ports.retire(shard, lobby)
      if (lobby.edge_ports.length > 0) onPortsUnused(lobby.lobby_id, lobby.stop_ms ?? this.#durable_ms)
    }
  }

  /** Fills the batch from the queue, so that a new command does not overtake the queued ones. */
  #acceptQueued(): void {
    const batch = this.#gathering
    while (this.#queued.length > 0 && batch.pendings.length < BATCH_COMMANDS_MAX) {
      for (const pending of this.#queued.splice(0, BATCH_COMMANDS_MAX - batch.pendings.length)) {
        if (!pending.is_settled && this.#execute(pending, batch)) batch.pendings.push(pending)
      }
    }
  }

  async #recover(batch: Batch, outcome: FailedAppend): Promise<void> {
    const { shard, log } = this.#options
    if (outcome.kind === 'deposed') return this.#depose([...batch.pendings, ...this.#gathering.pendings])
    this.#state = 'recovering'
    const later = this.#gathering
    this.#gathering = new Batch()
    log.warn({ err: outcome.error, shard, outcome: outcome.kind }, 'an append to the journal did not succeed')
    if (outcome.kind === 'unknown') return this.#reload(batch, later.pendings)
    later.undoAll()
    batch.undoAll()
    if (outcome.kind === 'claim_refused') await this.#options.onClaimRefused()
    const refused_alone = outcome.kind === 'failed' && batch.pendings.length === 1 ? outcome.error : null
    await this.#retryOneByOne([...batch.pendings, ...later.pendings], refused_alone)
  }

  /**
   * The database refused the batch because of one command; the others must still succeed. `first_error`: the first command
   * was alone in the batch, so it is the one.
   */
  async #retryOneByOne(pendings: Pending[], first_error: unknown): Promise<void> {
    const { shard, log } = this.#options
    let conflicts = 0
    for (const [index, pending] of pendings.entries()) {
      if (index === 0 && first_error !== null) {
        reject(pending, refusalOf(first_error))
        continue
      }
      if (this.#hasWaitedTooLong(pending)) {
        reject(pending, notAvailable())
        continue
      }
      const alone = new Batch()
      if (!this.#execute(pending, alone)) continue
      if (!alone.has_changes) {
        settle(pending)
        continue
      }
      alone.pendings.push(pending)
      const outcome = await this.#append(alone)
      if (outcome.kind === 'committed') continue
      const rest = pendings.slice(index + 1)
      if (outcome.kind === 'deposed') return this.#depose([pending, ...rest])
      if (outcome.kind === 'unknown') return this.#reload(alone, rest)
      alone.undoAll()
      if (outcome.kind === 'claim_refused' && conflicts++ < CLAIM_CONFLICTS_MAX) {
        // It decides again, after all other commands.
        pendings.push(pending)
        await this.#options.onClaimRefused()
        continue
      }
      log.error({ err: outcome.error, shard, outcome: outcome.kind }, 'the journal refuses a command')
      reject(pending, outcome.kind === 'claim_refused' ? notAvailable() : refusalOf(outcome.error))
    }
    if (this.#state === 'recovering') this.#state = 'writing'
    this.#acceptQueued()
  }

  /** Takes over, finds out whether the batch of unknown outcome committed, and reads everything again. */
  async #reload(
    unknown: Batch | null,
    later: Pending[],
    served_ms = this.#options.book_time.servedMs(),
  ): Promise<void> {
    const { pool, shard, log, book_time } = this.#options
    this.#queued = [...later, ...this.#queued]
    this.#undecided = unknown?.pendings ?? []
    const lost = { seq: this.#seq + 1, writer: this.#writer }
    const mine = unknown === null ? null : { seq: this.#seq, writers: new Set([this.#writer]) }
    let fresh = ''
    let takeover: Takeover | null = null
    while (this.#state === 'recovering') {
      try {
        if (takeover === null) {
          fresh = newId(book_time.now())
          mine?.writers.add(fresh)
          const times = { now_ms: Math.max(this.#time_ms, book_time.now()), served_ms }
          takeover = await takeOver(pool, shard, fresh, times, mine)
        }
        if (this.#undecided.length > 0) await this.#settleUndecided(lost)
        if (takeover === null) return this.#depose([])
        await this.#load(fresh, takeover)
      } catch (error) {
        log.warn({ err: error, shard }, 'the journal cannot be read; trying again')
        await new Promise((resolve) => setTimeout(resolve, RECOVER_PAUSE_MS))
      }
    }
    if (this.#state === 'writing') this.#acceptQueued()
  }

  /** Reads the shard after a takeover, and writes from then on. */
  async #load(writer: string, takeover: Takeover): Promise<void> {
    const { pool, shard, log, capacity } = this.#options
    const loaded = await loadShard(pool, shard, takeover, log, this.#newBook)
    // It may have been closed meanwhile.
    if (this.#state !== 'recovering') return
    this.#books = loaded.books
    await replaceClaims(pool, shard, loaded.books.values(), takeover.ms)
    await replaceRoom(pool, { shard, seq: takeover.seq }, loaded.books.values(), capacity.placesOf)
    if (this.#state === 'recovering') this.#begin(writer, takeover, loaded)
  }

  #begin(writer: string, takeover: Takeover, { books, snapshots }: LoadedShard): void {
    const { shard, capacity, ports, metrics, projection, book_time, onReload } = this.#options
    this.#books = books
    capacity.replace(shard, books.values())
    ports.replace(shard, books.values())
    this.#writer = writer
    this.#seq = takeover.seq
    this.#time_ms = this.#durable_ms = takeover.ms
    book_time.reach(takeover.ms)
    metrics.shard_recoveries.inc()
    projection.reset(shard)
    projection.add(shard, this.#seq, snapshots, wakesOfRows(snapshots.lobbies.values()))
    this.#state = 'writing'
    onReload()
  }

  /** After a takeover the outcome cannot change any more: the callers get their results, or the commands run again. */
  async #settleUndecided(lost: { seq: number; writer: string }): Promise<void> {
    const { pool, shard } = this.#options
    if (await didCommit(pool, { shard, ...lost })) this.#undecided.forEach(settle)
    else this.#queued = [...this.#undecided, ...this.#queued]
    this.#undecided = []
  }

  #depose(pendings: readonly Pending[]): void {
    const { shard, log, onDeposed } = this.#options
    this.#state = 'deposed'
    log.warn({ shard }, 'another writer has taken over this shard')
    // What was not appended by now never will be.
    for (const pending of [...pendings, ...this.#queued]) if (!pending.is_settled) reject(pending, this.#moved())
    this.#queued = []
    this.#gathering = new Batch()
    onDeposed(this)
  }

  #moved(): ShardMoved {
    return new ShardMoved(this.#options.shard)
  }

  #hasWaitedTooLong(pending: Pending): boolean {
    return pending.since_ms + RECOVERY_WAIT_MS_MAX <= this.#options.elapsed()
  }
}

function claimsOf(entries: readonly { changes: readonly Change[] }[]): PortClaim[] {
  const claims: PortClaim[] = []
  for (const { changes } of entries) {
    for (const change of changes) {
      if (change.kind !== 'lobby_created') continue
      const { lobby_id, edge_ports } = change.lobby
      for (const { transport, port } of edge_ports) claims.push({ transport, port, lobby_id })
    }
  }
  return claims
}

function settle(pending: Pending): void {
  pending.is_settled = true
  pending.resolve(pending.decision as Decision<never>)
}

function reject(pending: Pending, error: unknown): void {
  pending.is_settled = true
  pending.reject(error)
}

function notAvailable(): ApiError {
  return new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
}

/** A refusal of the row itself by PostgreSQL is a fault of this program; anything else is an outage. */
function refusalOf(error: unknown): unknown {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^(0A|22|23|42|54)...$/.test(code) ? error : notAvailable()
}
