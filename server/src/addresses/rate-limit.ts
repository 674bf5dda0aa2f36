// Limits how often a client may call: GCRA, a bucket of debt that every request fills by one and time empties at an even
// rate. A key has no entry before its first request. When room is needed, entries with little debt are removed first. There
// are no timers: the debt is computed when a request arrives.
import assert from 'node:assert'

export type RateLimiter = {
  /** 0 when the request may go on (and is counted); else the ms after which it may, and it is not counted. */
  take: (key: string, now_ms: number) => number
  /** What take() returns now. Counts nothing. */
  waitMs: (key: string, now_ms: number) => number
  /** Keys remembered. */
  size: () => number
}

/** In units of 1/per_minute ms, so that the arithmetic is whole numbers: a request costs UNITS_PER_REQUEST of them. */
type Debt = { units: number; at_ms: number }

const UNITS_PER_REQUEST = 60_000
/** Largest rate and burst that a limiter accepts. */
export const PER_MINUTE_MAX = 1_000_000

/**
 * Allows `burst` requests of a key at once (by default `per_minute`), and `per_minute` a minute in the long run; 0 is no
 * limit. At most `keys_max` keys are remembered. A key with more than half of its burst in debt is removed early only when a
 * quarter of keys_max others have as much: many clients with many requests each.
 */
export function createRateLimiter(options: { per_minute: number; burst?: number; keys_max: number }): RateLimiter {
  const { per_minute, burst = per_minute, keys_max } = options
  assert(Number.isInteger(per_minute) && per_minute >= 0 && per_minute <= PER_MINUTE_MAX)
  if (per_minute === 0) return { take: () => 0, waitMs: () => 0, size: () => 0 }
  assert(Number.isInteger(burst) && burst >= 1 && burst <= PER_MINUTE_MAX)
  assert(Number.isInteger(keys_max) && keys_max >= 4)
  const units_max = burst * UNITS_PER_REQUEST
  const half_max = Math.floor(keys_max / 2)
  const carried_max = Math.floor(keys_max / 4)

  // Two halves: a key that asks moves to the younger one; when that is full, what is left in the older one is dropped.
  let younger = new Map<string, Debt>()
  let older = new Map<string, Debt>()

  function pay(debt: Debt, now_ms: number): void {
    // A clock that was set back neither forgives a debt nor prolongs it.
    const elapsed_ms = Math.max(0, now_ms - debt.at_ms)
    debt.units = Math.max(0, debt.units - elapsed_ms * per_minute)
    debt.at_ms = now_ms
  }

  /** Who owes much is carried over, so that a flood of strangers does not free who is limited. */
  function turn(now_ms: number): void {
    const carried = new Map<string, Debt>()
    for (const [key, debt] of older) {
      pay(debt, now_ms)
      if (debt.units * 2 > units_max && carried.size < carried_max) carried.set(key, debt)
    }
    older = younger
    younger = carried
  }

  function debtOf(key: string, now_ms: number): Debt {
    const debt = younger.get(key)
    if (debt !== undefined) return debt
    const aging = older.get(key) ?? { units: 0, at_ms: now_ms }
    older.delete(key)
    if (younger.size >= half_max) turn(now_ms)
    younger.set(key, aging)
    return aging
  }

  /** How long a request with this debt must wait. */
  function waitOf({ units }: Debt): number {
    const excess = units + UNITS_PER_REQUEST - units_max
    return excess > 0 ? Math.ceil(excess / per_minute) : 0
  }

  return {
    take(key, now_ms) {
      const now = Math.trunc(now_ms)
      const debt = debtOf(key, now)
      pay(debt, now)
      const wait_ms = waitOf(debt)
      if (wait_ms === 0) debt.units += UNITS_PER_REQUEST
      return wait_ms
    },
    waitMs(key, now_ms) {
      const debt = younger.get(key) ?? older.get(key)
      if (debt === undefined) return 0
      pay(debt, Math.trunc(now_ms))
      return waitOf(debt)
    },
    size: () => younger.size + older.size,
  }
}
