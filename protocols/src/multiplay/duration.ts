// Durations as Go writes them. Example: `1h2m3.5s`.
const UNITS_MS = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
])
const TEXT_LENGTH_MAX = 64

/** In milliseconds; null: not a duration, or a negative one. */
export function parseGoDuration(text: string): number | null {
  if (text === '0') return 0
  if (text.length > TEXT_LENGTH_MAX || !/^\+?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/.test(text)) return null
  let ms = 0
  for (const [, number, unit] of text.matchAll(/([\d.]{1,64})([a-zµ]{1,2})/gy))
    ms += Number(number) * (UNITS_MS.get(unit ?? '') ?? 0)
  return ms
}
