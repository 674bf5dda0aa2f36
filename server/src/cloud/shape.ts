// Shape errors of a value that the door let through as it came: for drafts, where they are the answer and no refusal.
// Reasons and paths are those that the door gives for the same mistakes.
import type { ErrorDetail } from '@muster/contract'
import type { TSchema } from 'typebox'
import { Errors } from 'typebox/schema'

/** A draft may be wrong in very many places; the first ones help most. */
const ERRORS_MAX = 32

const REASONS: Readonly<Record<string, string>> = {
  type: 'wrong_type',
  const: 'not_allowed',
  enum: 'not_allowed',
  minimum: 'too_low',
  maximum: 'too_high',
  minLength: 'too_short',
  maxLength: 'too_long',
  minItems: 'too_few',
  maxItems: 'too_many',
  minProperties: 'too_few',
  maxProperties: 'too_many',
}

/** `path` is where the value stands. Empty when the value fits. */
export function checkShape(schema: TSchema, value: unknown, path: readonly string[]): ErrorDetail[] {
  const [, errors] = Errors(schema, value)
  const details = new Map<string, ErrorDetail>()
  const add = (at: readonly string[], reason: string, message: string): void => {
    const key = at.join('\n')
    if (details.size < ERRORS_MAX && !details.has(key))
      details.set(key, { path: [...at], reason, message: `${at.join('.')} ${message}.` })
  }
  for (const error of errors) {
    const at = [...path, ...error.instancePath.split('/').slice(1).map(unescapePointer)]
    if (error.keyword === 'required') {
      for (const name of error.params.requiredProperties) add([...at, name], 'required', 'is missing')
    } else if (error.keyword === 'additionalProperties') {
      for (const name of error.params.additionalProperties)
        add([...at, name], 'unknown', 'is not a member of this request')
    } else if (error.keyword !== 'boolean') {
      // 'boolean' repeats what additionalProperties says.
      add(at, REASONS[error.keyword] ?? 'invalid', error.message)
    }
  }
  return [...details.values()]
}

/** RFC 6901: ~1 is a slash, ~0 a tilde. */
function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~')
}
