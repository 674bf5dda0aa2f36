// The check of what comes in against the contract. Bodies are taken as they are: a "5" is not a 5. What comes by the
// address is text by nature.
import type { FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import { createValidator } from '../shape.ts'

export function createValidatorCompiler(): FastifySchemaCompiler<TSchema> {
  const exact = createValidator({ coerce: false })
  const reading = createValidator({ coerce: true })
  return ({ schema, httpPart }) => (httpPart === 'body' ? exact : reading).compile(schema)
}
