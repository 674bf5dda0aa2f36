// Times and durations for people. JSON has RFC 3339, as the API.
import type { Terminal } from './terminal.ts'

const STEPS = [
  { ms: 24 * 60 * 60_000, unit: 'd' },
  { ms: 60 * 60_000, unit: 'h' },
  { ms: 60_000, unit: 'min' },
  { ms: 1000, unit: 's' },
] as const

/** `3 min ago`, and `in 30 d` for what is to come. */
export function ago(terminal: Pick<Terminal, 'now'>, ts: string): string {
  const past_ms = terminal.now() - Date.parse(ts)
  if (Math.abs(past_ms) < 1000) return 'now'
  return past_ms > 0 ? `${durationText(past_ms)} ago` : `in ${remainingText(-past_ms)}`
}

/** Rounded, so that a lifetime of 3 d does not become 2 d within the first second. */
function remainingText(ms: number): string {
  const step = STEPS.find((one) => ms >= one.ms - one.ms / 24)
  return step === undefined ? durationText(ms) : `${Math.round(ms / step.ms)} ${step.unit}`
}

/** The largest unit: `5 s`, `3 min`, `2 h`, `30 d`; below a second `250 ms`. */
export function durationText(ms: number, toWhole = Math.floor): string {
  for (const { ms: unit_ms, unit } of STEPS) if (ms >= unit_ms) return `${toWhole(ms / unit_ms)} ${unit}`
  return `${ms < 10 && !Number.isInteger(ms) ? ms.toFixed(1) : Math.round(ms)} ms`
}
