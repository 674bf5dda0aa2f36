// What is done about a step whose time has come: late or not, or missed. Pure.
import type { ScheduleKind } from '@musterhost/contract'
import type { ScheduleStep } from './occurrences.ts'

/** How late an announcement or a restart may still be done. Windows may begin late for as long as they last. */
export const LATE_MS_MAX = 10 * 60_000
/** Missed steps of one pass that have an entry each. One entry stands for the older ones. */
export const MISSED_ENTRIES_MAX = 20

/** Whether the step is still done. */
export function isInTime(
  kind: ScheduleKind,
  duration_s: number | undefined,
  step: ScheduleStep,
  now_ms: number,
): boolean {
  // An announcement is of no use when what it announces has begun.
  if (step.before_s > 0) return now_ms < step.due_ms && now_ms - step.at_ms <= LATE_MS_MAX
  const is_window = kind === 'idle_lobbies' || kind === 'drain'
  if (is_window) return now_ms < step.due_ms + (duration_s ?? 0) * 1_000
  return now_ms - step.at_ms <= LATE_MS_MAX
}

export type Missed = { step: ScheduleStep; missed_count: number }

/** The entries for missed steps, which are in their order. */
export function missedEntries(steps: readonly ScheduleStep[]): Missed[] {
  const single = steps.slice(-MISSED_ENTRIES_MAX)
  const older = steps.slice(0, -MISSED_ENTRIES_MAX)
  const last = older.at(-1)
  const entries = single.map((step) => ({ step, missed_count: 1 }))
  return last === undefined ? entries : [{ step: last, missed_count: older.length }, ...entries]
}

/** The text of an announcement: `{minutes}` becomes the minutes until the occurrence. */
export function announcementText(text: string, due_ms: number, now_ms: number): string {
  return text.replaceAll('{minutes}', String(Math.max(1, Math.round((due_ms - now_ms) / 60_000))))
}
