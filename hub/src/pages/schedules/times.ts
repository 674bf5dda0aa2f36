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

/** In seconds, the longest first. */
const UNITS: readonly (readonly [unit: string, length_s: number])[] = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
]

/** `4h`, as the command takes it. */
export function shortDuration(seconds: number): string {
  const [unit, length_s] = UNITS.find(([, length_s]) => seconds > 0 && seconds % length_s === 0) ?? ['s', 1]
  return `${seconds / length_s}${unit}`
}

/** Null: nothing is filled in. Undefined: the text is no duration. */
export function secondsOf(text: string): number | null | undefined {
  if (text.trim() === '') return null
  const [, digits, unit] = /^(\d{1,6}) ?([smhd])$/.exec(text.trim()) ?? []
  const length_s = UNITS.find(([name]) => name === unit)?.[1]
  return length_s === undefined ? undefined : Number(digits) * length_s
}
