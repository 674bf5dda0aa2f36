// Writers of one namespace take turns: each would hold a connection while it waits for the namespace's row, and a busy
// game must leave connections for all others.
import { ApiError } from '@muster/contract'

/** Of a namespace in this process; a second or two of work. */
const WAITING_MAX = 1_000
const RETRY_AFTER_S = 1

/** Does `work` when all that came before it for the same name is done. Throws API_NOT_AVAILABLE when too many wait. */
export type Turns = <T>(name: string, work: () => Promise<T>) => Promise<T>

export function createTurns(): Turns {
  const last = new Map<string, { done: Promise<unknown>; count: number }>()
  return async (name, work) => {
    const turn = last.get(name) ?? { done: Promise.resolve(), count: 0 }
    if (turn.count >= WAITING_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
    turn.count++
    last.set(name, turn)
    const mine = turn.done.then(work)
    // How one ends is for him who asked; the next only waits.
    turn.done = mine.catch(() => {})
    try {
      return await mine
    } finally {
      if (--turn.count === 0) last.delete(name)
    }
  }
}
