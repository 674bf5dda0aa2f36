// What several forms share.
import type { CallError } from '../api/call-error.ts'

/** Characters of a short name. */
const NAME_ID_LENGTH_MAX = 16

/** The error of one member of the body, in words. */
export function errorAt(error: CallError | null, member: string): string | undefined {
  return error?.details.find(({ path }) => path.at(-1) === member)?.message
}

/** A proposal for the short name: "My Game!" becomes "my-game". */
export function nameIdOf(display_name: string): string {
  const words = display_name
    .toLowerCase()
    .normalize('NFD')
    .replace(/\p{Mn}/gu, '')
    .match(/[a-z0-9]+/g)
  return (words ?? []).join('-').slice(0, NAME_ID_LENGTH_MAX).replace(/-$/, '')
}
