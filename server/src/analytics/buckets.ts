// Cuts a window of time into about a hundred buckets of a round width. A bucket begins at a multiple of its width, and the
// window is widened to whole buckets: so a bucket has the same numbers for every caller, at any time.
//
// The data are as fine as needed: roll-ups from a minute to a year, and below a minute the events themselves. Fine data are
// kept for a shorter time, so older windows get wider buckets.

export const MINUTE_S = 60
export const HOUR_S = 3_600
export const DAY_S = 86_400
/**
 * Widths of roll-ups, in seconds; they begin at multiples of themselves. So many that a window reads at most three of a
 * line for each of its buckets: what an answer costs are the rows that are read for it. Each is a table (migration 0027).
 */
export const ROLL_UP_WIDTHS = [
  ...[MINUTE_S, 300, 600, 1_800],
  ...[HOUR_S, 7_200, 21_600, 43_200],
  ...[1, 7, 30, 365].map((days) => days * DAY_S),
]

/** Buckets that a window is divided into. */
const BUCKETS_MAX = 100
/** Seconds. */
const WIDTHS = [
  ...[1, 2, 5, 10, 15, 30],
  ...[MINUTE_S, 120, 300],
  ...[600, 1_200, 1_800],
  ...[HOUR_S, 2 * HOUR_S, 3 * HOUR_S, 6 * HOUR_S, 12 * HOUR_S],
  ...[1, 2, 7, 14, 30, 90, 365].map((days) => days * DAY_S),
]
/** Beyond the last width, as many whole years as it takes. */
const YEAR_S = 365 * DAY_S

export type Window = { start_ms: number; end_ms: number }

/** Seconds. `read_width`: of the roll-ups that are read; null: the events are. */
export type Buckets = Window & { width: number; read_width: number | null }

/** `is_fine`: there are events, and roll-ups finer than an hour, of all of the window. */
export function bucketsOf({ start_ms, end_ms }: Window, is_fine: boolean): Buckets {
  const least_s = Math.max((end_ms - start_ms) / 1_000 / BUCKETS_MAX, is_fine ? 0 : HOUR_S)
  const width = WIDTHS.find((width_s) => width_s >= least_s) ?? Math.ceil(least_s / YEAR_S) * YEAR_S
  const width_ms = width * 1_000
  return {
    start_ms: Math.floor(start_ms / width_ms) * width_ms,
    end_ms: Math.ceil(end_ms / width_ms) * width_ms,
    width,
    read_width: ROLL_UP_WIDTHS.findLast((read_width) => width % read_width === 0) ?? null,
  }
}

/** Where the buckets begin that have begun by now. */
export function startsOf({ start_ms, end_ms, width }: Buckets, now_ms: number): number[] {
  const starts: number[] = []
  for (let ms = start_ms; ms < Math.min(end_ms, now_ms); ms += width * 1_000) starts.push(ms)
  return starts
}
