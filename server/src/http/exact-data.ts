// What is only passed on (`verification_data`) must arrive as it was sent. A number that a double cannot hold would be another
// one when it is written again, so it is kept as the text it was (JSON.rawJSON, ECMAScript 2026). Of a name that is there
// twice only the last would be left, and who guards the game by the first would be deceived: that is refused.
import { validationError } from '@muster/contract'

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

/** The end of one is always there: it is not asked for, so that nothing is looked at twice. */
const TEXTS = /"(?:[^"\\]|\\.)*"?/gs

/** `body` is what JSON.parse made of `text`. Throws VALIDATION_ERROR. */
export function keepExactData(body: unknown, text: string): void {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, 'verification_data')) return
  if (hasDuplicateMember(body, text)) {
    const message = 'verification_data, or the body around it, has a member twice.'
    throw validationError([{ path: ['verification_data'], reason: 'not_unique', message }])
  }
  if (!MAY_CHANGE.test(text)) return
  const exact = parse(text, (_name, value, { source }) =>
    typeof value === 'number' && source !== undefined && source !== JSON.stringify(value) ? rawJSON(source) : value,
  )
  const holder = body as { verification_data: unknown }
  holder.verification_data = (exact as typeof holder).verification_data
}

/** Whether an object in `text` has a member twice. `value` is what JSON.parse made of it, which keeps the last one. */
export function hasDuplicateMember(value: unknown, text: string): boolean {
  return text.replace(TEXTS, '').split(':').length - 1 !== memberCount(value)
}

/** With those of its members. As deep as the body may be. */
function memberCount(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const members: unknown[] = Object.values(value)
  const below = members.reduce<number>((sum, member) => sum + memberCount(member), 0)
  return Array.isArray(value) ? below : below + members.length
}
