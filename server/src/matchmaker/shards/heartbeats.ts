// Which processes live, as one process sees it: by its own monotonic clock, since clocks of several machines are never compared. A
// process counts as dead when its heartbeat was not renewed for DEAD_MS, or sooner when its machine refuses connections to it
// (peer-watch.ts).
import type { Member } from './lease.ts'

/** A process whose heartbeat was not renewed for this long counts as dead. */
export const DEAD_MS = 2_000
/** It must have been seen unchanged so many times too: the database may have been away for all. */
const UNCHANGED_CHECKS_MIN = 4
/** After this time without a heartbeat it is asked whether it accepts connections. It has missed two heartbeats. */
const SUSPECT_MS = 1_100
const SUSPECT_CHECKS_MIN = 3
/** Heartbeats of a process that has ended which may be seen afterwards: the last one, and one that was under way. */
const LATE_BEATS_MAX = 2

/**
 * A process as it was seen last. `since_ms`: its heartbeat was not renewed since then; `observation_count`: how often it was seen
 * unchanged; `late_beats`: heartbeats that may still be seen though it has ended.
 */
type Watched = { seen: string; since_ms: number; observation_count: number; is_refused: boolean; late_beats: number }

export class Heartbeats {
  readonly #watched = new Map<string, Watched>()
  #last_observe_ms = Number.NEGATIVE_INFINITY

  /** All processes have been read. `now_ms`: by the monotonic clock. */
  observe(members: readonly Pick<Member, 'writer' | 'seen' | 'age_ms'>[], now_ms: number): void {
    const last_observe_ms = this.#last_observe_ms
    this.#last_observe_ms = now_ms
    for (const writer of this.#watched.keys()) {
      if (!members.some((member) => member.writer === writer)) this.#watched.delete(writer)
    }
    for (const { writer, seen, age_ms } of members) {
      const known = this.#watched.get(writer)
      if (known?.seen === seen) known.observation_count++
      else if (known === undefined) {
        this.#watched.set(writer, { seen, since_ms: now_ms, observation_count: 1, is_refused: false, late_beats: 0 })
      } else {
        // It was renewed after the observation before this one, whatever the clock of the database says.
        known.since_ms = Math.min(now_ms, Math.max(last_observe_ms, now_ms - age_ms))
        known.observation_count = 1
        known.is_refused = known.late_beats > 0
        known.late_beats = Math.max(0, known.late_beats - 1)
        known.seen = seen
      }
    }
  }

  /** When the next process counts as dead if its heartbeat is not renewed; null: none is watched. */
  nextDeadMs(): number | null {
    const times = [...this.#watched].flatMap(([writer, { since_ms }]) =>
      this.isDead(writer) ? [] : since_ms + DEAD_MS,
    )
    return times.length === 0 ? null : Math.min(...times)
  }

  isDead(writer: string): boolean {
    return this.#isSilent(writer, DEAD_MS, UNCHANGED_CHECKS_MIN) || this.#watched.get(writer)?.is_refused === true
  }

  /** Whether it is worth asking the process. */
  isSuspect(writer: string): boolean {
    return !this.isDead(writer) && this.#isSilent(writer, SUSPECT_MS, SUSPECT_CHECKS_MIN)
  }

  /** Its machine refuses connections to it. Its next heartbeat shows that it lives. */
  refused(writer: string): void {
    const watched = this.#watched.get(writer)
    if (watched !== undefined) watched.is_refused = true
  }

  /** It has ended: a heartbeat that is seen now was written before. */
  ended(writer: string): void {
    const watched = this.#watched.get(writer)
    if (watched !== undefined) Object.assign(watched, { is_refused: true, late_beats: LATE_BEATS_MAX })
  }

  #isSilent(writer: string, ms: number, observation_count: number): boolean {
    const watched = this.#watched.get(writer)
    return (
      watched !== undefined &&
      watched.observation_count >= observation_count &&
      this.#last_observe_ms - watched.since_ms >= ms
    )
  }
}
