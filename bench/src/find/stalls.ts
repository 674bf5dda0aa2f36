// Measures when the event loop of a process stood still, and why: its own work, or no processor for the thread.
import { readFileSync } from 'node:fs'

const TICK_MS = 1
/** A tick that is later than this is a stall. */
const LATE_MS_MIN = 3
const STALLS_MAX = 100_000
const NS_PER_MS = 1_000_000

/** Wall-clock milliseconds, comparable between the processes of one machine. */
export type Span = { start_ms: number; end_ms: number }
/** `waited_ms`: how long the thread was ready to run without a processor. */
export type Stall = Span & { waited_ms: number }

export const clock = (): number => performance.timeOrigin + performance.now()

/** Watches the event loop of this thread. The returned function ends the watch and returns the stalls. */
export function watchStalls(): () => Stall[] {
  const stalls: Stall[] = []
  let last_ms = clock()
  let last_wait_ms = waitedMs()
  const timer = setInterval(() => {
    const now_ms = clock()
    const wait_ms = waitedMs()
    const start_ms = last_ms + TICK_MS
    if (now_ms - start_ms >= LATE_MS_MIN && stalls.length < STALLS_MAX) {
      stalls.push({ start_ms, end_ms: now_ms, waited_ms: wait_ms - last_wait_ms })
    }
    last_ms = now_ms
    last_wait_ms = wait_ms
  }, TICK_MS)
  return () => {
    clearInterval(timer)
    return stalls
  }
}

/** Waiting time since the start of the thread, counted by the kernel; 0 where it does not count. */
function waitedMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[1]) / NS_PER_MS
  } catch {
    return 0
  }
}
