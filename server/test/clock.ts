// The clock of a platform under test: the machine's, moved, or held where it is.

export type Clock = { now: () => number; advance: (ms: number) => void; hold: () => void }

export function createClock(): Clock {
  let moved_ms = 0
  let held_ms: number | null = null
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
