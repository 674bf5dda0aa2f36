// What the validate operations share. They take texts as they come, so that a form can ask about a name that is still
// half typed: what is wrong is the answer, not a refusal.
import Type from 'typebox'
import { ErrorDetailRecord, object } from '../records.ts'

/** A name that is yet to be judged. */
export const Draft = Type.String({ maxLength: 4096 })

export const ValidationErrors = object(
  { errors: Type.Array(ErrorDetailRecord, { description: 'Empty when the operation would accept this.' }) },
  'What is wrong, each with its path.',
)
