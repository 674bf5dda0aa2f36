// A reader in the background that must leave the disk to everybody else: it reads no more than so many bytes a second.
import { setTimeout as delay } from 'node:timers/promises'

/** Of a check in the background, in one process: a tenth of what a slow disk gives. 12 TB a week. */
const CHECK_BYTES_PER_SECOND_MAX = 20 * 1024 * 1024
/** Waiting is worth a timer from this on. */
const WAIT_MS_MIN = 20

/** Returns a function that is awaited after each piece. Rejects with the signal's reason once it is aborted. */
export function createPace(
  signal: AbortSignal,
  bytes_per_second_max = CHECK_BYTES_PER_SECOND_MAX,
): (bytes: number) => Promise<void> {
  let due_ms = performance.now()
  return async (bytes) => {
    signal.throwIfAborted()
    // Time that was not used is not saved up.
    due_ms = Math.max(due_ms, performance.now() - WAIT_MS_MIN) + (bytes / bytes_per_second_max) * 1_000
    const wait_ms = due_ms - performance.now()
    if (wait_ms >= WAIT_MS_MIN) await delay(wait_ms, undefined, { signal })
  }
}
