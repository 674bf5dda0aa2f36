// The clock of a platform under test: the machine's, moved, or held where it is.

export type Clock = { now: () => number; advance: (ms: number) => void; hold: () => void }

/** `held_ms`: it stands there from the beginning. */
export function createClock(held_ms: number | null = null): Clock {
  let moved_ms = 0
  return {
    now: () => (held_ms ?? Date.now()) + moved_ms,
    advance(ms) {
      moved_ms += ms
    },
    hold() {
      held_ms ??= Date.now()
    },
  }
}
