// Limits the guests that are made: for each client key in a time, and in each namespace in all. A full namespace removes
// guests that were never used, so a client that makes many guests does not lock other players out.
import { ApiError } from '@musterhost/contract'
import { createClientRateLimiter } from '../addresses/client-rate.ts'
import type { RateLimiter } from '../addresses/rate-limit.ts'
import type { Context } from '../context.ts'
import { removeOldSql } from '../database/remove-old.ts'
import { UNUSED_GUESTS } from '../database/unused-guests.ts'

/** New guests of one client key at once: a school in which all pupils begin to play. */
const CLIENT_GUESTS_AT_ONCE = 512
/** Clients whose rate is remembered. */
const CLIENTS_MAX = 100_000
/** How long a count of a namespace's guests is used. New guests of this process are added to it. */
const COUNT_MS = 60_000
/** Namespaces whose number of guests is remembered. */
const COUNTS_MAX = 10_000
/** A younger guest may be about to play, and is not removed. */
const YOUNG_MS = 60 * 60_000
/** Unused guests removed at once from a full namespace. */
const REMOVED_AT_ONCE_MAX = 1_000

const REMOVE_UNUSED_SQL = removeOldSql({ ...UNUSED_GUESTS, only: `${UNUSED_GUESTS.only} and namespace_id = $3` })

type Count = { guests: number; read_ms: number }

export class GuestQuota {
  readonly #ctx: Context
  readonly #clients: RateLimiter
  readonly #counts = new Map<string, Count>()

  constructor(ctx: Context) {
    this.#ctx = ctx
    const per_minute = ctx.config.rate_limits.guests_per_minute
    this.#clients = createClientRateLimiter({ per_minute, burst: CLIENT_GUESTS_AT_ONCE, keys_max: CLIENTS_MAX })
  }

  /** Counts a guest that is about to be made. Throws API_RATE_LIMIT or QUOTA_REACHED. */
  async take(namespace_id: string, client_key: string): Promise<void> {
    const wait_ms = this.#clients.take(client_key, this.#ctx.elapsed())
    if (wait_ms > 0) throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: Math.ceil(wait_ms / 1000) })
    const { guests_max } = this.#ctx.config
    if (guests_max === null) return
    const count = await this.#countOf(namespace_id)
    if (count.guests >= guests_max) count.guests -= await this.#removeUnused(namespace_id)
    if (count.guests >= guests_max) {
      const message = `The namespace has ${count.guests} of ${guests_max} guests.`
      throw new ApiError('QUOTA_REACHED', { quota: 'guests', limit: guests_max, used: count.guests }, { message })
    }
    count.guests++
  }

  async #countOf(namespace_id: string): Promise<Count> {
    const now_ms = this.#ctx.elapsed()
    const known = this.#counts.get(namespace_id)
    if (known !== undefined && now_ms - known.read_ms < COUNT_MS) return known
    const { rows } = await this.#ctx.pool.query<{ guests: number }>({
      name: 'guest-count',
      text: 'select count(*)::integer as guests from identities where namespace_id = $1',
      values: [namespace_id],
    })
    const count = { guests: rows[0]!.guests, read_ms: now_ms }
    if (this.#counts.size >= COUNTS_MAX) this.#counts.clear()
    this.#counts.set(namespace_id, count)
    return count
  }

  /** Returns how many were removed. */
  async #removeUnused(namespace_id: string): Promise<number> {
    const before = new Date(this.#ctx.now() - YOUNG_MS)
    const { rowCount } = await this.#ctx.pool.query(REMOVE_UNUSED_SQL, [before, REMOVED_AT_ONCE_MAX, namespace_id])
    return rowCount ?? 0
  }
}
