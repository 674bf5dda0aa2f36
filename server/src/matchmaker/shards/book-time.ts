// Book time: the clock of all books of this process. It starts at the wall clock, or at the time that the books had reached
// if that is later. From then on it follows the monotonic clock, so that no step of the wall clock ends or extends a seat.
//
// `served_ms` is the book time until which the books are known to have been served. Every second it is written to the table
// book_time, while all shards write. A load moves every deadline by the time since then (fence.ts), so a seat has as much
// time left after a crash as before it. No clock measures the outage, so no clock can be wrong about it.
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import { decodePage, SHARD_COUNT } from '../../journal/pages.ts'

/** How often served_ms is written. A crash extends a seat by at most this and one write. */
const SERVED_EVERY_MS = 1_000
/** Between two tries to read the time of the books. */
const OPEN_PAUSE_MS = 100

export type BookTime = {
  /** Whole milliseconds; never runs back. */
  now: () => number
  /** The last book time at which the books are known to have been served, by this process or an earlier one. */
  servedMs: () => number
  /** Registers `writer` as the process that writes served_ms. Tries until it succeeds, or until close(). */
  open: (writer: string) => Promise<void>
  close: () => Promise<void>
}

export type BookTimeOptions = {
  pool: Pool
  now: () => number
  elapsed: () => number
  log: Logger
  /** Whether all shards write. */
  isServing: () => boolean
}

export function createBookTime({ pool, now, elapsed, log, isServing }: BookTimeOptions): BookTime {
  let anchor = { ms: Math.trunc(now()), elapsed_ms: elapsed() }
  let served_ms = 0
  let writer: string | null = null
  let is_closed = false
  let writing: Promise<void> | null = null
  const timer = setInterval(() => void writeServed(), SERVED_EVERY_MS)

  const time = (): number => anchor.ms + Math.trunc(elapsed() - anchor.elapsed_ms)

  /** One write at a time. After a failed write, the next one covers it. */
  function writeServed(): Promise<void> {
    if (writer !== null && isServing()) writing ??= write(writer, time()).finally(() => (writing = null))
    return writing ?? Promise.resolve()
  }

  async function write(by: string, ms: number): Promise<void> {
    try {
      await pool.query({
        name: 'book-time-served',
        text: 'update book_time set served_ms = $2 where writer = $1',
        values: [by, ms],
      })
      served_ms = Math.max(served_ms, ms)
    } catch (error) {
      log.warn({ err: error }, 'the time until which the books were served cannot be written; trying again')
    }
  }

  async function start(fresh: string): Promise<void> {
    const { rows } = await pool.query<{ served_ms: number | null }>(
      `insert into book_time (writer) values ($1) on conflict (singleton) do update set writer = $1 returning served_ms`,
      [fresh],
    )
    served_ms = rows[0]?.served_ms ?? 0
    const reached_ms = Math.max(served_ms, await lastPageTime(pool))
    anchor = { ms: Math.max(Math.trunc(now()), reached_ms), elapsed_ms: elapsed() }
    writer = fresh
  }

  async function open(fresh: string): Promise<void> {
    while (writer === null && !is_closed) {
      try {
        await start(fresh)
      } catch (error) {
        log.warn({ err: error }, 'the time of the books cannot be read; trying again')
        await new Promise((resolve) => setTimeout(resolve, OPEN_PAUSE_MS))
      }
    }
  }

  async function close(): Promise<void> {
    is_closed = true
    clearInterval(timer)
    await writing
    await writeServed()
  }

  return { now: time, servedMs: () => served_ms, open, close }
}

/** The latest book time of any shard's journal; 0 when all are empty. */
async function lastPageTime(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ payload: Buffer }>(
    `select last.payload from generate_series(0, $1::integer) as shards (shard)
      cross join lateral (select payload from journal where journal.shard = shards.shard order by seq desc limit 1) as last`,
    [SHARD_COUNT - 1],
  )
  return Math.max(0, ...rows.map(({ payload }) => decodePage(payload).ms))
}
