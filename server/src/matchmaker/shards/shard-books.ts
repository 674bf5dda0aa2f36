// The books of one shard in memory, their time, and what their lobbies take of nodes and ports. A command is carried out here
// at once, and can be undone until its batch is durable. This file knows no database and no waiting.
import type { Logger } from 'pino'
import { clientNetworks } from '../../addresses/client-networks.ts'
import type { Change } from '../../journal/changes.ts'
import type { Decision, Env } from '../book/commands.ts'
import { expire } from '../book/decide.ts'
import { forget } from '../book/evolve.ts'
import type { IdleRules } from '../book/idle.ts'
import { BrokenLaw } from '../book/laws.ts'
import { advanceMatching } from '../book/matching/find-match.ts'
import type { ScheduleRules } from '../book/schedule-rules.ts'
import { Book } from '../book/state.ts'
import { noRowSnapshots, type RowSnapshots, takeSnapshots } from '../projection/affected-rows.ts'
import { bookOf } from '../projection/load.ts'
import type { Batch } from './batch.ts'
import type { BookTime } from './book-time.ts'
import type { Capacity } from './capacity.ts'
import type { Decide } from './pending.ts'
import type { PortPool } from './port-pool.ts'

/** Ended seats and lobbies that one command removes first. */
const EXPIRIES_PER_COMMAND_MAX = 1_000
/** Matches that one command makes first. */
const MATCHES_PER_COMMAND_MAX = 100

export type ShardBooksOptions = {
  shard: number
  capacity: Capacity
  ports: PortPool
  book_time: BookTime
  /** For a book whose own rules have not been set. */
  idle_rules: IdleRules
  /** What schedules say of each namespace, for a new book. */
  schedule_rules?: ReadonlyMap<string, ScheduleRules> | undefined
  /** Every edge has reported up to this time, for a book whose own time has not been set. */
  reported_ms: number
  log: Logger
  /** The end of a lobby with ports is durable. `stop_ms`: in book time. */
  onPortsUnused: (lobby_id: string, stop_ms: number) => void
}

export class ShardBooks {
  readonly #options: ShardBooksOptions
  readonly #env: Env
  #books = new Map<string, Book>()
  #time_ms = 0
  /** The time of the last row: everything that happened until then is durable. */
  #durable_ms = 0

  constructor(options: ShardBooksOptions) {
    this.#options = options
    const { capacity, ports } = options
    this.#env = {
      now_ms: 0,
      chooseNode: (plan, reserved) => capacity.choose(plan, reserved),
      choosePorts: ports.choose,
    }
  }

  /** The time of the last command. It never runs back. */
  get time_ms(): number {
    return this.#time_ms
  }

  namespaceIds(): string[] {
    return [...this.#books.keys()]
  }

  book(namespace_id: string): Book | undefined {
    return this.#books.get(namespace_id)
  }

  /** Room for planned lobbies is taken in the region. A reload leaves no planned lobby: see Capacity.replace. */
  readonly newBook = (namespace_id: string): Book => {
    const { capacity, shard, idle_rules, schedule_rules, reported_ms } = this.#options
    return new Book({
      onPlanned: (lobby, sign) => (sign === 1 ? capacity.take(shard, lobby) : capacity.release(shard, lobby)),
      idle_rules,
      schedule_rules: schedule_rules?.get(namespace_id) ?? null,
      networksOf: clientNetworks,
      reported_ms,
    })
  }

  /** Replaces all books by those that were read after a takeover. `ms`: the time of the takeover row. */
  replace(books: Map<string, Book>, ms: number): void {
    const { shard, capacity, ports, book_time } = this.#options
    this.#books = books
    capacity.replace(shard, books.values())
    ports.replace(shard, books.values())
    this.#time_ms = this.#durable_ms = ms
    book_time.reach(ms)
  }

  /** Carries the command out, after the expiries that are due. When it throws, it has changed nothing. */
  execute<T>(namespace_id: string, decide: Decide<T>, batch: Batch): Decision<T> {
    const { book_time, shard, log } = this.#options
    const book = bookOf(this.#books, namespace_id, this.newBook)
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
      if (book.matching.dueMs() <= this.#time_ms) this.#advanceMatching(book, namespace_id, batch)
      const decision = decide(book, this.#env)
      for (const change of 'changes' in decision ? decision.changes : (decision.noted ?? [])) {
        this.#apply(book, namespace_id, change, batch)
      }
      return decision
    } catch (error) {
      batch.undoCommand(namespace_id, undo_count, change_count)
      if (error instanceof BrokenLaw) {
        const facts = { err: error, shard, namespace_id, time_ms: this.#time_ms }
        log.error(facts, 'a command would have broken a law; it has been undone')
      }
      throw error
    }
  }

  /** Copies of the rows that a batch has changed, as the books have them now. */
  snapshotsOf(batch: Batch): RowSnapshots {
    const snapshots = noRowSnapshots()
    for (const [namespace_id, affected] of batch.affected) {
      takeSnapshots(bookOf(this.#books, namespace_id, this.newBook), namespace_id, affected, snapshots)
    }
    return snapshots
  }

  /** Everything that happened until `ms` is durable. */
  setDurable(ms: number): void {
    this.#durable_ms = ms
  }

  /** Moves the time of books that have nothing to append. */
  advance(now_ms: number): void {
    this.#time_ms = this.#durable_ms = Math.max(this.#time_ms, now_ms)
  }

  /** Forgets what is over, and books that are empty. Returns the namespaces with something that is due. */
  forgetEnded(now_ms: number): string[] {
    const due: string[] = []
    for (const [namespace_id, book] of this.#books) {
      forget(book, this.#durable_ms)
      const due_ms = book.nextDueMs()
      if (due_ms !== null && due_ms <= now_ms) due.push(namespace_id)
      else if (book.isEmpty()) this.#books.delete(namespace_id)
    }
    return due
  }

  /** Whether something is due by then. */
  isDue(ms: number): boolean {
    return this.#books.values().some((book) => (book.nextDueMs() ?? Number.POSITIVE_INFINITY) <= ms)
  }

  /** Releases the room and the ports of lobbies whose end is durable: see capacity.ts. */
  releaseStopped(namespace_id: string, changes: readonly Change[]): void {
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

  /** Matches what time or free seats have made possible. The rest waits for the next command. */
  #advanceMatching(book: Book, namespace_id: string, batch: Batch): void {
    for (let matches = 0; matches < MATCHES_PER_COMMAND_MAX; matches++) {
      const changes = advanceMatching(book, this.#env)
      if (changes === null) return
      for (const change of changes) this.#apply(book, namespace_id, change, batch)
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
}
