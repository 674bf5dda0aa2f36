// Limits how many reads of analytics run at once. A read holds a database connection and much of a processor: a few
// dashboards must not take every connection of the api.
import { ApiError } from '@musterhost/contract'
import { Semaphore } from '../flow/semaphore.ts'

/** Reads that run at once. Each takes one of the ten connections of the pool (database/connect.ts). */
export const READS_AT_ONCE_MAX = 3
/** Reads that wait for their turn: those of four tabs whose page requests each data set separately. */
export const READS_WAITING_MAX = 64
/** A read waits this long for its turn. */
const WAIT_MS_MAX = 20_000
const RETRY_AFTER_S = 2

export type ReadLimit = {
  /** Throws API_NOT_AVAILABLE: too many reads wait, the wait took too long, or the caller has hung up. */
  take: <T>(read: () => Promise<T>, isGone: () => boolean) => Promise<T>
}

export function createReadLimit(): ReadLimit {
  const reads = new Semaphore({ at_once_max: READS_AT_ONCE_MAX, waiting_max: READS_WAITING_MAX })
  return {
    async take(read, isGone) {
      const patience = reads.has_free_slot ? null : AbortSignal.timeout(WAIT_MS_MAX)
      if ((await reads.acquire(patience)) !== 'acquired') throw notNow()
      try {
        if (isGone()) throw notNow()
        return await read()
      } finally {
        reads.release()
      }
    },
  }
}

function notNow(): ApiError {
  return new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
}
