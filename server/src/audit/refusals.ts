// Refusals for missing rights and failed log-ins, for the audit log. They change nothing, so they are written a moment later,
// in batches. Anybody can cause them, so each window of time has a maximum, for each client and for all. What is beyond it is
// counted, and the count is in the next event that is written.
import type { Pool } from 'pg'
import type { Logger } from 'pino'
import { BatchWriter } from '../flow/batch-writer.ts'
import { type Event, INSERT_SQL } from './events.ts'

/** The window in which refusals are counted. */
const WINDOW_MS = 10 * 60_000
/** Refusals of one client that the audit log records in a window. */
export const REFUSALS_PER_CLIENT_MAX = 20
/** Refusals of all clients that the audit log records in a window. */
const REFUSALS_MAX = 1_000
/** How long a refusal waits for others, to be written with them. */
const WRITE_EVERY_MS = 1_000
/** Refusals in memory. One window has at most these, and one summary for each client that reached its maximum. */
const WAITING_MAX = 2 * REFUSALS_MAX

/** Refusals in a window. `last`: the latest refusal that was dropped; it is written when the window ends. */
type Count = { count: number; max: number; dropped_count: number; last: Refusal | null }

/** Makes the event when it is written; most of a flood are never made. */
type Refusal = () => Event

export class Refusals {
  readonly #writer: BatchWriter<Event>
  readonly #elapsed: () => number
  readonly #timer: NodeJS.Timeout
  #since_ms: number
  #clients = new Map<string, Count>()
  #all = none(REFUSALS_MAX)

  constructor(options: { pool: Pool; log: Logger; elapsed: () => number }) {
    const { pool, log, elapsed } = options
    this.#elapsed = elapsed
    this.#since_ms = elapsed()
    this.#timer = setInterval(() => this.#roll(), WINDOW_MS)
    this.#writer = new BatchWriter<Event>({
      every_ms: WRITE_EVERY_MS,
      items_max: WAITING_MAX,
      write: async (events) => {
        await pool.query(INSERT_SQL, [JSON.stringify(events)])
      },
      onDropped: (count) => log.warn({ count }, 'refusals were not recorded in the audit log: too many wait'),
      onFailure: (error, count) => log.error({ err: error, count }, 'refusals could not be recorded in the audit log'),
    })
  }

  /** `client_key`: from addresses/client-ip.ts. */
  add(client_key: string, refusal: Refusal): void {
    if (this.#elapsed() - this.#since_ms >= WINDOW_MS) this.#roll()
    const client = this.#clients.get(client_key) ?? none(REFUSALS_PER_CLIENT_MAX)
    const full = [client, this.#all].find(({ count, max }) => count >= max)
    if (full !== undefined) {
      full.dropped_count++
      full.last = refusal
      return
    }
    client.count++
    this.#all.count++
    this.#clients.set(client_key, client)
    this.#writer.add(refusal())
  }

  /** Ends the window: the last refusal of each client that was dropped is written, with the number of those before it. */
  #roll(): void {
    this.#since_ms = this.#elapsed()
    for (const { last, dropped_count } of [...this.#clients.values(), this.#all]) {
      if (last !== null) this.#writer.add({ ...last(), dropped_count: dropped_count - 1 })
    }
    this.#clients = new Map()
    this.#all = none(REFUSALS_MAX)
  }

  /** Writes what is left. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#roll()
    await this.#writer.close()
  }
}

function none(max: number): Count {
  return { count: 0, max, dropped_count: 0, last: null }
}
