// The worker of a log view: it parses lines, keeps them, and searches them, so that the page stays quick with 100,000 lines.
import { parseLine } from './log-lines.ts'
import { type FromWorker, type LogFilter, type LogRow, ROWS_MAX, type ToWorker } from './log-messages.ts'

/** Rows that are left out at once when there are too many. */
const ROWS_LEFT_OUT = 20_000
const ORDER_EVERY_MS = 100
const NONE = new Uint32Array()

let rows: LogRow[] = []
/** The number of the first row that is kept. */
let first = 0
/** Row numbers in the order of their times. */
let order: number[] = []
/** `order` is not sorted now. */
let is_stale = false
const last_line: number[] = []
let passes = (_row: LogRow): boolean => true

function send(message: FromWorker): void {
  postMessage(message)
}

function shownRows(numbers: readonly number[]): Uint32Array {
  return Uint32Array.from(numbers.filter((number) => passes(rows[number - first]!)))
}

function append(stream: number, lines: readonly { ts: string; text: string }[]): void {
  const latest = order.at(-1)
  const latest_ms = latest === undefined ? Number.NEGATIVE_INFINITY : rows[latest - first]!.ts_ms
  const parsed: LogRow[] = []
  const numbers: number[] = []
  for (const { ts, text } of lines) {
    last_line[stream] = (last_line[stream] ?? 0) + 1
    numbers.push(first + rows.length + parsed.length)
    parsed.push({ ...parseLine(text), stream, line: last_line[stream], ts_ms: Date.parse(ts) })
  }
  rows.push(...parsed)
  order.push(...numbers)
  const is_in_order = parsed.length === 0 || parsed[0]!.ts_ms >= latest_ms
  const is_cut = rows.length > ROWS_MAX
  if (is_cut) leaveOut()
  if (!is_in_order || is_cut) sendAllSoon()
  const added = is_stale ? NONE : shownRows(numbers)
  send({ kind: 'rows', rows: parsed, first, added, shown: null })
}

/** Two streams that arrive at once are put into order ten times a second, not for each message. */
function sendAllSoon(): void {
  if (is_stale) return
  is_stale = true
  setTimeout(() => {
    is_stale = false
    // The order is nearly sorted, and sorting keeps rows of one moment as they came.
    order.sort((a, b) => rows[a - first]!.ts_ms - rows[b - first]!.ts_ms)
    send({ kind: 'rows', rows: [], first, added: null, shown: shownRows(order) })
  }, ORDER_EVERY_MS)
}

function leaveOut(): void {
  rows = rows.slice(ROWS_LEFT_OUT)
  first += ROWS_LEFT_OUT
  order = order.filter((number) => number >= first)
}

function filterBy({ text, is_expression, level, streams }: LogFilter): void {
  let error: string | null = null
  let matches = (_text: string): boolean => true
  if (text !== '' && is_expression) {
    try {
      const expression = new RegExp(text, 'i')
      matches = (line) => expression.test(line)
    } catch (caught) {
      error = caught instanceof Error ? caught.message : String(caught)
    }
  } else if (text !== '') {
    const wanted = text.toLowerCase()
    matches = (line) => line.toLowerCase().includes(wanted)
  }
  const levels = level === 'all' ? null : level === 'warn' ? ['warn', 'error'] : ['error']
  passes = (row) => {
    if (!streams.includes(row.stream)) return false
    // A gap is shown whatever is searched: lines that match may have been in it.
    if (row.is_gap) return true
    return (levels === null || levels.includes(row.level)) && matches(row.text)
  }
  send({ kind: 'filtered', shown: shownRows(order), error })
}

addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if (data.kind === 'append') append(data.stream, data.lines)
  else filterBy(data.filter)
})
