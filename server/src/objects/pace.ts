// Bounds the rate of a background reader, so that the disk stays free for requests.
import { setTimeout as delay } from 'node:timers/promises'

/** Bytes a second of a background check in one process: a tenth of a slow disk's rate, and 12 TB a week. */
const CHECK_BYTES_PER_SECOND_MAX = 20 * 1024 * 1024
/** Shorter pauses are not made: a timer costs more. */
const WAIT_MS_MIN = 20

/** Returns a function to await after each piece. It rejects with the signal's reason once that is aborted. */
export function createPace(
  signal: AbortSignal,
  bytes_per_second_max = CHECK_BYTES_PER_SECOND_MAX,
): (bytes: number) => Promise<void> {
  let due_ms = performance.now()
  return async (bytes) => {
    signal.throwIfAborted()
    // Unused time is not saved for later.
    due_ms = Math.max(due_ms, performance.now() - WAIT_MS_MIN) + (bytes / bytes_per_second_max) * 1_000
    const wait_ms = due_ms - performance.now()
    if (wait_ms >= WAIT_MS_MIN) await delay(wait_ms, undefined, { signal })
  }
}
