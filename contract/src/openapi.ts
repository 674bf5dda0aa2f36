// The contract as an OpenAPI 3.1 document, for clients in other languages and for the reference pages.
import type { TObject, TSchema } from 'typebox'
import { COMPONENTS } from './components.ts'
import { ERRORS, type ErrorCode } from './errors.ts'
import type { CallerKind, Operation } from './operation.ts'
import { OPERATIONS } from './operations.ts'
import { isOptionalBody, NO_BODY } from './records.ts'
import { sectionOf, sectionsOf } from './sections.ts'

type Json = Record<string, unknown>
type Content = { content: { 'application/json': { schema: Json } } }

/** Errors that every operation can return. */
const GENERAL_ERRORS: readonly ErrorCode[] = [
  'VALIDATION_ERROR',
  'API_RATE_LIMIT',
  'API_NOT_AVAILABLE',
  'INTERNAL_ERROR',
]
const BODY_ERRORS: readonly ErrorCode[] = ['API_BAD_BODY', 'API_UNSUPPORTED_MEDIA_TYPE', 'API_BODY_TOO_LARGE']
const CREDENTIAL_ERRORS: readonly ErrorCode[] = [
  'API_UNAUTHORIZED',
  'TOKEN_EXPIRED',
  'TOKEN_INVALID',
  'TOKEN_REVOKED',
  'API_FORBIDDEN',
]

const CONFIRM_ERRORS: readonly ErrorCode[] = ['CONFIRMATION_REQUIRED']
const ROLE_ERRORS: readonly ErrorCode[] = ['GROUP_INSUFFICIENT_PERMISSIONS']

const CALLERS: Record<CallerKind, string> = {
  anyone: 'anyone, without a credential',
  admin: "the operator's access token",
  user: 'a person who has logged in',
  cloud: 'a cloud token of the game',
  namespace:
    'a public token of the namespace, a page of the namespace (by its Origin), or an identity token of the namespace',
  identity: 'the identity token of a player',
  development: 'a development token',
  lobby: 'the token of a running lobby',
}

/** The members of an operation that the reference pages read. */
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

/** Every error code that the operation can return: its own first, then the general ones. */
export function errorsOf(operation: Operation): ErrorCode[] {
  const is_open = operation.auth.includes('anyone')
  return [
    ...new Set([
      ...operation.errors,
      ...GENERAL_ERRORS,
      ...(hasBody(operation) ? BODY_ERRORS : []),
      ...(is_open ? [] : CREDENTIAL_ERRORS),
      ...(operation.role === null ? [] : ROLE_ERRORS),
      ...(operation.confirm ? CONFIRM_ERRORS : []),
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
    servers: [{ url: '/', description: 'The platform that serves this document.' }],
    tags: sectionsOf(OPERATIONS).map(({ name, description }) => ({
      name,
      ...(description === '' ? {} : { description }),
    })),
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'Each operation says which kinds of token it accepts.' },
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
      ...(operation.role === null ? [] : [`A user needs at least the role ${operation.role} in the group.`]),
      ...(operation.confirm ? ['A person with a passkey confirms with it first.'] : []),
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

/** The same operation at another path. Generators require that every operationId is unique. */
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
            description:
              'Makes a retry safe: for 10 minutes, a repeated call with the same key returns the response of the first call.',
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

/** Moves the description of a parameter from its schema to the parameter itself, where generators read it. */
function described({ description, ...schema }: Json): { description?: string; schema: Json } {
  return typeof description === 'string' ? { description, schema } : { schema }
}

function hasBody({ method, body }: Operation): boolean {
  return method !== 'GET' && body !== NO_BODY
}

function requestBodyOf(operation: Operation): Pick<OpenapiOperation, 'requestBody'> {
  if (!hasBody(operation)) return {}
  const required = !isOptionalBody(operation.body)
  const requestBody = { required, content: { 'application/json': { schema: plain(operation.body) } } }
  return { requestBody }
}

/** One response for each status, whose description lists its error codes. */
function refusalsOf(codes: readonly ErrorCode[]): Record<string, Json & Content> {
  const by_status = new Map<number, Set<ErrorCode>>()
  for (const code of codes) {
    const { status } = ERRORS[code]
    const together = by_status.get(status) ?? new Set()
    by_status.set(status, together.add(code))
  }
  const responses = [...by_status].map(([status, together]) => [
    status,
    {
      description: [...together].map((code) => `\`${code}\`: ${ERRORS[code].message}`).join('\n\n'),
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
    },
  ])
  return Object.fromEntries(responses)
}

function errorSchema(): Json {
  const text = { type: 'string' }
  return {
    type: 'object',
    description: 'The body of every response that is not a success.',
    required: ['code', 'message', 'documentation', 'metadata', 'ray_id'],
    properties: {
      code: { ...text, description: 'Error code, for programs. Example: `LOBBY_NOT_FOUND`.' },
      message: { ...text, description: 'What went wrong, for people. The text may change.' },
      documentation: { ...text, description: 'Address of the page that explains the code.' },
      metadata: {
        type: 'object',
        description: 'Details of the error. Which members exist depends on the code.',
        properties: {
          errors: {
            type: 'array',
            description: 'The members of the request that are wrong. Present with `VALIDATION_ERROR`.',
            items: referenceTo('ErrorDetail'),
          },
        },
        additionalProperties: true,
      },
      ray_id: {
        ...text,
        format: 'uuid',
        description: 'Id of this request, also in the header `x-ray-id`. It finds the request in the log.',
      },
    },
  }
}

/**
 * Components by their JSON without their own description, so that a member may describe the component it refers to. Objects
 * without members differ only in their description.
 */
const COMPONENT_NAMES = new Map(
  Object.entries(COMPONENTS).map(([name, schema]) => [componentKey(schema as Json), name]),
)

function componentKey(schema: Json): string {
  const { description: _, ...rest } = schema
  const has_members = Object.keys((rest.properties ?? {}) as Json).length > 0
  return JSON.stringify(has_members ? rest : schema)
}

function componentSchemas(): Record<string, Json> {
  return Object.fromEntries(Object.entries(COMPONENTS).map(([name, schema]) => [name, plain(schema, name)]))
}

function referenceTo(name: string): Json {
  return { $ref: `#/components/schemas/${name}` }
}

function referenceFrom({ description }: Json, name: string): Json {
  const is_own = description !== undefined && description !== COMPONENTS[name]!['description' as never]
  return is_own ? { ...referenceTo(name), description } : referenceTo(name)
}

/**
 * A schema as plain JSON, in which every component except the one named `own` is replaced by a reference. A map is written
 * with `additionalProperties`, the form that generators understand best.
 */
function plain(schema: TSchema, own?: string): Json {
  const convert = (value: unknown, is_outermost = false): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((item) => convert(item))
    const name = COMPONENT_NAMES.get(componentKey(value as Json))
    if (name !== undefined && !(is_outermost && name === own)) return referenceFrom(value as Json, name)
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
