// One shard: its books in memory, and the batches in which their changes become durable. A command is carried out in
// memory at once and answered when its batch has committed; while one append is under way the next batch gathers. An
// idle shard appends at once: there is no timer.
//
// A shard is writing; or recovering, when an append failed or its outcome is not known: then commands are held, for
// HOLD_MS at most, until it writes again; or deposed, when another writer has taken over: then it is done.
import { ApiError } from '@muster/contract'
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import { clientNetworks } from '../../addresses/client-networks.ts'
import { newId } from '../../ids.ts'
import type { Change } from '../../journal/changes.ts'
import { encodePage } from '../../journal/pages.ts'
import type { Metrics } from '../../observe/metrics.ts'
import type { Decision, Env, Undo } from '../book/commands.ts'
import { expire } from '../book/decide.ts'
import { apply, forget } from '../book/evolve.ts'
import type { IdleRules } from '../book/idle.ts'
import { BrokenLaw } from '../book/laws.ts'
import { Book } from '../book/state.ts'
import { imagesOf, touchedBy } from '../projection/affected-rows.ts'
import { bookOf, loadShard } from '../projection/load.ts'
import type { Projection } from '../projection/projection.ts'
import { emptyImages } from '../projection/rows.ts'
import type { BookTime } from './book-time.ts'
import type { Capacity } from './capacity.ts'
import { type AppendOutcome, append, didCommit, type Takeover, takeOver } from './fence.ts'
import type { PortPool } from './port-pool.ts'

/** Commands of one journal row; what comes beyond waits for the next. */
const BATCH_COMMANDS_MAX = 1_024
/** Commands that may wait while the shard cannot write. */
const HELD_COMMANDS_MAX = 20_000
/** A connected player must not be thrown out for a database restart; but nobody waits for ever. */
const HOLD_MS = 5_000
const EXPIRIES_PER_COMMAND_MAX = 1_000
const RECOVER_PAUSE_MS = 100

/** `env` is good for this one call. */
export type Decide<T> = (book: Book, env: Env) => Decision<T>

export type ShardState = 'recovering' | 'writing' | 'deposed' | 'closed'

export type Shard = {
  /**
   * Carries out a command. Resolves when everything that the answer rests on is durable, refusals included. Throws
   * API_NOT_AVAILABLE when the shard cannot write for too long, and what `decide` throws.
   */
  run: <T>(namespace_id: string, decide: Decide<T>) => Promise<Decision<T>>
  /** Removes what time has ended, and rejects what was held for too long. */
  tick: () => void
  /** A look at a book, for what need not be durable. Undefined when the namespace has none. */
  book: (namespace_id: string) => Book | undefined
  /** The namespaces that have a book. */
  namespaceIds: () => string[]
  state: () => ShardState
  /** Takes the shard over and reads it. */
  open: () => Promise<void>
  /** Rejects what is still held; what is being appended may finish. */
  close: () => Promise<void>
}

export type ShardOptions = {
  shard: number
  pool: Pool
  projection: Projection
  capacity: Capacity
  ports: PortPool
  book_time: BookTime
  elapsed: () => number
  /** Of a book that has not been told its own. */
  idle_rules: IdleRules
  /** Until when every edge has reported, for a book that has not been told. */
  reported_ms: number
  log: Logger
  metrics: Metrics
  /** Called in order with what has become durable. */
  onCommit: (namespace_id: string, changes: readonly Change[]) => void
  /** The books have been read anew: whoever waits for a change must look again. */
  onReload: () => void
  onDeposed: () => void
}

type Pending = {
  namespace_id: string
  decide: Decide<unknown>
  /** By the monotonic clock. */
  since_ms: number
  decision: Decision<unknown> | null
  /** Its caller has been answered: it must not be carried out (again). */
  is_answered: boolean
  resolve: (decision: Decision<never>) => void
  reject: (error: unknown) => void
}

type Batch = { pendings: Pending[]; entries: Map<string, Change[]>; touched: Map<string, Set<string>>; undos: Undo[] }

const newBatch = (): Batch => ({ pendings: [], entries: new Map(), touched: new Map(), undos: [] })

export function createShard(options: ShardOptions): Shard {
  const { shard, pool, projection, capacity, ports, book_time, elapsed, log, metrics } = options
  let state: ShardState = 'recovering'
  let books = new Map<string, Book>()
  let writer = ''
  let seq = 0
  let time_ms = 0
  /** The time of the last row: all that happened before it is durable. */
  let durable_ms = 0
  let gathering = newBatch()
  let flying: Batch | null = null
  let held: Pending[] = []
  /** Commands of a batch of which nobody knows yet whether it committed. */
  let lost: Pending[] = []
  let idle = Promise.resolve()

  /** One for all commands, so that a command allocates none. */
  const env: Env = { now_ms: 0, hasRoom: capacity.hasRoom, choosePorts: ports.choose }

  /** What its planned lobbies will need is kept for them. After a reload none of them are left: see Capacity.replace. */
  const newBook = (): Book =>
    new Book({
      onPlanned: (lobby, sign) => (sign === 1 ? capacity.take(shard, lobby) : capacity.release(shard, lobby)),
      idle_rules: options.idle_rules,
      networksOf: clientNetworks,
      reported_ms: options.reported_ms,
    })

  function run<T>(namespace_id: string, decide: Decide<T>): Promise<Decision<T>> {
    return new Promise((resolve, reject) => {
      const pending: Pending = {
        namespace_id,
        decide,
        since_ms: elapsed(),
        decision: null,
        is_answered: false,
        resolve,
        reject,
      }
      if (state === 'deposed' || state === 'closed' || held.length >= HELD_COMMANDS_MAX) return reject(notAvailable())
      if (state === 'recovering' || gathering.pendings.length >= BATCH_COMMANDS_MAX) held.push(pending)
      else admit(pending)
    })
  }

  /** Carries the command out in memory; its answer leaves with the batch, or now when nothing is uncommitted. */
  function admit(pending: Pending): void {
    if (!execute(pending, gathering)) return
    if (flying === null && gathering.entries.size === 0) {
      settle(pending)
      return
    }
    gathering.pendings.push(pending)
    if (flying === null) idle = fly()
  }

  /** Answers false when the command itself failed: it has been rejected and has changed nothing. */
  function execute(pending: Pending, batch: Batch): boolean {
    const book = bookOf(books, pending.namespace_id, newBook)
    time_ms = Math.max(time_ms, book_time.now())
    env.now_ms = time_ms
    const mark = batch.undos.length
    const entry = batch.entries.get(pending.namespace_id)?.length ?? 0
    try {
      for (let expiries = 0; expiries < EXPIRIES_PER_COMMAND_MAX; expiries++) {
        const change = expire(book, time_ms)
        if (change === null) break
        make(book, pending.namespace_id, change, batch)
      }
      pending.decision = pending.decide(book, env)
      const { decision } = pending
      for (const change of 'changes' in decision ? decision.changes : (decision.noted ?? [])) {
        make(book, pending.namespace_id, change, batch)
      }
      return true
    } catch (error) {
      undo(batch, mark)
      const changes = batch.entries.get(pending.namespace_id)
      if (changes !== undefined) changes.length = entry
      if (changes?.length === 0) batch.entries.delete(pending.namespace_id)
      if (error instanceof BrokenLaw) {
        const { namespace_id } = pending
        log.error({ err: error, shard, namespace_id, time_ms }, 'a command would have broken a law; it has been undone')
      }
      reject(pending, error)
      return false
    }
  }

  function make(book: Book, namespace_id: string, change: Change, batch: Batch): void {
    const ids = touchedBy(book, change)
    batch.undos.push(apply(book, change))
    if (change.kind === 'lobby_created') {
      const { lobby } = change
      capacity.take(shard, lobby)
      batch.undos.push(() => capacity.release(shard, lobby))
      ports.take(shard, lobby)
      batch.undos.push(() => ports.undo(shard, lobby))
    }
    const changes = batch.entries.get(namespace_id)
    if (changes === undefined) batch.entries.set(namespace_id, [change])
    else changes.push(change)
    const touched = batch.touched.get(namespace_id)
    if (touched === undefined) batch.touched.set(namespace_id, new Set(ids))
    else for (const id of ids) touched.add(id)
  }

  /** Appends batch after batch until none is left. */
  async function fly(): Promise<void> {
    while (state === 'writing' && (gathering.pendings.length > 0 || gathering.entries.size > 0)) {
      const batch = gathering
      gathering = newBatch()
      if (batch.entries.size === 0) {
        for (const pending of batch.pendings) settle(pending)
        admitHeld()
        continue
      }
      flying = batch
      const writing = write(batch)
      admitHeld()
      const outcome = await writing
      flying = null
      if (outcome.kind !== 'committed') await recover(batch, outcome)
    }
  }

  /** Appends a batch. The images are taken at once: memory is at this batch then, and not ahead of it. */
  async function write(batch: Batch): Promise<AppendOutcome> {
    const images = emptyImages()
    for (const [namespace_id, ids] of batch.touched) {
      imagesOf(bookOf(books, namespace_id, newBook), namespace_id, shard, ids, images)
    }
    const entries = [...batch.entries].map(([namespace_id, changes]) => ({ namespace_id, changes }))
    const ms = time_ms
    const payload = encodePage({ format: 1, ms, entries })
    const since = performance.now()
    const outcome = await append(pool, { shard, seq: seq + 1, writer, payload })
    metrics.append_seconds.observe({ outcome: outcome.kind }, (performance.now() - since) / 1_000)
    metrics.batch_commands.observe(batch.pendings.length)
    if (outcome.kind === 'committed') {
      seq += 1
      durable_ms = ms
      projection.note(
        shard,
        seq,
        images,
        entries.some(({ changes }) => changes.some(isUrgent)),
      )
      for (const { namespace_id, changes } of entries) {
        giveBackRoom(namespace_id, changes)
        options.onCommit(namespace_id, changes)
      }
      for (const pending of batch.pendings) settle(pending)
    }
    return outcome
  }

  /** Only of ends that are durable: see capacity.ts. */
  function giveBackRoom(namespace_id: string, changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind !== 'lobby_stopped') continue
      const lobby = books.get(namespace_id)?.lobbies.get(change.lobby_id)
      if (lobby === undefined) continue
      capacity.release(shard, lobby)
      ports.retire(shard, lobby)
    }
  }

  function settle(pending: Pending): void {
    pending.is_answered = true
    pending.resolve(pending.decision as Decision<never>)
  }

  function reject(pending: Pending, error: unknown): void {
    pending.is_answered = true
    pending.reject(error)
  }

  /** Until the batch is full or nobody is held: so whoever comes next does not come before those who wait. */
  function admitHeld(): void {
    while (held.length > 0 && gathering.pendings.length < BATCH_COMMANDS_MAX) {
      for (const pending of held.splice(0, BATCH_COMMANDS_MAX - gathering.pendings.length)) {
        if (!pending.is_answered && execute(pending, gathering)) gathering.pendings.push(pending)
      }
    }
  }

  async function recover(batch: Batch, outcome: Exclude<AppendOutcome, { kind: 'committed' }>): Promise<void> {
    if (outcome.kind === 'deposed') return depose([...batch.pendings, ...gathering.pendings])
    state = 'recovering'
    const later = gathering
    gathering = newBatch()
    log.warn({ err: outcome.error, shard, outcome: outcome.kind }, 'an append to the journal did not succeed')
    if (outcome.kind === 'failed') {
      undo(later, 0)
      undo(batch, 0)
      await retryOneByOne([...batch.pendings, ...later.pendings], batch.pendings.length === 1 ? outcome.error : null)
    } else {
      await reload({ seq: seq + 1, writer, batch }, later.pendings)
    }
  }

  /** The batch was refused: whichever command is to blame, the others must not suffer. */
  async function retryOneByOne(pendings: Pending[], blame_first: unknown): Promise<void> {
    for (const [index, pending] of pendings.entries()) {
      if (index === 0 && blame_first !== null) {
        reject(pending, refusalOf(blame_first))
        continue
      }
      if (isHeldTooLong(pending)) {
        reject(pending, notAvailable())
        continue
      }
      const alone = newBatch()
      if (!execute(pending, alone)) continue
      if (alone.entries.size === 0) {
        settle(pending)
        continue
      }
      alone.pendings.push(pending)
      const outcome = await write(alone)
      if (outcome.kind === 'committed') continue
      const rest = pendings.slice(index + 1)
      if (outcome.kind === 'deposed') return depose([pending, ...rest])
      if (outcome.kind === 'unknown') return reload({ seq: seq + 1, writer, batch: alone }, rest)
      undo(alone, 0)
      log.error({ err: outcome.error, shard }, 'the journal refuses a command')
      reject(pending, refusalOf(outcome.error))
    }
    if (state === 'recovering') state = 'writing'
    admitHeld()
  }

  /** Nobody knows whether the unknown batch committed: take over, ask, and read everything anew. */
  async function reload(
    unknown: { seq: number; writer: string; batch: Batch } | null,
    later: Pending[],
  ): Promise<void> {
    held = [...later, ...held]
    lost = unknown?.batch.pendings ?? []
    const mine = unknown === null ? null : { seq, writers: new Set([writer]) }
    const served_ms = book_time.servedMs()
    let fresh = ''
    let takeover: Takeover | null = null
    while (state === 'recovering') {
      try {
        if (takeover === null) {
          fresh = newId(book_time.now())
          mine?.writers.add(fresh)
          takeover = await takeOver(pool, shard, fresh, { now_ms: Math.max(time_ms, book_time.now()), served_ms }, mine)
        }
        if (unknown !== null && lost.length > 0) await settleLost(unknown)
        if (takeover === null) return depose([])
        const loaded = await loadShard(pool, shard, takeover, log, newBook)
        if (!isRecovering()) return
        books = loaded.books
        capacity.replace(shard, books.values())
        ports.replace(shard, books.values())
        writer = fresh
        seq = takeover.seq
        time_ms = durable_ms = takeover.ms
        metrics.shard_recoveries.inc()
        projection.reset(shard)
        projection.note(shard, seq, loaded.images, loaded.images.lobbies.size > 0)
        state = 'writing'
        options.onReload()
      } catch (error) {
        log.warn({ err: error, shard }, 'the journal cannot be read; trying again')
        await new Promise((resolve) => setTimeout(resolve, RECOVER_PAUSE_MS))
      }
    }
    if (state === 'writing') admitHeld()
  }

  /** After a takeover the fate of the lost batch is sealed: its callers are answered, or it is carried out again. */
  async function settleLost(unknown: { seq: number; writer: string }): Promise<void> {
    if (await didCommit(pool, { shard, seq: unknown.seq, writer: unknown.writer })) lost.forEach(settle)
    else held = [...lost, ...held]
    lost = []
  }

  function depose(pendings: readonly Pending[]): void {
    state = 'deposed'
    log.warn({ shard }, 'another writer has taken this shard over')
    for (const pending of [...pendings, ...held]) reject(pending, notAvailable())
    held = []
    gathering = newBatch()
    options.onDeposed()
  }

  function isHeldTooLong(pending: Pending): boolean {
    return pending.since_ms + HOLD_MS <= elapsed()
  }

  /** What a wait may have changed: the compiler believes otherwise. */
  function isRecovering(): boolean {
    return state === 'recovering'
  }

  function tick(): void {
    for (const pending of [...lost, ...held]) {
      if (!pending.is_answered && isHeldTooLong(pending)) reject(pending, notAvailable())
    }
    held = held.filter((pending) => !pending.is_answered)
    if (state !== 'writing') return
    const now_ms = book_time.now()
    if (flying === null && gathering.entries.size === 0) time_ms = durable_ms = Math.max(time_ms, now_ms)
    for (const [namespace_id, book] of books) {
      forget(book, durable_ms)
      const due_ms = book.nextDueMs()
      if (due_ms !== null && due_ms <= now_ms) {
        run(namespace_id, () => ({ changes: [], result: null })).catch((error: unknown) => {
          log.warn({ err: error, shard }, 'what is due could not be removed; trying again')
        })
      } else if (book.isEmpty()) {
        books.delete(namespace_id)
      }
    }
  }

  async function open(): Promise<void> {
    await reload(null, [])
    if (gathering.pendings.length > 0) idle = fly()
  }

  async function close(): Promise<void> {
    if (state === 'recovering') state = 'closed'
    await idle
    if (state === 'writing') state = 'closed'
    for (const pending of [...lost, ...held, ...gathering.pendings]) {
      if (!pending.is_answered) reject(pending, notAvailable())
    }
    held = []
  }

  return {
    run,
    tick,
    book: (namespace_id) => books.get(namespace_id),
    namespaceIds: () => [...books.keys()],
    state: () => state,
    open,
    close,
  }
}

function undo(batch: Batch, down_to: number): void {
  while (batch.undos.length > down_to) batch.undos.pop()!()
}

/** Who writes the runs, or compares them with the lobbies, waits for these. */
function isUrgent({ kind }: Change): boolean {
  return kind === 'lobby_created' || kind === 'lobby_stopped' || kind === 'lobby_stalled'
}

function notAvailable(): ApiError {
  return new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
}

/** What PostgreSQL says of the row itself is a fault of ours; anything else is an outage. */
function refusalOf(error: unknown): unknown {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^(0A|22|23|42|54)...$/.test(code) ? error : notAvailable()
}
