// What a request may set to any JSON (verification_data, lobby_config, the state of a lobby) must arrive as it was sent:
// its numbers are kept to the last digit (exact-json.ts). Of a name that stands twice only the last would be left, and
// a program that checks the first would be deceived. Such a text is refused. The contract says which parts of a body these are.
import Type, { type TSchema } from 'typebox'
import { mayChange, parseExact } from '../exact-json.ts'
import { refuseDuplicate } from './body-places.ts'

/** The parts of a body that may be any JSON: the whole body, or members of it by name. */
export type FreeJson = 'body' | readonly string[]

/** `schema`: of the body of an operation. */
export function freeJsonOf(schema: TSchema): FreeJson {
  if (Type.IsUnknown(schema)) return 'body'
  const members = Type.IsObject(schema) ? Object.entries<TSchema>(schema.properties) : []
  return members.filter(([, member]) => Type.IsUnknown(member)).map(([name]) => name)
}

/** The end of a string is always there: it is not required, so that nothing is scanned twice. */
const STRINGS = /"(?:[^"\\]|\\.)*"?/gs

/**
 * Returns `body` with the numbers of its free JSON as `text` has them. `body` is what JSON.parse made of `text`. Throws
 * VALIDATION_ERROR.
 */
export function keepExactData(body: unknown, text: string, free: FreeJson): unknown {
  if (free === 'body') {
    if (hasDuplicateMember(body, text)) refuseDuplicate(text)
    return mayChange(text) ? parseExact(text) : body
  }
  if (free.length === 0 || typeof body !== 'object' || body === null) return body
  const sent = free.filter((name) => Object.hasOwn(body, name))
  if (sent.length === 0) return body
  if (hasDuplicateMember(body, text)) refuseDuplicate(text)
  if (!mayChange(text)) return body
  const exact = parseExact(text) as Record<string, unknown>
  return { ...body, ...Object.fromEntries(sent.map((name) => [name, exact[name]])) }
}

/** Whether an object in `text` has a member twice. `value` is what JSON.parse made of it, which keeps the last one. */
export function hasDuplicateMember(value: unknown, text: string): boolean {
  return text.replace(STRINGS, '').split(':').length - 1 !== memberCount(value)
}

/** With those of its members. As deep as the body may be. */
function memberCount(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const members: unknown[] = Object.values(value)
  const below = members.reduce<number>((sum, member) => sum + memberCount(member), 0)
  return Array.isArray(value) ? below : below + members.length
}
