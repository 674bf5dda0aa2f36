// Writes the tables that other roles read (projected-tables.ts) from the journal's changes. Rows are written in batches
// about once a second, and at once when a lobby starts or stops, together with the seq that they reflect. A row is always a
// copy of committed state. So writing a row twice changes nothing, nor does writing an older row that the guard lets
// through.
import type { Pool, PoolClient } from 'pg'
import type { Logger } from 'pino'
import { inTransaction } from '../../database/transaction.ts'
import { Semaphore } from '../../flow/semaphore.ts'
import { createTimerWhileNeeded } from '../../flow/timer-while-needed.ts'
import { SHARD_COUNT } from '../../journal/pages.ts'
import { addNewer, type RowSnapshots } from './affected-rows.ts'
import { partsOf, type RowsToWrite, writeQuery } from './write-rows.ts'

const PROJECT_EVERY_MS = 1_000
/** Rows of one statement. A larger statement would block this process for too long. */
const STATEMENT_ROWS_MAX = 1_000
/** Shards that are written at the same time: slow tables must not take every connection from the journal. */
const WRITES_MAX = 4

/** Rows of a shard that are not written yet. `wakes`: channels to notify. `since`: of performance.now(). */
type Unwritten = { seq: number; snapshots: RowSnapshots; wakes: Set<string>; since: number }

export class Projection {
  readonly #pool: Pool
  readonly #log: Logger
  readonly #timer = createTimerWhileNeeded(PROJECT_EVERY_MS, () => {
    void this.flush()
    return this.#writing.size + this.#unwritten.size > 0
  })
  /** By shard. */
  readonly #unwritten = new Map<number, Unwritten>()
  readonly #writing = new Map<number, Promise<void>>()
  readonly #under_way = new Set<Unwritten>()
  /** One write of each shard at most waits. */
  readonly #turns = new Semaphore({ at_once_max: WRITES_MAX, waiting_max: SHARD_COUNT })

  constructor(pool: Pool, log: Logger) {
    this.#pool = pool
    this.#log = log
  }

  /**
   * Takes in the rows that a commit changed. `wakes`: the channels of runners and edges that wait for them, because a
   * lobby started or stopped. With any of them the rows are written at once.
   */
  add(shard: number, seq: number, snapshots: RowSnapshots, wakes: ReadonlySet<string>): void {
    const unwritten = this.#unwritten.get(shard)
    if (unwritten === undefined) {
      this.#unwritten.set(shard, { seq, snapshots, wakes: new Set(wakes), since: performance.now() })
    } else {
      unwritten.seq = seq
      addAll(unwritten.wakes, wakes)
      addNewer(unwritten.snapshots, snapshots)
    }
    this.#timer.need()
    if (wakes.size > 0) void this.#write(shard)
  }

  /** Drops the unwritten rows of a shard, because the shard is read again from the journal. */
  reset(shard: number): void {
    this.#unwritten.delete(shard)
  }

  /** Writes the unwritten rows of a shard that leaves this process. What cannot be written is read again from the journal. */
  async settle(shard: number): Promise<void> {
    await this.#flushShard(shard)
    this.reset(shard)
  }

  /** Writes all unwritten rows. */
  async flush(): Promise<void> {
    const shards = new Set([...this.#writing.keys(), ...this.#unwritten.keys()])
    await Promise.all([...shards].map((shard) => this.#flushShard(shard)))
  }

  /** How long the oldest unwritten row has waited. */
  lagMs(): number {
    const since = [...this.#unwritten.values(), ...this.#under_way].map((unwritten) => unwritten.since)
    return since.length === 0 ? 0 : performance.now() - Math.min(...since)
  }

  async close(): Promise<void> {
    this.#timer.close()
    await this.flush()
  }

  /** An urgent write may directly follow the awaited one: only after it is everything written. */
  async #flushShard(shard: number): Promise<void> {
    while (this.#writing.has(shard)) await this.#writing.get(shard)
    await this.#write(shard)
  }

  /** One write of a shard at a time; rows that are added meanwhile are written after it. */
  #write(shard: number): Promise<void> {
    const before = this.#writing.get(shard)
    if (before !== undefined) {
      return before.then(() => ((this.#unwritten.get(shard)?.wakes.size ?? 0) > 0 ? this.#write(shard) : undefined))
    }
    const batch = this.#unwritten.get(shard)
    if (batch === undefined) return Promise.resolve()
    this.#unwritten.delete(shard)
    this.#under_way.add(batch)
    const done = this.#inTurn(() => this.#writeBatch(shard, batch)).finally(() => {
      this.#under_way.delete(batch)
      this.#writing.delete(shard)
    })
    this.#writing.set(shard, done)
    return done
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    if ((await this.#turns.acquire()) !== 'acquired') throw new Error('more writes wait than there are shards')
    try {
      await work()
    } finally {
      this.#turns.release()
    }
  }

  async #writeBatch(shard: number, batch: Unwritten): Promise<void> {
    try {
      await this.#writeParts(shard, batch, partsOf(batch.snapshots, STATEMENT_ROWS_MAX))
    } catch (error) {
      if (isRefusal(error)) return await this.#writeOneByOne(shard, batch)
      this.#keep(shard, batch, error)
    }
  }

  /** Several statements become visible at once, because one seq covers all their rows. */
  async #writeParts(shard: number, batch: Unwritten, parts: readonly RowsToWrite[]): Promise<void> {
    const queries = parts.map((part) => () => writeQuery(shard, batch.seq, part, batch.wakes))
    if (queries.length === 1) {
      await this.#pool.query(queries[0]!())
      return
    }
    await inTransaction(this.#pool, async (client) => {
      for (const query of queries) await client.query(query())
    })
  }

  /** A row that the database refuses must not hold back the others, which still become visible at once. */
  async #writeOneByOne(shard: number, batch: Unwritten): Promise<void> {
    try {
      await inTransaction(this.#pool, async (client) => {
        for (const part of partsOf(batch.snapshots, 1)) await this.#writeAlone(client, shard, batch, part)
      })
    } catch (error) {
      this.#keep(shard, batch, error)
    }
  }

  async #writeAlone(client: PoolClient, shard: number, batch: Unwritten, part: RowsToWrite): Promise<void> {
    await client.query('savepoint alone')
    try {
      await client.query(writeQuery(shard, batch.seq, part, batch.wakes))
    } catch (error) {
      if (!isRefusal(error)) throw error
      this.#log.error({ err: error, shard, ...part }, 'the database refuses a projected row')
      await client.query('rollback to savepoint alone')
    }
  }

  /** Rows that could not be written stay for the next write; rows added since then are newer and win. */
  #keep(shard: number, batch: Unwritten, error: unknown): void {
    this.#log.warn({ err: error, shard }, 'lobbies and players could not be projected; trying again')
    const newer = this.#unwritten.get(shard)
    if (newer !== undefined) {
      addNewer(batch.snapshots, newer.snapshots)
      batch.seq = newer.seq
      addAll(batch.wakes, newer.wakes)
    }
    this.#unwritten.set(shard, batch)
    this.#timer.need()
  }
}

function addAll(into: Set<string>, channels: ReadonlySet<string>): void {
  for (const channel of channels) into.add(channel)
}

/** The database works and refuses the rows: their data is at fault, not the connection. */
function isRefusal(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^(21|22|23)...$/.test(code)
}
