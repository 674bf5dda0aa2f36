// The one timer of all connections. What may take only so long remembers the tick at which it began, and is looked at with
// every later one: no timer is started for a request, and no moment is asked for.
import type { Context } from '../../context.ts'
import { HEADER_CHECK_MS } from '../limits.ts'

export type Ticks = {
  /** How many there have been. */
  readonly now: number
  /** The header that says when an answer was made. */
  readonly date_line: string
  on: (look: () => void) => void
  close: () => void
}

export function createTicks(ctx: Pick<Context, 'now'>): Ticks {
  const dateLine = (): string => `Date: ${new Date(ctx.now()).toUTCString()}\r\n`
  const looks: (() => void)[] = []
  const ticks = {
    now: 0,
    date_line: dateLine(),
    on: (look: () => void) => void looks.push(look),
    close: () => clearInterval(timer),
  }
  const timer = setInterval(() => {
    ticks.now++
    ticks.date_line = dateLine()
    for (const look of looks) look()
  }, HEADER_CHECK_MS)
  timer.unref()
  return ticks
}

/** How many ticks it takes until at least so much time has passed, but for a part of one. */
export function ticksOf(ms: number): number {
  return Math.ceil(ms / HEADER_CHECK_MS)
}
