// What a lobby used over its life, as lines of small bars: processor, memory, traffic and players.
import { ApiError, getLobbyUsage, type LobbyUsagePoint, type ResponseOf } from '@musterhost/contract'
import { sizeText } from '../progress.ts'
import type { Session } from '../session.ts'
import { printTable } from '../table.ts'
import type { Terminal } from '../terminal.ts'
import { durationText } from '../times.ts'

export type LobbyUsage = ResponseOf<typeof getLobbyUsage>

/** Characters of a line of bars, so that a row fits into 80 columns. */
const BARS_MAX = 15
const BARS = '▁▂▃▄▅▆▇█'
/** Where nothing was counted. */
const NO_BAR = ' '

/** Null: the machine of the lobby does not respond. */
export async function readUsage(session: Session, params: { game_id: string; lobby_id: string }) {
  try {
    return await session.client.call(getLobbyUsage, { params, query: {} })
  } catch (error) {
    if (error instanceof ApiError && error.code === 'LOBBY_LOGS_NOT_REACHABLE') return null
    throw error
  }
}

type Line = {
  name: string
  of: (point: LobbyUsagePoint) => number | undefined
  text: (value: number) => string
  limit: string
}

export function printUsage(terminal: Terminal, usage: LobbyUsage | null): void {
  if (usage === null) {
    terminal.note('Its usage cannot be read: the machine of the lobby does not respond.')
    return
  }
  const { points, step_ms } = usage
  const first = points[0]
  const last = points.at(-1)
  if (first === undefined || last === undefined) {
    terminal.note('No usage was measured yet.')
    return
  }
  const span_ms = Date.parse(last.ts) - Date.parse(first.ts) + step_ms
  terminal.print('')
  printTable(
    terminal,
    linesOf(usage),
    [
      { title: `OVER ${durationText(span_ms)}`, text: ({ name }) => name, is_whole: true },
      { title: 'LAST', text: ({ of, text }) => valueText(of(last), text), align: 'right' },
      { title: 'MEAN', text: ({ of, text }) => valueText(meanOf(points, of), text), align: 'right' },
      { title: 'PEAK', text: ({ of, text }) => valueText(peakOf(points, of), text), align: 'right' },
      { title: 'LIMIT', text: ({ limit }) => limit, align: 'right' },
      { title: 'COURSE', text: ({ of }) => bars(points.map(of)), is_whole: true },
    ],
    '',
  )
}

function linesOf({ cpu_cores, memory_bytes, step_ms }: LobbyUsage): Line[] {
  const perSecond = (bytes: number): string => `${sizeText((bytes / step_ms) * 1000)}/s`
  const cores = (value: number): string => `${value.toFixed(2)} cores`
  return [
    { name: 'CPU', of: (point) => point.cpu_cores, text: cores, limit: cores(cpu_cores) },
    { name: 'memory', of: (point) => point.memory_bytes, text: sizeText, limit: sizeText(memory_bytes) },
    { name: 'from players', of: (point) => point.bytes_in, text: perSecond, limit: '' },
    { name: 'to players', of: (point) => point.bytes_out, text: perSecond, limit: '' },
    {
      name: 'players',
      of: (point) => point.player_count,
      text: (count) => String(Math.round(count * 10) / 10),
      limit: '',
    },
  ]
}

type Points = readonly LobbyUsagePoint[]

function valueText(value: number | undefined, text: Line['text']): string {
  return value === undefined ? '-' : text(value)
}

function countedOf(points: Points, of: Line['of']): number[] {
  return points.map(of).filter((value) => value !== undefined)
}

function meanOf(points: Points, of: Line['of']): number | undefined {
  const values = countedOf(points, of)
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length
}

function peakOf(points: Points, of: Line['of']): number | undefined {
  const values = countedOf(points, of)
  return values.length === 0 ? undefined : Math.max(...values)
}

/** One character for each step, or for as many steps as fit in one: the highest of them. */
export function bars(values: readonly (number | undefined)[]): string {
  const per_bar = Math.ceil(values.length / BARS_MAX)
  const peak = Math.max(0, ...values.filter((value) => value !== undefined))
  const shown = Array.from({ length: Math.ceil(values.length / per_bar) }, (_, index) =>
    values.slice(index * per_bar, (index + 1) * per_bar).filter((value) => value !== undefined),
  )
  return shown.map((some) => (some.length === 0 ? NO_BAR : barOf(Math.max(...some), peak))).join('')
}

function barOf(value: number, peak: number): string {
  return BARS[peak === 0 ? 0 : Math.min(BARS.length - 1, Math.floor((value / peak) * BARS.length))]!
}
