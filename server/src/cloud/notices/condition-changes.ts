// Which conditions have begun or ended since the pass before, by what is stored of each. Pure.
import type { Condition } from './conditions.ts'
import type { FoundNotice } from './notice.ts'

/** `begin_ms`: when it was first found. `is_told`: whether it was noticed. */
export type ConditionState = { begin_ms: number; is_told: boolean; event: string; node_id?: string; title: string }
export type StoredState = { value: ConditionState; seen_ms: number }

export type ConditionChanges = {
  found: FoundNotice[]
  put: Map<string, ConditionState>
  removed: string[]
}

/** A condition that lasts is written again after this, so that its end is known to a minute. */
const SEEN_MS = 60_000

/** `is_first`: what is wrong when the first target is made is not news. */
export function compareConditions(
  conditions: readonly Condition[],
  stored: ReadonlyMap<string, StoredState>,
  { now_ms, is_first }: { now_ms: number; is_first: boolean },
): ConditionChanges {
  const changes: ConditionChanges = { found: [], put: new Map(), removed: [] }
  const present = new Set<string>()
  for (const { key, hold_ms, ...condition } of conditions) {
    present.add(key)
    const before = stored.get(key)
    const begin_ms = before?.value.begin_ms ?? now_ms
    const was_told = before?.value.is_told === true
    const is_due = !was_told && now_ms - begin_ms >= hold_ms
    if (is_due && !is_first) {
      changes.found.push({ ...condition, source: `${key} ${begin_ms}`, ts_ms: now_ms })
    }
    if (before === undefined || is_due || now_ms - before.seen_ms >= SEEN_MS) {
      changes.put.set(key, {
        ...{ begin_ms, is_told: was_told || is_due || is_first, event: condition.event, title: condition.title },
        ...(condition.node_id === undefined ? {} : { node_id: condition.node_id }),
      })
    }
  }
  for (const [key, state] of stored) {
    if (present.has(key) || !isGone(state, now_ms)) continue
    changes.removed.push(key)
    if (state.value.event === 'node_away' && state.value.is_told) changes.found.push(backNotice(key, state, now_ms))
  }
  return changes
}

/** A condition that comes and goes within this time is noticed once. */
const CLEARED_MS = 300_000

/** Nodes are back at once; what fails now and then counts as one. */
function isGone({ value, seen_ms }: StoredState, now_ms: number): boolean {
  return value.event.startsWith('node_') || now_ms - seen_ms > CLEARED_MS
}

function backNotice(key: string, { value }: StoredState, now_ms: number): FoundNotice {
  const minutes = Math.round((now_ms - value.begin_ms) / 60_000)
  const { node_id } = value
  return {
    source: `${key} back ${value.begin_ms}`,
    event: 'node_back',
    severity: 'info',
    title: node_id === undefined ? `It is over: ${value.title}` : `The node ${node_id} is back`,
    text: `It was away for ${minutes <= 1 ? 'about a minute' : `${minutes} minutes`}.`,
    ts_ms: now_ms,
    ...(node_id === undefined ? {} : { node_id }),
  }
}
