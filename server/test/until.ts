// Waits for what happens beside the test: asks again and again, up to a named maximum.
import { setTimeout as sleep } from 'node:timers/promises'

/** So much that a loaded machine does not fail a test that is right. */
export const WAIT_MS_MAX = 60_000
const POLL_MS = 10

/** The first answer that is neither undefined, null nor false. Throws when there is none in WAIT_MS_MAX. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | null | false> | T | undefined | null | false,
): Promise<T> {
  const end_ms = performance.now() + WAIT_MS_MAX
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== null && answer !== false) return answer
    if (performance.now() > end_ms) throw new Error(`Waited ${WAIT_MS_MAX} ms without success: ${what}.`)
    await sleep(POLL_MS)
  }
}
