// When a schedule is due. Pure: the caller says what time it is. A fixed time that does not exist on a day, because clocks go
// forward, is due at the first moment after the gap. One that exists twice is due once, at the first.
import { Cron } from 'croner'

export type Timing = {
  cron: string
  time_zone: string
  /** Seconds before an occurrence at which it is announced. */
  before_s: readonly number[]
}

/** `at_ms`: when it is to be done. `due_ms`: the occurrence that it belongs to. */
export type ScheduleStep = { at_ms: number; due_ms: number; before_s: number }

/** Whether this process knows the time zone. */
export function isTimeZone(time_zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: time_zone })
    return true
  } catch {
    return false
  }
}

/** What is wrong with the expression; null: nothing. */
export function cronFault(cron: string): string | null {
  try {
    return open(cron, 'UTC').nextRun(new Date(0)) === null ? 'No day fits this expression.' : null
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error)
  }
}

/** The next occurrences after a time. */
export function nextOccurrences(
  { cron, time_zone }: Pick<Timing, 'cron' | 'time_zone'>,
  after_ms: number,
  count: number,
): number[] {
  return open(cron, time_zone)
    .nextRuns(count, new Date(after_ms))
    .map((date) => date.getTime())
}

/** The first step after a time; null: there is none. Of steps at the same time, the announcement comes first. */
export function nextStep({ cron, time_zone, before_s }: Timing, after_ms: number): ScheduleStep | null {
  const opened = open(cron, time_zone)
  let first: ScheduleStep | null = null
  for (const before of [...before_s, 0]) {
    const due_ms = opened.nextRun(new Date(after_ms + before * 1_000))?.getTime()
    if (due_ms === undefined) continue
    const at_ms = due_ms - before * 1_000
    if (first === null || at_ms < first.at_ms) first = { at_ms, due_ms, before_s: before }
  }
  return first
}

/** The steps after `after_ms`, until `until_ms`, in their order; at most `count_max`. */
export function stepsBetween(timing: Timing, after_ms: number, until_ms: number, count_max: number): ScheduleStep[] {
  const opened = open(timing.cron, timing.time_zone)
  const steps: ScheduleStep[] = []
  for (const before_s of [...new Set([...timing.before_s, 0])]) {
    let due = opened.nextRun(new Date(after_ms + before_s * 1_000))
    for (let count = 0; due !== null && count < count_max; count++) {
      const due_ms = due.getTime()
      const at_ms = due_ms - before_s * 1_000
      if (at_ms > until_ms) break
      steps.push({ at_ms, due_ms, before_s })
      due = opened.nextRun(due)
    }
  }
  return steps.sort((a, b) => a.at_ms - b.at_ms || b.before_s - a.before_s).slice(0, count_max)
}

/** Lists and ranges are fixed times as well as single values, so that none of them is left out in a gap. */
function open(cron: string, time_zone: string): Cron {
  return new Cron(cron, { timezone: time_zone, mode: '5-part', fixedTimeRule: 'no-wildcard', paused: true })
}
