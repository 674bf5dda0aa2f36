// The contract as an OpenAPI 3.1 document, for clients in other languages and for the reference pages.
import type { TObject, TSchema } from 'typebox'
import { ERRORS, type ErrorCode } from './errors.ts'
import type { CallerKind, Operation } from './operation.ts'
import { OPERATIONS } from './operations.ts'
import { ErrorDetailRecord, NO_BODY } from './records.ts'

type Json = Record<string, unknown>

/** Refusals that the HTTP door can answer with, whatever the operation. */
const DOOR_ERRORS: readonly ErrorCode[] = ['VALIDATION_ERROR', 'API_RATE_LIMIT', 'API_NOT_AVAILABLE', 'INTERNAL_ERROR']
const CREDENTIAL_ERRORS: readonly ErrorCode[] = ['API_UNAUTHORIZED', 'TOKEN_EXPIRED', 'TOKEN_INVALID', 'API_FORBIDDEN']

const ROLE_ERRORS: readonly ErrorCode[] = ['GROUP_INSUFFICIENT_PERMISSIONS']

const CALLERS: Record<CallerKind, string> = {
  anyone: 'anyone, without a credential',
  admin: "the operator's access token",
  user: 'a person who has logged in',
  cloud: "a cloud token of the game's",
  namespace: "a namespace's public token, or an Origin that stands for it",
  development: 'a development token',
  lobby: 'the token of a running lobby',
}

export function openapiDocument(version: string): Json {
  const paths: Record<string, Json> = {}
  for (const operation of OPERATIONS) {
    paths[operation.path] = { ...paths[operation.path], [operation.method.toLowerCase()]: describe(operation) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Muster',
      version,
      description: 'A self-hosted multiplayer game hosting platform.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'Which kind of token: see each operation.' },
      },
      schemas: { Error: errorSchema() },
    },
  }
}

function describe(operation: Operation): Json {
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
    tags: [operation.id.split('.')[0]],
    ...(is_open ? {} : { security: [{ token: [] }, ...(operation.auth.includes('namespace') ? [{}] : [])] }),
    ...parametersOf(operation),
    ...requestBodyOf(operation),
    responses: {
      200: {
        description: 'Success.',
        content: { 'application/json': { schema: plain(operation.response) } },
      },
      ...refusalsOf([
        ...operation.errors,
        ...DOOR_ERRORS,
        ...(is_open ? [] : CREDENTIAL_ERRORS),
        ...(operation.role === null ? [] : ROLE_ERRORS),
      ]),
    },
  }
}

function parametersOf(operation: Operation): Json {
  const parameters = [
    ...membersOf(operation.params).map(([name, schema]) => ({ name, in: 'path', required: true, schema })),
    ...membersOf(operation.query).map(([name, schema]) => ({
      name,
      in: 'query',
      required: operation.query.required?.includes(name) ?? false,
      schema,
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

function membersOf(schema: TObject): [string, unknown][] {
  return Object.entries(schema.properties).map(([name, member]) => [name, plain(member as TSchema)])
}

function requestBodyOf(operation: Operation): Json {
  if (operation.method === 'GET' || operation.body === NO_BODY) return {}
  return { requestBody: { required: true, content: { 'application/json': { schema: plain(operation.body) } } } }
}

/** One answer for each status, naming the codes that come with it. */
function refusalsOf(codes: readonly ErrorCode[]): Json {
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
        properties: { errors: { type: 'array', items: plain(ErrorDetailRecord) } },
        additionalProperties: true,
      },
      ray_id: { ...text, format: 'uuid', description: 'Names this request; also in the header x-ray-id.' },
    },
  }
}

/** A schema as plain JSON. A map of any name is said the way that generators understand best. */
function plain(schema: TSchema): unknown {
  return JSON.parse(JSON.stringify(schema), (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || !('patternProperties' in value)) return value
    const { patternProperties, ...rest } = value
    const [entry, ...more] = Object.entries(patternProperties as Json)
    if (entry === undefined || more.length > 0) return value
    const [pattern, member] = entry
    const names = pattern === '^.*$' ? {} : { propertyNames: { pattern } }
    return { ...rest, ...names, additionalProperties: member }
  })
}
