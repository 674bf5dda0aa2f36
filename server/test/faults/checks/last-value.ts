// The permitted values of a member that one client wrote repeatedly: the last acknowledged write, or an unknown one.
import type { Entry } from '../history.ts'

/** Time in which an attempt without a response may still take effect: a statement runs 10 s, a held request 5 s. */
const LATE_MS_MAX = 15_000

type Write = Pick<Entry, 'begin_ms' | 'end_ms' | 'attempt_count' | 'outcome'>

/** `writes`: in order, without refused ones. `initial`: the value before the first write. */
export function possibleValues<W extends Write, T>(writes: readonly W[], written: (write: W) => T, initial: T): Set<T> {
  const last = writes.findLastIndex(({ outcome }) => outcome.status === 'acknowledged')
  const last_begin_ms = writes[last]?.begin_ms ?? Number.NEGATIVE_INFINITY
  const possible = new Set<T>([last === -1 ? initial : written(writes[last]!)])
  for (const [index, write] of writes.entries()) {
    const { outcome, attempt_count, end_ms } = write
    const may_be_late = outcome.status === 'unknown' || (outcome.status === 'acknowledged' && attempt_count > 1)
    if (!may_be_late) continue
    if (index > last || end_ms + LATE_MS_MAX > last_begin_ms) possible.add(written(write))
  }
  return possible
}
