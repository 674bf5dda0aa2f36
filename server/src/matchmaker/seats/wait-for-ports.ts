// When too few ports are open the edge is opening more, unless all are used: that is waited for, but not for long.
import { ApiError } from '@muster/contract'
import type { Books } from '../shards/books.ts'

/** Together a second. */
const PORT_ATTEMPTS_MAX = 5
const PORT_WAIT_MS = 250

/** Repeats what was refused for want of ports. `is_first`: it is not a repetition. */
export async function whenPortsOpen<T>(
  books: Books,
  isGone: () => boolean,
  attemptOnce: (is_first: boolean) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptOnce(attempt === 1)
    } catch (error) {
      const is_short = error instanceof ApiError && error.code === 'MATCHMAKER_NO_PORTS'
      if (!is_short || attempt === PORT_ATTEMPTS_MAX || isGone()) throw error
      await books.morePorts(PORT_WAIT_MS)
    }
  }
}
