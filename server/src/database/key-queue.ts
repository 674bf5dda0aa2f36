// Runs the writers of one key one after the other. Each writer would hold a connection while it waits for the row of its
// namespace, and a busy game must leave connections for all others.
import { ApiError } from '@musterhost/contract'

/** Writers of one key that wait in this process: a second or two of work. */
const WAITING_MAX = 1_000
const RETRY_AFTER_S = 1

/** Runs `work` after all earlier work of the same key. Throws API_NOT_AVAILABLE when too much waits. */
export type KeyQueue = <T>(key: string, work: () => Promise<T>) => Promise<T>

export function createKeyQueue(): KeyQueue {
  const queues = new Map<string, { done: Promise<unknown>; count: number }>()
  return async (key, work) => {
    const queue = queues.get(key) ?? { done: Promise.resolve(), count: 0 }
    if (queue.count >= WAITING_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: RETRY_AFTER_S })
    queue.count++
    queues.set(key, queue)
    const own = queue.done.then(work)
    // The caller gets the failure; the next writer only waits for the end.
    queue.done = own.catch(() => {})
    try {
      return await own
    } finally {
      if (--queue.count === 0) queues.delete(key)
    }
  }
}
