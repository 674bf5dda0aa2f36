// Whose turn it is to read analytics. A read takes a connection and a while of the processor: a few dashboards must not
// take every connection of the api from all else. So many read at once, so many wait for their turn, in their order and
// not for ever; whoever comes then is told to come back.
import { ApiError } from '@muster/contract'

/** Of the ten connections of the pool (database/connect.ts). */
export const READS_AT_ONCE_MAX = 3
/** A page that asks for every data set on its own, open four times. */
export const READS_WAITING_MAX = 64
const WAIT_MS_MAX = 20_000
const RETRY_AFTER_S = 2

export type ReadLimit = {
  /** Throws API_NOT_AVAILABLE: too many wait, it took too long, or nobody waits for the answer any more. */
  take: <T>(read: () => Promise<T>, isGone: () => boolean) => Promise<T>
}

export function createReadLimit(): ReadLimit {
  let running = 0
  const waiting = new Set<() => void>()

  function queue(): Promise<void> {
    if (waiting.size >= READS_WAITING_MAX) throw notNow()
    return new Promise((resolve, reject) => {
      const start = (): void => {
        clearTimeout(timer)
        waiting.delete(start)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.delete(start)
        reject(notNow())
      }, WAIT_MS_MAX)
      waiting.add(start)
    })
  }

  return {
    async take(read, isGone) {
      if (running < READS_AT_ONCE_MAX) running++
      else await queue()
      try {
        if (isGone()) throw notNow()
        return await read()
      } finally {
        // Whoever waits takes over the place.
        const [next] = waiting
        if (next === undefined) running--
        else next()
      }
    },
  }
}

function notNow(): ApiError {
  return new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
}
