// Errors of fields: what is wrong with what somebody wants to create, as a list. The validate operations answer the
// list, the create operations throw it; both come from the same functions.
import { ApiError, type ErrorDetail, FORMATS, validationError } from '@musterhost/contract'

/** Characters of a `name_id`. */
const NAME_ID_LENGTH_MAX = 16
const NAME_ID = /^[a-z0-9]+(-[a-z0-9]+)*$/
const isDisplayName = FORMATS['display-name']!

/** Throws NAME_TAKEN when all that is wrong is that a name is taken, else VALIDATION_ERROR; nothing when nothing is. */
export function throwErrors(errors: readonly ErrorDetail[]): void {
  if (errors.length === 0) return
  if (errors.every((error) => error.reason === 'not_unique')) throw nameTaken(errors)
  throw validationError([...errors])
}

export function notUnique(path: string[], message: string): ErrorDetail {
  return { path, reason: 'not_unique', message }
}

/** The same rules as the contract's DisplayName, for a text that came as a draft. */
export function checkDisplayName(text: string, length_max: number): ErrorDetail[] {
  const path = ['display_name']
  if (text === '') return [{ path, reason: 'too_short', message: 'The display name is empty.' }]
  if (isLongerThan(text, length_max)) {
    return [{ path, reason: 'too_long', message: `The display name is longer than ${length_max} characters.` }]
  }
  if (isDisplayName(text)) return []
  return [{ path, reason: 'invalid', message: 'The display name must be visible and without control characters.' }]
}

/** The same rules as the contract's NameId. */
export function checkNameId(text: string): ErrorDetail[] {
  const path = ['name_id']
  if (text === '') return [{ path, reason: 'too_short', message: 'The name id is empty.' }]
  if (isLongerThan(text, NAME_ID_LENGTH_MAX)) {
    return [{ path, reason: 'too_long', message: `The name id is longer than ${NAME_ID_LENGTH_MAX} characters.` }]
  }
  if (NAME_ID.test(text)) return []
  return [
    { path, reason: 'invalid', message: 'The name id takes lower-case letters, digits and single dashes between.' },
  ]
}

/** Runs a write. A caller that loses the race for a name receives the same error as from the check before it. */
export async function orNameTaken<T>(taken: ErrorDetail, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (isUniqueViolation(error)) throw nameTaken([taken])
    throw error
  }
}

function nameTaken(errors: readonly ErrorDetail[]): ApiError {
  return new ApiError('NAME_TAKEN', { errors }, { message: errors.map((error) => error.message).join(' ') })
}

/** PostgreSQL, appendix A: unique_violation. */
const UNIQUE_VIOLATION = '23505'

function isUniqueViolation(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === UNIQUE_VIOLATION
}

/** Code points, as JSON Schema counts. */
function isLongerThan(text: string, length_max: number): boolean {
  return text.length > length_max && Array.from(text).length > length_max
}
