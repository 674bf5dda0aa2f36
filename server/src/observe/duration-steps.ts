// Durations counted in steps, four in each power of two: a percentile of thousands of requests is read from a few counts, and
// differs from the exact value by at most a fifth. Step 0 is below a millisecond; the last one takes all above 46 seconds.

/** Widths in seconds in which durations are counted: a year is read from days, an hour from minutes. */
export const COUNTED_WIDTHS_S = [60, 600, 3_600, 86_400] as const
/** Steps of a power of two. */
const STEPS_PER_DOUBLING = 4
export const DURATION_STEPS = 64
/** Waits for a match are counted in this unit: the last step takes all above 77 minutes. */
export const MATCH_WAIT_UNIT_MS = 100

export function stepOf(ms: number): number {
  if (ms < 1) return 0
  return Math.min(DURATION_STEPS - 1, 1 + Math.floor(Math.log2(ms) * STEPS_PER_DOUBLING))
}

/** Where a step begins, in milliseconds. */
function startOf(step: number): number {
  return step === 0 ? 0 : 2 ** ((step - 1) / STEPS_PER_DOUBLING)
}

/**
 * The duration that `share` of the counted ones do not exceed, in milliseconds. `counts`: by step, not all zero. The durations of a step are
 * taken as evenly spread.
 */
export function percentile(counts: ArrayLike<number>, share: number): number {
  let total = 0
  for (let step = 0; step < counts.length; step++) total += counts[step]!
  let rest = share * total
  for (let step = 0; step < counts.length; step++) {
    const count = counts[step]!
    if (count > 0 && rest <= count) {
      const start_ms = startOf(step)
      return start_ms + (rest / count) * (startOf(step + 1) - start_ms)
    }
    rest -= count
  }
  return startOf(counts.length)
}
