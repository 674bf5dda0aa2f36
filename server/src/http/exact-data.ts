// A number that a double cannot hold would be another one when it is written again. What is only passed on must arrive as
// it was sent, so such numbers of `verification_data` are kept as the text they were (JSON.rawJSON, ECMAScript 2026).

/** Numbers of at most 15 digits without a fraction or exponent are themselves in a double. */
const MAY_CHANGE = /\d{16}|\d[.eE]|-0/

/** The library's types do not know them yet. */
type ExactJson = {
  rawJSON: (text: string) => unknown
  parse: (
    text: string,
    revive: (this: unknown, name: string, value: unknown, context: { source?: string }) => unknown,
  ) => unknown
}
const { rawJSON, parse } = JSON as unknown as ExactJson

/** `body` is what JSON.parse made of `text`. */
export function keepExactData(body: unknown, text: string): void {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, 'verification_data')) return
  if (!MAY_CHANGE.test(text)) return
  const exact = parse(text, (_name, value, { source }) =>
    typeof value === 'number' && source !== undefined && source !== JSON.stringify(value) ? rawJSON(source) : value,
  )
  const holder = body as { verification_data: unknown }
  holder.verification_data = (exact as typeof holder).verification_data
}
