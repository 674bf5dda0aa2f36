// Every constant of the platform whose name ends in `_MAX`, with its value and the comment that describes it.
import { glob, readFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'

export type Limit = {
  folder: string
  file: string
  name: string
  /** As a person reads it: `16 KiB`, `10 s`, `1,024`, or the expression of the code. */
  value: string
  /** The comment of the constant; empty if it has none. */
  description: string
}

const SOURCES = '{contract,protocols,server,sdk,cli}/src/**/*.ts'
const CONSTANT = /^ *(?:export )?const ([A-Z][A-Z0-9_]*)\b[^=]*=(?: (.*))?$/
const NUMERIC = /^[\d_]+(?: (?:\*\*|[*/+-]) [\d_]+)*$/

/** Sorted by folder, file and position. */
export async function readLimits(root: string): Promise<Limit[]> {
  const files: string[] = []
  for await (const file of glob(SOURCES, { cwd: root, exclude: (path) => path.includes('node_modules') })) {
    if (!/\.(test|model\.test)\.ts$/.test(file)) files.push(file)
  }
  files.sort((a, b) => compare(dirname(a), dirname(b)) || compare(a, b))
  const limits: Limit[] = []
  for (const file of files) limits.push(...limitsOf(file, await readFile(`${root}/${file}`, 'utf8')))
  return limits
}

export function limitsOf(file: string, text: string): Limit[] {
  const lines = text.split('\n')
  const values = new Map<string, string>()
  const limits: Limit[] = []
  for (const [index, line] of lines.entries()) {
    const [, name = '', right = ''] = CONSTANT.exec(line) ?? []
    if (name === '') continue
    const [first = '', trailing = ''] = right.split(/ +\/\/ /)
    const expression = wholeExpression(first, lines, index)
    values.set(name, expression)
    if (!name.endsWith('_MAX')) continue
    limits.push({
      folder: dirname(file),
      file: basename(file),
      name,
      value: shown(name, expression, values),
      description: commentAbove(lines, index) || trailing,
    })
  }
  return limits
}

/** An expression goes on in the next line after `=` and after an operator. */
function wholeExpression(first: string, lines: readonly string[], index: number): string {
  let expression = first.trim()
  for (let next = index + 1; /^$|[+*/-]$/.test(expression) && next < lines.length; next++) {
    expression = `${expression} ${lines[next]?.trim() ?? ''}`.trim()
  }
  return expression
}

/** The block or the lines of comment that end right above a line. */
function commentAbove(lines: readonly string[], index: number): string {
  const comment: string[] = []
  for (let at = index - 1; at >= 0; at--) {
    const line = (lines[at] ?? '').trim()
    const is_block = line.startsWith('/**') || line.startsWith('* ') || line === '*/' || line === '*'
    if (!is_block && !line.startsWith('// ')) break
    comment.unshift(line.replace(/^(?:\/\*\*|\*\/|\*|\/\/) ?/, '').replace(/ ?\*\/$/, ''))
    if (line.startsWith('/**')) break
  }
  return comment.join(' ').trim()
}

/** `values`: the expressions of the constants above in the same file. */
function shown(name: string, expression: string, values: ReadonlyMap<string, string>): string {
  const digits = expression.replace(/\b[A-Z][A-Z0-9_]*\b/g, (word) => {
    const numeric = values.get(word) ?? word
    return NUMERIC.test(numeric) ? String(calculate(numeric)) : word
  })
  if (!NUMERIC.test(digits)) return `\`${expression}\``
  const value = calculate(digits)
  if (/_BYTES(?:_|$)/.test(name)) return inUnits(value, 1_024, ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'])
  if (/_MS(?:_|$)/.test(name)) return asDuration(value)
  return value.toLocaleString('en')
}

/** Powers before products before sums: constants have no parentheses. */
function calculate(expression: string): number {
  let sum = 0
  for (const [, sign, product = ''] of `+ ${expression}`.matchAll(/([+-]) ([\d_]+(?: (?:\*\*|[*/]) [\d_]+)*)/g)) {
    let value = 1
    for (const [, operator, base, exponent] of `* ${product}`.matchAll(/(?<!\*)([*/]) ([\d_]+)(?: \*\* ([\d_]+))?/g)) {
      const operand = numberOf(base) ** numberOf(exponent ?? '1')
      value = operator === '*' ? value * operand : value / operand
    }
    sum += sign === '+' ? value : -value
  }
  return sum
}

function numberOf(digits = ''): number {
  return Number(digits.replaceAll('_', ''))
}

function asDuration(ms: number): string {
  for (const [length, unit] of [
    [86_400_000, 'days'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1_000, 's'],
  ] as const) {
    if (ms >= length && ms % length === 0) return `${ms / length} ${unit}`
  }
  return `${ms.toLocaleString('en')} ms`
}

function inUnits(value: number, step: number, units: readonly string[]): string {
  let scaled = value
  let unit = 0
  while (scaled >= step && scaled % step === 0 && unit < units.length - 1) {
    scaled /= step
    unit++
  }
  return `${scaled.toLocaleString('en')} ${units[unit]}`
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
