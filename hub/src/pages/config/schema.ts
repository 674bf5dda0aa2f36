// What the schema of the version config says about a path: which members may be there, and which values.

export type ConfigSchema = {
  type?: string
  description?: string
  properties?: Record<string, ConfigSchema>
  patternProperties?: Record<string, ConfigSchema>
  additionalProperties?: boolean | ConfigSchema
  items?: ConfigSchema
  anyOf?: ConfigSchema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
}

/** The schemas that may apply at a path. A union has several. */
export function schemasAt(root: ConfigSchema, path: readonly string[]): ConfigSchema[] {
  let schemas = alternatives(root)
  for (const name of path) schemas = schemas.flatMap((schema) => alternatives(memberOf(schema, name)))
  return schemas
}

function alternatives(schema: ConfigSchema | undefined): ConfigSchema[] {
  if (schema === undefined) return []
  return schema.anyOf === undefined ? [schema] : schema.anyOf.flatMap(alternatives)
}

function memberOf(schema: ConfigSchema, name: string): ConfigSchema | undefined {
  if (schema.items !== undefined) return schema.items
  const own = schema.properties?.[name]
  if (own !== undefined) return own
  const [of_pattern] = Object.values(schema.patternProperties ?? {})
  if (of_pattern !== undefined) return of_pattern
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
}

/** Members by name, with the schema of each. */
export function membersOf(schemas: readonly ConfigSchema[]): Map<string, ConfigSchema> {
  return new Map(schemas.flatMap((schema) => Object.entries(schema.properties ?? {})))
}

/** The values that a schema lists, as JSON. */
export function valuesOf(schemas: readonly ConfigSchema[]): string[] {
  const values = schemas.flatMap((schema) => {
    if (schema.type === 'boolean') return [true, false]
    return schema.const === undefined ? (schema.enum ?? []) : [schema.const]
  })
  return [...new Set(values.map((value) => JSON.stringify(value)))]
}

/** What is inserted for the value of a member: the caret goes inside. */
export function emptyValueOf(schema: ConfigSchema): string {
  const [first] = alternatives(schema)
  if (first?.type === 'object' || first?.properties !== undefined) return '{}'
  if (first?.type === 'array') return '[]'
  if (first?.type === 'string') return '""'
  return ''
}
