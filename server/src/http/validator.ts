// The check of what comes in against the contract. Bodies are taken as they are: a "5" is not a 5. What comes by the
// address is text by nature, and is read as the number or boolean that the schema asks for.
import { FORMATS } from '@muster/contract'
import { Ajv } from 'ajv'
import type { FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'

export function createValidatorCompiler(): FastifySchemaCompiler<TSchema> {
  // With all errors, so that whoever mends a request mends it once; bodies are bounded, and so is their number.
  const options = { allErrors: true, formats: FORMATS as Record<string, (text: string) => boolean> }
  const exact = new Ajv(options)
  const reading = new Ajv({ ...options, coerceTypes: true })
  return ({ schema, httpPart }) => (httpPart === 'body' ? exact : reading).compile(schema)
}
