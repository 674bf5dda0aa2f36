// Whether a minute was good for players. Pure: it decides from what was counted in the minute and from the probes of the api role.

export const MINUTE_MS = 60_000
/** Probes of one minute that failed, from which on the minute is bad: the platform was away for about ten seconds. */
const FAILED_PROBES_MIN = 2
/** Share of finds or starts that failed, from which on the minute is bad. */
const FAILED_SHARE_BAD = 0.5
/** Minutes whose outcome is kept by letter, for the state of now. */
const RECENT_MAX = 10
/** The last minutes that make the state of now. */
const NOW_MINUTES = 3

/** `g`: good, `b`: bad, `-`: not measured. */
export type Minute = 'g' | 'b' | '-'

/** Probes of a part in one minute. */
export type ProbeCount = { probe_count: number; failed_count: number }
/** `ended_count`: finds with a seat or refused without a part of the client; or servers that became ready or failed before. */
export type EventCount = { ended_count: number; failed_count: number }

export function minuteOf(probes: ProbeCount | undefined, events: EventCount | undefined): Minute {
  if (probes !== undefined && probes.failed_count >= FAILED_PROBES_MIN) return 'b'
  if (events !== undefined && events.ended_count > 0) {
    return events.failed_count / events.ended_count >= FAILED_SHARE_BAD ? 'b' : 'g'
  }
  return probes === undefined || probes.probe_count === 0 ? '-' : 'g'
}

/** `recent`: letters of the minutes before, oldest first. */
export function addRecent(recent: string, minutes: readonly Minute[]): string {
  return (recent + minutes.join('')).slice(-RECENT_MAX)
}

/** The state of a part from its last minutes. */
export function stateOfRecent(recent: string): 'operational' | 'degraded' | 'outage' | 'unknown' {
  const last = recent.slice(-NOW_MINUTES)
  const measured = last.replaceAll('-', '')
  if (measured === '') return 'unknown'
  if (!measured.includes('b')) return 'operational'
  return measured.endsWith('b') && !measured.includes('g') ? 'outage' : 'degraded'
}

/** The day of UTC, as `yyyy-mm-dd`. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 'yyyy-mm-dd'.length)
}
