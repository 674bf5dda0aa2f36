// One operation of a client: sent again while its outcome is unknown, as the SDK does, with the same Idempotency-Key
// where there is one. Some clients give up after the first attempt, so that unknown outcomes stay unknown.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Outcome, outcomeOf } from '../history.ts'
import type { Random } from '../random.ts'

/** The share of clients that give up after one attempt. */
const GIVE_UP_CHANCE = 0.25
const REPEAT_MS_MAX = 60_000
const REPEAT_EVERY_MS = 100
/** One attempt: longer than the edge and the matchmaker hold a request while a part of the platform restarts. */
const ATTEMPT_MS_MAX = 10_000

export type Attempts<R> = { begin_ms: number; attempt_count: number; outcome: Outcome<R> }

/** Of several attempts: acknowledged when one was, refused when all were, otherwise unknown. */
export async function repeat<R>(random: Random, call: (signal: AbortSignal) => Promise<R>): Promise<Attempts<R>> {
  const begin_ms = performance.now()
  const repeat_ms_max = random.chance(GIVE_UP_CHANCE) ? 0 : REPEAT_MS_MAX
  for (let attempt_count = 1; ; attempt_count++) {
    const outcome = await outcomeOf(call(AbortSignal.timeout(ATTEMPT_MS_MAX)))
    if (outcome.status === 'refused' && attempt_count > 1) {
      return { begin_ms, attempt_count, outcome: { status: 'unknown', reason: `${outcome.code} after an unknown one` } }
    }
    if (outcome.status !== 'unknown' || performance.now() - begin_ms > repeat_ms_max) {
      return { begin_ms, attempt_count, outcome }
    }
    await sleep(REPEAT_EVERY_MS)
  }
}
