// Records of the validate operations. They accept any text, so that a form can check a name while a person types it: what is
// wrong is in the response, and the operation itself succeeds.
import Type from 'typebox'
import { ErrorDetailRecord, object } from '../records.ts'

/** A text that the operation checks. */
export const Draft = (description: string) => Type.String({ maxLength: 4096, description })

export const ValidationErrors = object(
  {
    errors: Type.Array(ErrorDetailRecord, {
      description: 'What is wrong, one entry for each problem. Empty when the input is valid.',
    }),
  },
  'Result of a check.',
)
