// Look-ups in the database that clients cause. Only a bounded number run at once. Look-ups without a result are limited by
// client, so that guessing names cannot keep the database busy. Look-ups with a result are not limited: a thousand players
// behind one address may return at once.
import { ApiError } from '@musterhost/contract'
import type { SharedShare } from '../../addresses/client-share.ts'
import type { Context } from '../../context.ts'
import { FAILED_LOOKUPS_PER_CLIENT_MAX, LOOKUP_CLIENTS_MAX, LOOKUPS_MAX } from '../limits.ts'

export type Lookups = {
  /**
   * Runs `query` within the limit of the client. `client_key`: null where the row is known to exist, so it is no guess. Throws
   * API_RATE_LIMIT when the client's limit is reached. Throws API_NOT_AVAILABLE when too many look-ups run, or the database
   * fails.
   */
  run: <T>(client_key: string | null, query: () => Promise<T | null>) => Promise<T | null>
}

const WINDOW_MS = 1_000

/** `shared`: the look-ups of other edge processes. */
export function createLookups(ctx: Context, shared: SharedShare | null = null): Lookups {
  /** By client: look-ups without a result in the current window. */
  const failed = new Map<string, number>()
  let window_ms = 0
  let running = 0

  function countFailure(client_key: string): void {
    if (failed.size >= LOOKUP_CLIENTS_MAX) forgetFailures()
    const count = (failed.get(client_key) ?? 0) + 1
    // The next one is one too many.
    const is_last = shared?.allows(client_key, count + 1, FAILED_LOOKUPS_PER_CLIENT_MAX) === false
    failed.set(client_key, is_last ? FAILED_LOOKUPS_PER_CLIENT_MAX : count)
  }

  function forgetFailures(): void {
    if (shared !== null) for (const key of failed.keys()) shared.left(key, 0, FAILED_LOOKUPS_PER_CLIENT_MAX)
    failed.clear()
  }

  return {
    async run(client_key, query) {
      const now_ms = ctx.elapsed()
      if (now_ms - window_ms >= WINDOW_MS) {
        forgetFailures()
        window_ms = now_ms
      }
      if (client_key !== null && (failed.get(client_key) ?? 0) >= FAILED_LOOKUPS_PER_CLIENT_MAX)
        throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: 1 })
      if (running >= LOOKUPS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
      running++
      try {
        const found = await query()
        if (found === null && client_key !== null) countFailure(client_key)
        return found
      } catch (error) {
        ctx.log.warn({ err: error }, 'a look-up of the edge failed')
        throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
      } finally {
        running--
      }
    },
  }
}
