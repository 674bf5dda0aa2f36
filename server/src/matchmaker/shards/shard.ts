// One shard: the commands on its books (shard-books.ts), and the batches in which their changes become durable
// (shard-journal.ts). A command is carried out in memory at once, and its caller gets the result when its batch has
// committed. While one append is in flight, the next batch gathers. An idle shard appends at once: there is no timer.
//
// A shard is writing; or recovering, when an append failed or its outcome is unknown; or deposed, when another writer has
// taken over; or closed. While it recovers, commands are queued for RECOVERY_WAIT_MS_MAX at most. A deposed or closed shard
// never writes again. A command that it has not carried out throws ShardMoved, and may be sent to the next holder.
import type { Change } from '../../journal/changes.ts'
import type { Decision } from '../book/commands.ts'
import type { Book } from '../book/state.ts'
import type { RowSnapshots } from '../projection/affected-rows.ts'
import { type LoadedShard, loadShard } from '../projection/load.ts'
import { Batch } from './batch.ts'
import type { TakenShard } from './empty-shards.ts'
import type { AppendOutcome } from './fence.ts'
import { type Decide, notAvailable, type Pending, refusalOf, reject, settle } from './pending.ts'
import { replaceClaims } from './port-claims.ts'
import { replaceRoom } from './room-claims.ts'
import { ShardBooks, type ShardBooksOptions } from './shard-books.ts'
import { ShardJournal, type ShardJournalOptions } from './shard-journal.ts'
import { ShardMoved } from './shard-moved.ts'

/** Commands of one journal row; further commands wait for the next row. */
const BATCH_COMMANDS_MAX = 1_024
/** Commands that may wait while the shard cannot write. */
const QUEUED_COMMANDS_MAX = 20_000
/** Long enough that a database restart removes no connected player; short enough for a caller to wait. */
const RECOVERY_WAIT_MS_MAX = 5_000
/** How often commands decide again because their ports or their room are taken elsewhere. */
const CLAIM_CONFLICTS_MAX = 16
/** Between two tries to read the journal. */
const RECOVER_PAUSE_MS = 100

export type ShardState = 'recovering' | 'writing' | 'deposed' | 'closed'

export type ShardOptions = ShardBooksOptions &
  Omit<ShardJournalOptions, 'placesOf'> & {
    elapsed: () => number
    /** Called in order with the changes that have become durable. */
    onCommit: (namespace_id: string, changes: readonly Change[]) => void
    /** The books have been read again: a caller that waits for a change must read the book. */
    onReload: () => void
    onDeposed: (shard: Shard) => void
    /** Lobbies of another process have a port or the room that was chosen. Resolves when their use has been read. */
    onClaimRefused: () => Promise<void>
  }

type FailedAppend = Exclude<AppendOutcome, { kind: 'committed' }>

export class Shard {
  readonly #options: ShardOptions
  readonly #books: ShardBooks
  readonly #journal: ShardJournal
  #state: ShardState = 'recovering'
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
    this.#books = new ShardBooks(options)
    this.#journal = new ShardJournal({ ...options, placesOf: options.capacity.placesOf })
  }

  get state(): ShardState {
    return this.#state
  }

  /** The namespaces that have a book. */
  namespaceIds(): string[] {
    return this.#books.namespaceIds()
  }

  /** For reads that need not be durable. Undefined when the namespace has no book. */
  book(namespace_id: string): Book | undefined {
    return this.#books.book(namespace_id)
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
    if (!this.#is_appending && !this.#gathering.has_changes) this.#books.advance(now_ms)
    for (const namespace_id of this.#books.forgetEnded(now_ms)) {
      this.run(namespace_id, () => ({ changes: [], result: null })).catch((error: unknown) => {
        log.warn({ err: error, shard }, 'expired seats and lobbies could not be removed; trying again')
      })
    }
  }

  /** No command waits, and nothing is due before this time. */
  isAtRest(until_ms: number): boolean {
    return this.#queued.length + this.#undecided.length === 0 && !this.#books.isDue(until_ms)
  }

  /** Takes the shard over and reads it. `served_ms`: until when it was served before. `taken`: it is, and was empty. */
  async open(served_ms: number, taken: TakenShard | null): Promise<void> {
    if (taken === null) await this.#reload(null, [], served_ms)
    else {
      this.#begin(taken, new Map(), null)
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
    try {
      pending.decision = this.#books.execute(pending.namespace_id, pending.decide, batch)
      return true
    } catch (error) {
      reject(pending, error)
      return false
    }
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
    const { metrics, onCommit } = this.#options
    const ms = this.#books.time_ms
    const entries = batch.entries()
    const snapshots = this.#books.snapshotsOf(batch)
    const outcome = await this.#journal.append({ ms, entries, room: batch.room.sums(), snapshots })
    metrics.batch_commands.observe(batch.pendings.length)
    if (outcome.kind !== 'committed') return outcome
    this.#books.setDurable(ms)
    for (const { namespace_id, changes } of entries) {
      this.#books.releaseStopped(namespace_id, changes)
      onCommit(namespace_id, changes)
    }
    for (const pending of batch.pendings) settle(pending)
    return outcome
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
    const { shard, log, book_time } = this.#options
    this.#queued = [...later, ...this.#queued]
    this.#undecided = unknown?.pendings ?? []
    const takeover = this.#journal.takeover(unknown !== null)
    let taken: TakenShard | null = null
    while (this.#state === 'recovering') {
      try {
        taken ??= await takeover.attempt({ now_ms: Math.max(this.#books.time_ms, book_time.now()), served_ms })
        if (this.#undecided.length > 0) this.#endUndecided(await takeover.hasCommitted())
        if (taken === null) return this.#depose([])
        await this.#load(taken)
      } catch (error) {
        log.warn({ err: error, shard }, 'the journal cannot be read; trying again')
        await new Promise((resolve) => setTimeout(resolve, RECOVER_PAUSE_MS))
      }
    }
    if (this.#state === 'writing') this.#acceptQueued()
  }

  /** After a takeover the outcome cannot change any more: the callers get their results, or the commands run again. */
  #endUndecided(has_committed: boolean): void {
    if (has_committed) this.#undecided.forEach(settle)
    else this.#queued = [...this.#undecided, ...this.#queued]
    this.#undecided = []
  }

  /** Reads the shard after a takeover, and writes from then on. */
  async #load(taken: TakenShard): Promise<void> {
    const { pool, shard, log, capacity } = this.#options
    const { seq, ms } = taken.takeover
    const loaded = await loadShard(pool, shard, taken.takeover, log, this.#books.newBook)
    // It may have been closed meanwhile.
    if (this.#state !== 'recovering') return
    await replaceClaims(pool, shard, loaded.books.values(), ms)
    await replaceRoom(pool, { shard, seq }, loaded.books.values(), capacity.placesOf)
    if (this.#state === 'recovering') this.#begin(taken, loaded.books, loaded.snapshots)
  }

  /** `snapshots`: see ShardJournal.begin. */
  #begin(taken: TakenShard, books: LoadedShard['books'], snapshots: RowSnapshots | null): void {
    const { metrics, onReload } = this.#options
    this.#books.replace(books, taken.takeover.ms)
    this.#journal.begin(taken, snapshots)
    metrics.shard_recoveries.inc()
    this.#state = 'writing'
    onReload()
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
