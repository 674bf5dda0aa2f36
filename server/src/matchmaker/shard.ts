// One shard: its books in memory, and the batches in which their changes become durable. A command is carried out in
// memory at once and answered when its batch has committed; while one append is under way the next batch gathers. An
// idle shard appends at once: there is no timer.
//
// A shard is writing; or recovering, when an append failed or its outcome is not known: then commands are held, for
// HOLD_MS at most, until it writes again; or deposed, when another writer has taken over: then it is done.
import { ApiError } from '@muster/contract'
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import { newId } from '../ids.ts'
import type { Book, Decision, Undo } from './book.ts'
import type { Change } from './changes.ts'
import { type AppendOutcome, append, didCommit, takeOver } from './fence.ts'
import { encodePage } from './journal.ts'
import { bookOf, loadShard } from './load.ts'
import { emptyImages, type Projection } from './project.ts'
import { imagesOf, touchedBy } from './touched.ts'

/** Commands of one journal row; what comes beyond waits for the next. */
const BATCH_COMMANDS_MAX = 1_024
/** Commands that may wait while the shard cannot write. */
const HELD_COMMANDS_MAX = 20_000
/** A connected player must not be thrown out for a database restart; but nobody waits for ever. */
const HOLD_MS = 5_000
const EXPIRIES_PER_COMMAND_MAX = 1_000
const RECOVER_PAUSE_MS = 100

export type Decide<T> = (book: Book, now_ms: number) => Decision<T>

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
  /** Takes the shard over and reads it. */
  open: () => Promise<void>
  /** Rejects what is still held; what is being appended may finish. */
  close: () => Promise<void>
}

export type ShardOptions = {
  shard: number
  pool: Pool
  projection: Projection
  now: () => number
  log: Logger
  /** Called in order with what has become durable. */
  onCommit: (namespace_id: string, changes: readonly Change[]) => void
  /** The books have been read anew: whoever waits for a change must look again. */
  onReload: () => void
  onDeposed: () => void
}

type Pending = {
  namespace_id: string
  decide: Decide<unknown>
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
  const { shard, pool, projection, now, log } = options
  let state: 'recovering' | 'writing' | 'deposed' | 'closed' = 'recovering'
  let books = new Map<string, Book>()
  let writer = ''
  let seq = 0
  let time_ms = 0
  let gathering = newBatch()
  let flying: Batch | null = null
  let held: Pending[] = []
  /** Commands of a batch of which nobody knows yet whether it committed. */
  let lost: Pending[] = []
  let idle = Promise.resolve()

  function run<T>(namespace_id: string, decide: Decide<T>): Promise<Decision<T>> {
    return new Promise((resolve, reject) => {
      const pending: Pending = {
        namespace_id,
        decide,
        since_ms: now(),
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
    if (flying === null && gathering.entries.size === 0) return settle(pending)
    gathering.pendings.push(pending)
    if (flying === null) idle = fly()
  }

  /** Answers false when the command itself failed: it has been rejected and has changed nothing. */
  function execute(pending: Pending, batch: Batch): boolean {
    const book = bookOf(books, pending.namespace_id)
    time_ms = Math.max(time_ms, now())
    const mark = batch.undos.length
    const entry = batch.entries.get(pending.namespace_id)?.length ?? 0
    try {
      for (let expiries = 0; expiries < EXPIRIES_PER_COMMAND_MAX; expiries++) {
        const change = book.expire(time_ms)
        if (change === null) break
        make(book, pending.namespace_id, change, batch)
      }
      pending.decision = pending.decide(book, time_ms)
      if ('changes' in pending.decision) {
        for (const change of pending.decision.changes) make(book, pending.namespace_id, change, batch)
      }
      return true
    } catch (error) {
      undo(batch, mark)
      const changes = batch.entries.get(pending.namespace_id)
      if (changes !== undefined) changes.length = entry
      if (changes?.length === 0) batch.entries.delete(pending.namespace_id)
      reject(pending, error)
      return false
    }
  }

  function make(book: Book, namespace_id: string, change: Change, batch: Batch): void {
    const ids = touchedBy(book, change)
    batch.undos.push(book.apply(change))
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
        continue
      }
      flying = batch
      const outcome = await write(batch)
      flying = null
      if (outcome.kind === 'committed') admitHeld()
      else await recover(batch, outcome)
    }
  }

  /** Appends a batch. The images are taken first: memory is at this batch then, and not ahead of it. */
  async function write(batch: Batch): Promise<AppendOutcome> {
    const images = emptyImages()
    for (const [namespace_id, ids] of batch.touched) {
      imagesOf(bookOf(books, namespace_id), namespace_id, shard, ids, images)
    }
    const entries = [...batch.entries].map(([namespace_id, changes]) => ({ namespace_id, changes }))
    const payload = encodePage({ format: 1, ms: time_ms, entries })
    const outcome = await append(pool, { shard, seq: seq + 1, writer, payload })
    if (outcome.kind === 'committed') {
      seq += 1
      projection.note(
        shard,
        seq,
        images,
        entries.some(({ changes }) => changes.some(isStartOrStop)),
      )
      for (const { namespace_id, changes } of entries) options.onCommit(namespace_id, changes)
      for (const pending of batch.pendings) settle(pending)
    }
    return outcome
  }

  function settle(pending: Pending): void {
    pending.is_answered = true
    pending.resolve(pending.decision as Decision<never>)
  }

  function reject(pending: Pending, error: unknown): void {
    pending.is_answered = true
    pending.reject(error)
  }

  function admitHeld(): void {
    const admitted = held.splice(0, BATCH_COMMANDS_MAX - gathering.pendings.length)
    for (const pending of admitted) {
      if (!pending.is_answered && execute(pending, gathering)) gathering.pendings.push(pending)
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
    state = 'writing'
    admitHeld()
  }

  /** Nobody knows whether the unknown batch committed: take over, ask, and read everything anew. */
  async function reload(
    unknown: { seq: number; writer: string; batch: Batch } | null,
    later: Pending[],
  ): Promise<void> {
    held = [...later, ...held]
    lost = unknown?.batch.pendings ?? []
    while (state === 'recovering') {
      try {
        const fresh = newId(now())
        const takeover_seq = await takeOver(pool, shard, fresh, now())
        if (unknown !== null && lost.length > 0) {
          if (await didCommit(pool, { shard, seq: unknown.seq, writer: unknown.writer })) lost.forEach(settle)
          else held = [...lost, ...held]
          lost = []
        }
        const loaded = await loadShard(pool, shard, takeover_seq, now())
        books = loaded.books
        time_ms = Math.max(loaded.time_ms, now())
        writer = fresh
        seq = takeover_seq
        projection.reset(shard)
        projection.note(shard, seq, loaded.images, true)
        state = 'writing'
        options.onReload()
      } catch (error) {
        log.warn({ err: error, shard }, 'the journal cannot be read; trying again')
        await new Promise((resolve) => setTimeout(resolve, RECOVER_PAUSE_MS))
      }
    }
    if (state === 'writing') admitHeld()
  }

  function depose(pendings: readonly Pending[]): void {
    state = 'deposed'
    log.warn({ shard }, 'another writer has taken this shard over')
    for (const pending of [...pendings, ...held]) reject(pending, notAvailable())
    held = []
    gathering = newBatch()
    options.onDeposed()
  }

  function tick(): void {
    const now_ms = now()
    for (const pending of [...lost, ...held]) {
      if (pending.since_ms + HOLD_MS <= now_ms && !pending.is_answered) reject(pending, notAvailable())
    }
    held = held.filter((pending) => !pending.is_answered)
    if (state !== 'writing') return
    for (const [namespace_id, book] of books) {
      const due_ms = book.nextDueMs()
      if (due_ms !== null && due_ms <= now_ms) {
        run(namespace_id, () => ({ changes: [], result: null })).catch((error: unknown) => {
          log.warn({ err: error, shard }, 'what is due could not be removed; trying again')
        })
      } else if (book.lobbies.size === 0 && book.players.size === 0) {
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

  return { run, tick, book: (namespace_id) => books.get(namespace_id), open, close }
}

function undo(batch: Batch, down_to: number): void {
  while (batch.undos.length > down_to) batch.undos.pop()!()
}

function isStartOrStop(change: Change): boolean {
  return change.kind === 'lobby_created' || change.kind === 'lobby_stopped'
}

function notAvailable(): ApiError {
  return new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
}

/** A database without room is an outage; anything else is a fault of ours. */
function refusalOf(error: unknown): unknown {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && code.startsWith('53') ? notAvailable() : error
}
