// The clocks of a platform under test: the machine's, moved, or held where they are.

export type Clock = {
  /** The wall clock. */
  now: () => number
  /** The monotonic clock. */
  elapsed: () => number
  /** Time passes: both clocks move. */
  advance: (ms: number) => void
  /** The wall clock alone is stepped, as by an operator or NTP. No time passes. */
  stepWallClock: (ms: number) => void
  hold: () => void
}

/** `held_ms`: the wall clock stands there from the beginning, and the monotonic clock stands too. */
export function createClock(held_ms: number | null = null): Clock {
  let held = held_ms === null ? null : { now_ms: held_ms, elapsed_ms: elapsedMs() }
  let moved_ms = 0
  let stepped_ms = 0
  return {
    now: () => (held?.now_ms ?? Date.now()) + moved_ms + stepped_ms,
    elapsed: () => (held?.elapsed_ms ?? elapsedMs()) + moved_ms,
    advance(ms) {
      moved_ms += ms
    },
    stepWallClock(ms) {
      stepped_ms += ms
    },
    hold() {
      held ??= { now_ms: Date.now(), elapsed_ms: elapsedMs() }
    },
  }
}

function elapsedMs(): number {
  return Math.trunc(performance.now())
}
