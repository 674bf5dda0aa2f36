// The next times of a schedule, in its own zone and in that of the viewer.

const PARTS = { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' } as const

/** Example: `Fri 4 Dec, 18:00`. A zone that this browser does not know is shown as UTC. */
export function timeIn(ts: string, time_zone: string | undefined): string {
  const date = new Date(ts)
  try {
    return new Intl.DateTimeFormat('en-GB', { ...PARTS, timeZone: time_zone }).format(date)
  } catch {
    return `${new Intl.DateTimeFormat('en-GB', { ...PARTS, timeZone: 'UTC' }).format(date)} UTC`
  }
}

export function ownZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone
}

/** `4h`, as the command takes it. */
export function shortDuration(seconds: number): string {
  for (const [unit, length] of [
    ['d', 86_400],
    ['h', 3_600],
    ['m', 60],
  ] as const) {
    if (seconds > 0 && seconds % length === 0) return `${seconds / length}${unit}`
  }
  return `${seconds}s`
}
