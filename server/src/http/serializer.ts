// Writes responses as the contract describes them: a member that the contract does not have is left out.
import fastJsonStringify from 'fast-json-stringify'
import type { FastifySerializerCompiler } from 'fastify/types/schema.js'
import type { TSchema } from 'typebox'

/**
 * Compiled when the first value comes: a process has hundreds of schemas, each takes a millisecond, and few are used soon
 * after the start.
 */
export const compileSerializer: FastifySerializerCompiler<TSchema> = ({ schema }) => {
  let serialize: ((value: unknown) => string) | null = null
  return (value: unknown) => {
    serialize ??= fastJsonStringify(schema)
    return serialize(value)
  }
}
