// The check of what comes in against the contract. Bodies are taken as they are: a "5" is not a 5. What comes by the
// address is text by nature.
import type { FastifySchemaCompiler } from 'fastify'
import type { FastifySchemaValidationError } from 'fastify/types/schema.js'
import type { TSchema } from 'typebox'
import { createFaultFinder } from '../schema-check.ts'

export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const findFaults = createFaultFinder(schema, { coerce: httpPart !== 'body' })
  return (value: unknown) => {
    const faults = findFaults(value)
    return faults === null || { error: faults as FastifySchemaValidationError[] }
  }
}
