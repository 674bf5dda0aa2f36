// Makes texts for which a regular expression may be slow: one short piece of a matching text is repeated, and the end is
// changed so that the whole does not match. Times of growing texts are compared, so that a slow machine does not fail.
import fc from 'fast-check'

/** Repetitions of the piece. Exponential backtracking shows at the first ones. */
const FEW = [12, 16, 20, 24]
/** With this many repetitions, linear time takes microseconds, and quadratic time milliseconds. */
const MANY = 3_000
const SUSPECT_MS = 1
/** A text four times as long may take four times as long. Quadratic time would take sixteen times as long. */
const MORE = 4
const RATIO_MAX = 9
/** The shortest of this many runs counts, because the machine has other work. */
const AGAIN = 4
const SAMPLES = 12
const PIECE_MAX = 3
const TEXT_MAX = 24
const ENDS = ['', '\u0000', '!', '\n', ' ', '1']
/** Pieces that are tried in addition to those of the expression. */
const COMMON = ['a', '0', ' ', '-', '.', '/', '\\', '"', '\t', '\n', 'é', 'A', '_', ',', ';', '=', ':']

export type Slow = { before: string; piece: string; end: string; times_ms: number[] }

/** Returns null when no text was found for which the time grows faster than the text. */
export function findSlow(expression: RegExp): Slow | null {
  for (const { before, piece } of pumpsOf(expression)) {
    for (const end of ENDS) {
      const times_ms = timesOf(expression, (count) => before + piece.repeat(count) + end)
      if (times_ms !== null) return { before, piece, end, times_ms }
    }
  }
  return null
}

/** Returns null when the times grow with the texts. */
function timesOf(expression: RegExp, textOf: (count: number) => string): number[] | null {
  for (const count of FEW) {
    const text = textOf(count)
    if (timeOf(expression, text) > SUSPECT_MS && leastOf(expression, text) > SUSPECT_MS)
      return [leastOf(expression, text)]
  }
  const many = textOf(MANY)
  if (timeOf(expression, many) < SUSPECT_MS) return null
  const times_ms = [leastOf(expression, many), leastOf(expression, textOf(MANY * MORE))] as const
  return times_ms[0] > SUSPECT_MS && times_ms[1] > times_ms[0] * RATIO_MAX ? [...times_ms] : null
}

function leastOf(expression: RegExp, text: string): number {
  return Math.min(...Array.from({ length: AGAIN }, () => timeOf(expression, text)))
}

function timeOf(expression: RegExp, text: string): number {
  const began = performance.now()
  expression.lastIndex = 0
  expression.test(text)
  return performance.now() - began
}

type Pump = { before: string; piece: string }

function pumpsOf(expression: RegExp): Pump[] {
  const own = [...new Set(expression.source.replace(/\\[a-zA-Z]/g, ''))].filter(
    (char) => !'^$()[]{}|?*+\\'.includes(char),
  )
  const pumps = new Map<string, Pump>()
  const add = (before: string, piece: string): void => void pumps.set(`${before}\0${piece}`, { before, piece })
  for (const piece of [...COMMON, ...own]) add('', piece)
  for (const text of samplesOf(expression)) {
    for (let from = 0; from < text.length; from++) {
      for (let length = 1; length <= PIECE_MAX && from + length <= text.length; length++) {
        add(text.slice(0, from), text.slice(from, from + length))
      }
    }
  }
  return [...pumps.values()]
}

/** The generator of texts supports neither look-around nor Unicode properties. Such expressions get the common pieces only. */
function samplesOf({ source }: RegExp): string[] {
  if (/\(\?<?[=!]|\\p\{/.test(source)) return []
  const without_edges = new RegExp(source.replaceAll('\\b', ''))
  const texts = fc.sample(fc.stringMatching(without_edges), { numRuns: SAMPLES, seed: 1 })
  return texts.map((text) => text.slice(0, TEXT_MAX))
}
