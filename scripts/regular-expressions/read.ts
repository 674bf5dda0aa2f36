// Reads the regular expressions of a TypeScript text. The lexer distinguishes a slash that begins an expression from a slash
// of a division, a string or a comment. A text that it cannot read is an error, never skipped.

export type Literal = { line: number; source: string; flags: string }

/** Words after which an expression begins. After any other word a slash is a division. */
const BEFORE_EXPRESSION = new Set(['return', 'typeof', 'case', 'in', 'of', 'do', 'else', 'void', 'await', 'yield'])

export function literalsOf(text: string): Literal[] {
  const found: Literal[] = []
  /** Open braces, each with whether a template continues after it. */
  const braces: boolean[] = []
  let before = ''
  let at = text.startsWith('#!') ? endOf(text, '\n', 0) : 0
  while (at < text.length) {
    const char = text[at]!
    const two = text.slice(at, at + 2)
    if (two === '//') at = endOf(text, '\n', at)
    else if (two === '/*') at = endOf(text, '*/', at) + 2
    else if (char === '/' && beginsExpression(before)) {
      const end = endOfLiteral(text, at)
      const [flags = ''] = /^[a-z]*/.exec(text.slice(end)) ?? []
      found.push({ line: text.slice(0, at).split('\n').length, source: text.slice(at + 1, end - 1), flags })
      at = end + flags.length
      before = ')'
    } else if (char === "'" || char === '"') {
      at = endOfText(text, at)
      before = ')'
    } else if (char === '`' || (char === '}' && braces.at(-1) === true)) {
      if (char === '}') braces.pop()
      at = endOfTemplate(text, at + 1)
      const goes_on = text[at - 1] === '{'
      if (goes_on) braces.push(true)
      before = goes_on ? '{' : ')'
    } else if (/\w|\$/.test(char)) {
      const [word = ''] = /^[\w$]+/.exec(text.slice(at, at + 200)) ?? []
      at += word.length
      before = word
    } else {
      if (char === '{') braces.push(false)
      else if (char === '}') braces.pop()
      // Directly after a value, an exclamation mark is a non-null assertion.
      const is_assertion = char === '!' && text[at + 1] !== '=' && /[\w$)\]]/.test(text[at - 1] ?? '')
      if (char.trim() !== '' && !is_assertion) before = char
      at++
    }
  }
  return found
}

/** A slash after a name, a number, a string or a closing bracket is a division. */
function beginsExpression(before: string): boolean {
  if (/^[\w$]/.test(before)) return BEFORE_EXPRESSION.has(before)
  return before !== ')' && before !== ']'
}

function endOf(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from)
  return at === -1 ? text.length : at
}

function endOfLiteral(text: string, from: number): number {
  let is_class = false
  for (let at = from + 1; at < text.length && text[at] !== '\n'; at++) {
    const char = text[at]
    if (char === '\\') at++
    else if (char === '[') is_class = true
    else if (char === ']') is_class = false
    else if (char === '/' && !is_class) return at + 1
  }
  throw new Error(`A regular expression without an end: ${text.slice(from, from + 60)}`)
}

function endOfText(text: string, from: number): number {
  for (let at = from + 1; at < text.length && text[at] !== '\n'; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === text[from]) return at + 1
  }
  throw new Error(`A text without an end: ${text.slice(from, from + 60)}`)
}

/** Returns the offset after its end, or after the brace that interrupts it. */
function endOfTemplate(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '`') return at + 1
    else if (text[at] === '$' && text[at + 1] === '{') return at + 2
  }
  throw new Error(`A template without an end: ${text.slice(from, from + 60)}`)
}
