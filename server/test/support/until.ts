// Waits for what happens beside the test: asks again and again, up to a named maximum. The maximum is time of a machine that
// has nothing else to do. Where more processes want a processor than there are, the wait is longer by the same ratio. A question
// may take ten milliseconds of a processor that other tests want too, so a longer wait asks less often.
import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

/** On a machine with nothing else to do. */
export const WAIT_MS_MAX = 60_000
/** The limit of the whole test is ten times WAIT_MS_MAX (run-limits.ts). */
const LOAD_FACTOR_MAX = 8
const POLL_MS = 10
const POLL_MS_MAX = 60
const POLL_GROWTH = 1.25

/** How much slower than alone a process runs on this machine, by the load of the last minute. Never less than 1. */
export function loadFactor(): number {
  return Math.min(LOAD_FACTOR_MAX, Math.max(1, loadavg()[0]! / availableParallelism()))
}

/** The first answer that is neither undefined, null nor false. Throws when there is none in WAIT_MS_MAX. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | null | false> | T | undefined | null | false,
): Promise<T> {
  const start_ms = performance.now()
  for (let poll_ms = POLL_MS; ; poll_ms = Math.min(POLL_MS_MAX, poll_ms * POLL_GROWTH)) {
    const answer = await ask()
    if (answer !== undefined && answer !== null && answer !== false) return answer
    const waited_ms = performance.now() - start_ms
    if (waited_ms > WAIT_MS_MAX && waited_ms > WAIT_MS_MAX * loadFactor())
      throw new Error(`Waited ${Math.round(waited_ms)} ms without success: ${what}.`)
    await sleep(poll_ms)
  }
}
