// Which processes live, as one process sees it: by its own monotonic clock, since clocks of several machines are never compared. A
// process counts as dead when its heartbeat was not renewed for DEAD_MS, or sooner when its machine refuses connections to it.
import type { Member } from './lease.ts'

/** A process whose heartbeat was not renewed for this long counts as dead. */
export const DEAD_MS = 2_000
/** It must have been seen unchanged so many times too: the database may have been away for all. */
const UNCHANGED_LOOKS_MIN = 4
/** After this time without a heartbeat it is asked whether it accepts connections. It has missed two heartbeats. */
const SUSPECT_MS = 1_100
const SUSPECT_LOOKS_MIN = 3

/** A process as it was seen last. `since_ms`: when its heartbeat was first seen as it is now; `looks`: how often since then. */
type Watched = { seen: string; since_ms: number; looks: number; is_refused: boolean }

export class Heartbeats {
  readonly #watched = new Map<string, Watched>()
  #last_look_ms = Number.NEGATIVE_INFINITY

  /** All processes have been read. `now_ms`: by the monotonic clock. */
  look(members: readonly Pick<Member, 'writer' | 'seen'>[], now_ms: number): void {
    this.#last_look_ms = now_ms
    for (const writer of this.#watched.keys()) {
      if (!members.some((member) => member.writer === writer)) this.#watched.delete(writer)
    }
    for (const { writer, seen } of members) {
      const known = this.#watched.get(writer)
      if (known?.seen === seen) known.looks++
      else this.#watched.set(writer, { seen, since_ms: now_ms, looks: 1, is_refused: false })
    }
  }

  isDead(writer: string): boolean {
    return this.#isSilent(writer, DEAD_MS, UNCHANGED_LOOKS_MIN) || this.#watched.get(writer)?.is_refused === true
  }

  /** Whether it is worth asking the process. */
  isSuspect(writer: string): boolean {
    return !this.isDead(writer) && this.#isSilent(writer, SUSPECT_MS, SUSPECT_LOOKS_MIN)
  }

  /** Its machine refuses connections to it. Its next heartbeat shows that it lives. */
  refused(writer: string): void {
    const watched = this.#watched.get(writer)
    if (watched !== undefined) watched.is_refused = true
  }

  #isSilent(writer: string, ms: number, looks: number): boolean {
    const watched = this.#watched.get(writer)
    return watched !== undefined && watched.looks >= looks && this.#last_look_ms - watched.since_ms >= ms
  }
}
