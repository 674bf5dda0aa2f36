// Checks requests against the contract. Members of a body are not converted: "5" is not a 5. Members of a path or query are
// text, and are.

import { createFaultFinder } from '@musterhost/contract/schema-check'
import type { FastifySchemaCompiler } from 'fastify'
import type { FastifySchemaValidationError } from 'fastify/types/schema.js'
import type { TSchema } from 'typebox'

export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const findFaults = createFaultFinder(schema, { coerce: httpPart !== 'body' })
  return (value: unknown) => {
    const faults = findFaults(value)
    return faults === null || { error: faults as FastifySchemaValidationError[] }
  }
}
