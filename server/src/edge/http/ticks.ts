// The one timer of all connections. A wait with a maximum stores the tick at which it began, and each later tick checks it.
// So a request starts no timer and reads no clock.
import type { Context } from '../../context.ts'
import { HEADER_CHECK_MS } from '../limits.ts'

export type Ticks = {
  /** The number of ticks so far. */
  readonly now: number
  /** The Date header of a response. */
  readonly date_line: string
  /** Calls `check` at every tick. */
  on: (check: () => void) => void
  close: () => void
}

export function createTicks(ctx: Pick<Context, 'now'>): Ticks {
  const dateLine = (): string => `Date: ${new Date(ctx.now()).toUTCString()}\r\n`
  const checks: (() => void)[] = []
  const ticks = {
    now: 0,
    date_line: dateLine(),
    on: (check: () => void) => void checks.push(check),
    close: () => clearInterval(timer),
  }
  const timer = setInterval(() => {
    ticks.now++
    ticks.date_line = dateLine()
    for (const check of checks) check()
  }, HEADER_CHECK_MS)
  timer.unref()
  return ticks
}

/** The number of ticks in this time, rounded up. */
export function ticksOf(ms: number): number {
  return Math.ceil(ms / HEADER_CHECK_MS)
}
