// The contract as an OpenAPI 3.1 document, for clients in other languages and for the reference pages.
import type { TObject, TSchema } from 'typebox'
import { COMPONENTS } from './components.ts'
import { ERRORS, type ErrorCode } from './errors.ts'
import type { CallerKind, Operation } from './operation.ts'
import { OPERATIONS } from './operations.ts'
import { NO_BODY } from './records.ts'
import { sectionOf, sectionsOf } from './sections.ts'

type Json = Record<string, unknown>
type Content = { content: { 'application/json': { schema: Json } } }

/** Refusals that the HTTP door can answer with, whatever the operation. */
const DOOR_ERRORS: readonly ErrorCode[] = ['VALIDATION_ERROR', 'API_RATE_LIMIT', 'API_NOT_AVAILABLE', 'INTERNAL_ERROR']
const BODY_ERRORS: readonly ErrorCode[] = ['API_BAD_BODY', 'API_UNSUPPORTED_MEDIA_TYPE', 'API_BODY_TOO_LARGE']
const CREDENTIAL_ERRORS: readonly ErrorCode[] = [
  'API_UNAUTHORIZED',
  'TOKEN_EXPIRED',
  'TOKEN_INVALID',
  'TOKEN_REVOKED',
  'API_FORBIDDEN',
]

const ROLE_ERRORS: readonly ErrorCode[] = ['GROUP_INSUFFICIENT_PERMISSIONS']

const CALLERS: Record<CallerKind, string> = {
  anyone: 'anyone, without a credential',
  admin: "the operator's access token",
  user: 'a person who has logged in',
  cloud: "a cloud token of the game's",
  namespace: "a namespace's public token, an Origin that stands for it, or the token of one of its identities",
  identity: "the token of a game's player",
  development: 'a development token',
  lobby: 'the token of a running lobby',
}

/** What the document says of one operation, as far as it is read by programs of ours. */
export type OpenapiOperation = Json & {
  parameters?: readonly { name: string; in: string; required: boolean; description?: string; schema: Json }[]
  requestBody?: Json & Content
  responses: { 200: Json & Content } & Record<string, Json & Content>
}
export type OpenapiDocument = Json & {
  paths: Record<string, Record<string, OpenapiOperation>>
  components: Json & { schemas: Record<string, Json> }
}

export function operationOf(document: OpenapiDocument, { path, method }: Operation): OpenapiOperation {
  return document.paths[path]![method.toLowerCase()]!
}

/** Every code that the operation may answer: its own first, then those of the door. */
export function errorsOf(operation: Operation): ErrorCode[] {
  const is_open = operation.auth.includes('anyone')
  return [
    ...new Set([
      ...operation.errors,
      ...DOOR_ERRORS,
      ...(hasBody(operation) ? BODY_ERRORS : []),
      ...(is_open ? [] : CREDENTIAL_ERRORS),
      ...(operation.role === null ? [] : ROLE_ERRORS),
    ]),
  ]
}

export function openapiDocument(version: string): OpenapiDocument {
  const paths: Record<string, Record<string, OpenapiOperation>> = {}
  for (const operation of OPERATIONS) {
    const method = operation.method.toLowerCase()
    paths[operation.path] = { ...paths[operation.path], [method]: describe(operation) }
    for (const [index, alias] of operation.aliases.entries()) {
      paths[alias] = { ...paths[alias], [method]: describeAlias(operation, index) }
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Muster',
      version,
      description: 'A self-hosted multiplayer game hosting platform.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The platform that this document comes from.' }],
    tags: sectionsOf(OPERATIONS).map(({ name, description }) => ({
      name,
      ...(description === '' ? {} : { description }),
    })),
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'Which kind of token: see each operation.' },
      },
      schemas: { ...componentSchemas(), Error: errorSchema() },
    },
  }
}

function describe(operation: Operation): OpenapiOperation {
  const is_open = operation.auth.includes('anyone')
  const aliases = operation.aliases.map((path) => `\`${path}\``).join(', ')
  return {
    operationId: operation.id,
    summary: operation.summary,
    description: [
      `May be called by: ${operation.auth.map((kind) => CALLERS[kind]).join('; ')}.`,
      ...(operation.role === null ? [] : [`A person must be ${operation.role} in the group, or more.`]),
      ...(aliases === '' ? [] : [`Also at ${aliases}.`]),
    ].join(' '),
    tags: [sectionOf(operation).name],
    security: is_open ? [] : [{ token: [] }, ...(operation.auth.includes('namespace') ? [{}] : [])],
    ...parametersOf(operation),
    ...requestBodyOf(operation),
    responses: {
      200: {
        description: 'Success.',
        content: { 'application/json': { schema: plain(operation.response) } },
      },
      ...refusalsOf(errorsOf(operation)),
    },
  }
}

/** The same operation at another path. Generators take an operationId only once. */
function describeAlias(operation: Operation, index: number): OpenapiOperation {
  const number = index === 0 ? '' : String(index + 1)
  return {
    ...describe(operation),
    operationId: `${operation.id}.alias${number}`,
    description: `The same operation as \`${operation.method} ${operation.path}\`.`,
  }
}

function parametersOf(operation: Operation): Pick<OpenapiOperation, 'parameters'> {
  const parameters = [
    ...membersOf(operation.params).map(([name, schema]) => ({
      name,
      in: 'path',
      required: true,
      ...described(schema),
    })),
    ...membersOf(operation.query).map(([name, schema]) => ({
      name,
      in: 'query',
      required: operation.query.required?.includes(name) ?? false,
      ...described(schema),
    })),
    ...(operation.idempotent
      ? [
          {
            name: 'Idempotency-Key',
            in: 'header',
            required: false,
            description: 'A repeated call with the same key is answered like the first one, for ten minutes.',
            schema: { type: 'string', minLength: 1, maxLength: 128 },
          },
        ]
      : []),
  ]
  return parameters.length === 0 ? {} : { parameters }
}

function membersOf(schema: TObject): [string, Json][] {
  return Object.entries(schema.properties).map(([name, member]) => [name, plain(member as TSchema)])
}

/** A parameter's description stands beside its schema, where generators and people look for it. */
function described({ description, ...schema }: Json): { description?: string; schema: Json } {
  return typeof description === 'string' ? { description, schema } : { schema }
}

function hasBody({ method, body }: Operation): boolean {
  return method !== 'GET' && body !== NO_BODY
}

function requestBodyOf(operation: Operation): Pick<OpenapiOperation, 'requestBody'> {
  if (!hasBody(operation)) return {}
  const requestBody = { required: true, content: { 'application/json': { schema: plain(operation.body) } } }
  return { requestBody }
}

/** One answer for each status, naming the codes that come with it. */
function refusalsOf(codes: readonly ErrorCode[]): Record<string, Json & Content> {
  const by_status = new Map<number, Set<ErrorCode>>()
  for (const code of codes) {
    const { status } = ERRORS[code]
    const together = by_status.get(status) ?? new Set()
    by_status.set(status, together.add(code))
  }
  const answers = [...by_status].map(([status, together]) => [
    status,
    {
      description: [...together].map((code) => `\`${code}\`: ${ERRORS[code].message}`).join('\n\n'),
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
    },
  ])
  return Object.fromEntries(answers)
}

function errorSchema(): Json {
  const text = { type: 'string' }
  return {
    type: 'object',
    required: ['code', 'message', 'documentation', 'metadata', 'ray_id'],
    properties: {
      code: { ...text, description: 'For programs.' },
      message: { ...text, description: 'For people.' },
      documentation: { ...text, description: 'The page of this code.' },
      metadata: {
        type: 'object',
        description: 'What goes with the code; `errors` where members of the request are wrong.',
        properties: { errors: { type: 'array', items: referenceTo('ErrorDetail') } },
        additionalProperties: true,
      },
      ray_id: { ...text, format: 'uuid', description: 'Names this request; also in the header x-ray-id.' },
    },
  }
}

const COMPONENT_NAMES = new Map(Object.entries(COMPONENTS).map(([name, schema]) => [JSON.stringify(schema), name]))

function componentSchemas(): Record<string, Json> {
  return Object.fromEntries(Object.entries(COMPONENTS).map(([name, schema]) => [name, plain(schema, name)]))
}

function referenceTo(name: string): Json {
  return { $ref: `#/components/schemas/${name}` }
}

/**
 * A schema as plain JSON, in which whatever is a component (but the one of the name `own`) is a reference to it. A map of
 * any name is said the way that generators understand best.
 */
function plain(schema: TSchema, own?: string): Json {
  const convert = (value: unknown, is_outermost = false): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((item) => convert(item))
    const name = COMPONENT_NAMES.get(JSON.stringify(value))
    if (name !== undefined && !(is_outermost && name === own)) return referenceTo(name)
    const members = Object.entries(value).map(([key, member]) => [key, convert(member)])
    return asMap(Object.fromEntries(members))
  }
  return convert(schema, true) as Json
}

function asMap(schema: Json): Json {
  const { patternProperties, ...rest } = schema
  if (patternProperties === undefined) return schema
  const [entry, ...more] = Object.entries(patternProperties as Json)
  if (entry === undefined || more.length > 0) return schema
  const [pattern, member] = entry
  const names = pattern === '^.*$' ? {} : { propertyNames: { pattern } }
  return { ...rest, ...names, additionalProperties: member }
}
