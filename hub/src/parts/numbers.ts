// Numbers, sizes and times as people read them.

const COUNT = new Intl.NumberFormat('en')

export function count(value: number): string {
  return COUNT.format(value)
}

/** "1 player", "2 players". `many`: the plural when it is not the word with an s. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}

const BYTE_UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB']

/** Decimal units, as disks and bills count: 1,500,000 is "1.5 MB". */
export function bytes(value: number): string {
  let unit = 0
  let rest = value
  while (rest >= 999.5 && unit < BYTE_UNITS.length - 1) {
    rest /= 1_000
    unit++
  }
  return `${unit === 0 || rest >= 99.5 ? Math.round(rest) : Number(rest.toPrecision(2))} ${BYTE_UNITS[unit]}`
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`
}

const STEPS: readonly [ms: number, unit: string][] = [
  [365 * 86_400_000, 'y'],
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
]

/** From `least_ms` on, a time is a number of this unit. */
const ROUGH_STEPS: readonly [least_ms: number, step_ms: number, unit: string][] = [
  [2 * 365 * 86_400_000, 365 * 86_400_000, 'y'],
  [2 * 86_400_000, 86_400_000, 'd'],
  [100 * 60_000, 3_600_000, 'h'],
  [100_000, 60_000, 'min'],
  [0, 1_000, 's'],
]

/** About how long, in one unit, as it is short and moves seldom: "74 s", "42 min", "15 y". */
export function roughly(ms: number): string {
  const [, step_ms, unit] = ROUGH_STEPS.find(([least_ms]) => ms >= least_ms) ?? ROUGH_STEPS.at(-1)!
  return `${Math.round(ms / step_ms)} ${unit}`
}

/** The two largest units: "3 d 4 h", "12 min 5 s", "850 ms". */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  const parts: string[] = []
  let rest = ms
  for (const [step, unit] of STEPS) {
    const whole = Math.floor(rest / step)
    if (whole > 0 || parts.length > 0) parts.push(`${whole} ${unit}`)
    rest -= whole * step
    if (parts.length === 2) break
  }
  return parts.filter((part, at) => at === 0 || !part.startsWith('0 ')).join(' ')
}

const DAY_AND_TIME = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})
const TIME = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })

/** In the time zone of the browser. */
export function instant(ts: string | number): string {
  return DAY_AND_TIME.format(new Date(ts))
}

export function timeOfDay(ts: string | number): string {
  return TIME.format(new Date(ts))
}
