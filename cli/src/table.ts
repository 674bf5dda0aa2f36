// Tables of text: columns are as wide as their longest cell. On a terminal the widest columns are cut until a row fits, and a
// cut cell ends in an ellipsis. Elsewhere nothing is cut.
import { visibleText } from '@musterhost/contract/visible-text'
import stringWidth from 'string-width'
import type { Terminal } from './terminal.ts'

export type TableColumn<Row> = {
  title: string
  text: (row: Row) => string
  align?: 'right'
  /** An id or address, which a user copies: the column is never cut. */
  is_whole?: boolean
}

const GAP = '  '
/** A column is not cut below this. */
const COLUMN_WIDTH_MIN = 8
const ELLIPSIS = '…'

/** Prints the rows, or `empty` when there are none. With --json it prints nothing: the caller prints the response. */
export function printTable<Row>(
  terminal: Terminal,
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  empty: string,
): void {
  if (terminal.is_json) return
  if (rows.length === 0) {
    terminal.note(empty)
    return
  }
  const cells = rows.map((row) => columns.map((column) => visibleText(column.text(row)).replaceAll('\t', ' ')))
  const titles = columns.map(({ title }) => title)
  const widths = fitted(
    columns.map((column, index) => ({
      width: Math.max(...[titles, ...cells].map((line) => stringWidth(line[index] ?? ''))),
      is_whole: column.is_whole === true,
    })),
    terminal.width,
  )
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, index) => padded(text, widths[index]!, columns[index]?.align))
      .join(GAP)
      .trimEnd()
  terminal.print(terminal.paint('bold', line(titles)))
  for (const texts of cells) terminal.print(line(texts))
}

/** Prints `name: value` lines with the values in a column. Values that are undefined are left out. */
export function printFields(terminal: Terminal, fields: readonly (readonly [string, string | undefined])[]): void {
  const shown = fields.filter((field): field is [string, string] => field[1] !== undefined)
  const width = Math.max(...shown.map(([name]) => name.length))
  for (const [name, value] of shown) {
    terminal.print(`${terminal.paint('bold', `${name}:`.padEnd(width + 1))} ${visibleText(value)}`)
  }
}

/** `1 player`, `2 players`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Takes columns from the widest that may be cut until the row fits, or no column can give more. */
function fitted(columns: readonly { width: number; is_whole: boolean }[], width_max: number): number[] {
  const widths = columns.map(({ width }) => width)
  let excess = widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1)) - width_max
  while (excess > 0) {
    let widest = -1
    for (const [index, width] of widths.entries()) {
      if (columns[index]?.is_whole || width <= COLUMN_WIDTH_MIN) continue
      if (widest === -1 || width > widths[widest]!) widest = index
    }
    if (widest === -1) break
    widths[widest]! -= 1
    excess -= 1
  }
  return widths
}

function padded(text: string, width: number, align: 'right' | undefined): string {
  const shown = cut(text, width)
  const fill = ' '.repeat(Math.max(0, width - stringWidth(shown)))
  return align === 'right' ? fill + shown : shown + fill
}

function cut(text: string, width: number): string {
  if (stringWidth(text) <= width) return text
  let kept = ''
  let kept_width = 0
  for (const character of text) {
    kept_width += stringWidth(character)
    if (kept_width > width - 1) break
    kept += character
  }
  return `${kept}${ELLIPSIS}`
}
