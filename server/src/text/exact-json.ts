// JSON that is only passed on keeps its numbers as they were written. A double cannot hold 9007199254740993, 1e400 or the
// fraction of 1.0, so such a number stays the text it was (JSON.rawJSON, ECMAScript 2026) until JSON.stringify writes it.

/** Numbers of at most 15 digits without a fraction or exponent are themselves in a double. */
const MAY_CHANGE = /\d{16}|\d[.eE]|-0/

/** The library's types do not know these members yet. */
type ExactJson = {
  rawJSON: (text: string) => unknown
  isRawJSON: (value: unknown) => boolean
  parse: (
    text: string,
    revive: (this: unknown, name: string, value: unknown, context: { source?: string }) => unknown,
  ) => unknown
}
const { rawJSON, isRawJSON, parse } = JSON as unknown as ExactJson

/** Whether `text` may have a number that JSON.parse would change. */
export function mayChange(text: string): boolean {
  return MAY_CHANGE.test(text)
}

/** As JSON.parse, except that JSON.stringify of the result writes every number with the characters that it has in `text`. */
export function parseExact(text: string): unknown {
  if (!mayChange(text)) return JSON.parse(text)
  return parse(text, (_name, value, { source }) =>
    typeof value === 'number' && source !== undefined && source !== JSON.stringify(value) ? rawJSON(source) : value,
  )
}

/** Whether the value is a number that is kept as text. */
export function isExactNumber(value: unknown): boolean {
  return isRawJSON(value)
}
