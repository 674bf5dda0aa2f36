// Expressions over single lines of a log, which developers write and the platform runs. The time of a match grows with the
// length of the line and of the expression, and never faster: all alternatives advance together, one character at a time
// (Thompson, 1968). So no expression can block a process.
//
// The syntax is the common part of regular expressions: `.`, `[a-z]`, `[^a-z]`, `\d`, `\w`, `\s` and their complements,
// groups, `|`, `*`, `+`, `?`, `^` and `$`. There are no counted repetitions, look-arounds and back references.

/** Characters of an expression. */
export const EXPRESSION_LENGTH_MAX = 200
/** Characters of a line that are compared. */
const LINE_LENGTH_MAX = 512

type CodeRange = readonly [first: number, last: number]
type CharacterSet = { ranges: readonly CodeRange[]; is_complement: boolean }

type Step =
  | { kind: 'character'; set: CharacterSet }
  | { kind: 'split'; to: number; or: number }
  | { kind: 'start' | 'end' | 'match' }

export class LineExpression {
  readonly #steps: readonly Step[]

  constructor(steps: readonly Step[]) {
    this.#steps = steps
  }

  /** Whether some part of the line matches. Only the first 512 characters count. */
  matches(line: string): boolean {
    const length = Math.min(line.length, LINE_LENGTH_MAX)
    const marks = new Int32Array(this.#steps.length).fill(-1)
    let current: number[] = []
    for (let at = 0; at <= length; at++) {
      const is_end = at === line.length
      if (this.#follow(0, { at, is_end, marks, steps: current })) return true
      if (at === length) return false
      const next: number[] = []
      const code = line.charCodeAt(at)
      for (const index of current) {
        const step = this.#steps[index]!
        if (step.kind !== 'character' || !includes(step.set, code)) continue
        const place = { at: at + 1, is_end: at + 1 === line.length, marks, steps: next }
        if (this.#follow(index + 1, place)) return true
      }
      current = next
    }
    return false
  }

  /** Adds the steps that are reached without a character. Returns whether the match is one of them. */
  #follow(first: number, place: { at: number; is_end: boolean; marks: Int32Array; steps: number[] }): boolean {
    const { at, is_end, marks, steps } = place
    const left = [first]
    for (let index = left.pop(); index !== undefined; index = left.pop()) {
      if (marks[index] === at) continue
      marks[index] = at
      const step = this.#steps[index]!
      if (step.kind === 'match') return true
      if (step.kind === 'character') steps.push(index)
      else if (step.kind === 'split') left.push(step.or, step.to)
      else if (step.kind === 'start' ? at === 0 : is_end) left.push(index + 1)
    }
    return false
  }
}

/** Why a text is no expression. */
export class ExpressionError extends Error {}

/** Throws an ExpressionError that names the place. */
export function readLineExpression(text: string): LineExpression {
  if (text.length > EXPRESSION_LENGTH_MAX) {
    throw new ExpressionError(`it has more than ${EXPRESSION_LENGTH_MAX} characters`)
  }
  return new LineExpression([...new Reader(text).read(), { kind: 'match' }])
}

/** Steps whose numbers count from their own beginning, so that they can be moved. */
type Part = Step[]

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): Part {
    const part = this.#alternatives()
    if (this.#at < this.#text.length) throw this.#error('a closing bracket without an opening one')
    return part
  }

  #alternatives(): Part {
    let part = this.#sequence()
    while (this.#take('|')) {
      const other = this.#sequence()
      const jump: Step = { kind: 'split', to: part.length + 2 + other.length, or: part.length + 2 + other.length }
      part = [{ kind: 'split', to: 1, or: part.length + 2 }, ...moved(part, 1), jump, ...moved(other, part.length + 2)]
    }
    return part
  }

  #sequence(): Part {
    const part: Part = []
    while (this.#at < this.#text.length && this.#text[this.#at] !== '|' && this.#text[this.#at] !== ')') {
      part.push(...moved(this.#repeated(this.#single()), part.length))
    }
    return part
  }

  #repeated(part: Part): Part {
    const [mark] = this.#text.slice(this.#at, this.#at + 1)
    if (mark === undefined || !'*+?{'.includes(mark)) return part
    if (mark === '{') throw this.#error('a counted repetition, which is not supported; a literal { is \\{')
    this.#at++
    if ('*+?'.includes(this.#text[this.#at] ?? ' ')) throw this.#error('a repetition of a repetition')
    const { length } = part
    if (mark === '?') return [{ kind: 'split', to: 1, or: length + 1 }, ...moved(part, 1)]
    const again: Step = { kind: 'split', to: 0, or: length + 1 }
    if (mark === '+') return [...part, again]
    return [{ kind: 'split', to: 1, or: length + 2 }, ...moved(part, 1), { kind: 'split', to: 0, or: length + 2 }]
  }

  #single(): Part {
    const character = this.#text[this.#at]!
    if (this.#take('^')) return [{ kind: 'start' }]
    if (this.#take('$')) return [{ kind: 'end' }]
    if (this.#take('.')) return [{ kind: 'character', set: { ranges: [], is_complement: true } }]
    if (this.#take('(')) return this.#group()
    if (this.#take('[')) return [{ kind: 'character', set: this.#brackets() }]
    if (this.#take('\\')) return [{ kind: 'character', set: this.#escape() }]
    if ('*+?{'.includes(character)) throw this.#error(`${character} with nothing in front of it`)
    this.#at++
    return [{ kind: 'character', set: oneOf(character) }]
  }

  #group(): Part {
    if (this.#take('?') && !this.#take(':')) throw this.#error('a group with ?, of which only (?:...) is supported')
    const part = this.#alternatives()
    if (!this.#take(')')) throw this.#error('an opening bracket without a closing one')
    return part
  }

  #brackets(): CharacterSet {
    const is_complement = this.#take('^')
    const ranges: CodeRange[] = []
    while (!this.#take(']')) {
      const first = this.#inBrackets()
      if (this.#text[this.#at] !== '-' || this.#text[this.#at + 1] === ']') {
        ranges.push(...first.ranges)
        continue
      }
      this.#at++
      ranges.push(this.#range(first, this.#inBrackets()))
    }
    return { ranges, is_complement }
  }

  #range(first: CharacterSet, last: CharacterSet): CodeRange {
    const [low, high] = [first.ranges[0]?.[0], last.ranges[0]?.[1]]
    const is_single = [first, last].every(({ ranges: [range] }) => range !== undefined && range[0] === range[1])
    if (!is_single || low === undefined || high === undefined || low > high) throw this.#error('a range without order')
    return [low, high]
  }

  #inBrackets(): CharacterSet {
    const character = this.#text[this.#at]
    if (character === undefined) throw this.#error('a [ without a ]')
    this.#at++
    if (character !== '\\') return oneOf(character)
    const set = this.#escape()
    if (set.is_complement) throw this.#error('a complement such as \\D within brackets; write [^0-9]')
    return set
  }

  #escape(): CharacterSet {
    const letter = this.#text[this.#at]
    if (letter === undefined) throw this.#error('a \\ with nothing after it')
    const known = ESCAPES[letter.toLowerCase()]
    if (known === undefined && /[A-Za-z0-9]/.test(letter)) throw this.#error(`\\${letter}, which has no meaning`)
    this.#at++
    if (known === undefined) return oneOf(letter)
    return { ranges: known, is_complement: letter !== letter.toLowerCase() }
  }

  #take(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false
    this.#at += text.length
    return true
  }

  #error(what: string): ExpressionError {
    return new ExpressionError(`at character ${Math.min(this.#at + 1, this.#text.length)} there is ${what}`)
  }
}

const ESCAPES: Readonly<Record<string, readonly CodeRange[]>> = {
  d: [[0x30, 0x39]],
  w: [
    [0x30, 0x39],
    [0x41, 0x5a],
    [0x5f, 0x5f],
    [0x61, 0x7a],
  ],
  s: [
    [0x09, 0x0d],
    [0x20, 0x20],
    [0xa0, 0xa0],
  ],
  t: [[0x09, 0x09]],
}

function oneOf(character: string): CharacterSet {
  const code = character.charCodeAt(0)
  return { ranges: [[code, code]], is_complement: false }
}

function includes({ ranges, is_complement }: CharacterSet, code: number): boolean {
  return ranges.some(([first, last]) => first <= code && code <= last) !== is_complement
}

function moved(part: Part, by: number): Part {
  return part.map((step) => (step.kind === 'split' ? { kind: 'split', to: step.to + by, or: step.or + by } : step))
}
