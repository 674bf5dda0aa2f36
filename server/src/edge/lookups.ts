// Asking the database on behalf of strangers: a bounded number at once, and of look-ups that find nothing only so many
// a second for each source, so that guessing names is not a way to keep the database busy. What finds something is free:
// a thousand players behind one address may come back at once.
import { ApiError } from '@muster/contract'
import type { Context } from '../context.ts'
import { FAILED_LOOKUPS_PER_SOURCE_MAX, LOOKUP_SOURCES_MAX, LOOKUPS_MAX } from './limits.ts'

export type Lookups = {
  /**
   * `look`, within the budget of `source`; null for what is known to have been there, which is no guess. Throws
   * API_RATE_LIMIT when that is used up, and API_NOT_AVAILABLE when too many are under way or the database does not
   * answer.
   */
  run: <T>(source: string | null, look: () => Promise<T | null>) => Promise<T | null>
}

const WINDOW_MS = 1_000

export function createLookups(ctx: Context): Lookups {
  const failed = new Map<string, number>()
  let window_ms = 0
  let running = 0

  function countFailure(source: string): void {
    if (failed.size >= LOOKUP_SOURCES_MAX) failed.clear()
    failed.set(source, (failed.get(source) ?? 0) + 1)
  }

  return {
    async run(source, look) {
      const now_ms = ctx.elapsed()
      if (now_ms - window_ms >= WINDOW_MS) {
        failed.clear()
        window_ms = now_ms
      }
      if (source !== null && (failed.get(source) ?? 0) >= FAILED_LOOKUPS_PER_SOURCE_MAX)
        throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: 1 })
      if (running >= LOOKUPS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
      running++
      try {
        const found = await look()
        if (found === null && source !== null) countFailure(source)
        return found
      } catch (error) {
        ctx.log.warn({ err: error }, 'the edge could not ask the database')
        throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
      } finally {
        running--
      }
    },
  }
}
