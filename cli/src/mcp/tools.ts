// Operations of the contract as tools of MCP: a name, a description and the JSON Schema of the input. Operations that hand
// out credentials are no tools, and members that are secrets are hidden in results.
import type { Operation } from '@musterhost/contract'
import { OPERATIONS } from '@musterhost/contract/operations'
import { sectionOf } from '@musterhost/contract/sections'

/** Callers that a developer's or operator's token proves to be. */
const CALLERS = new Set(['admin', 'user', 'cloud', 'anyone'])
/** Members whose value is a credential, or an address that is one. */
const SECRET = /^code$|(?:^|_)(?:token|secret|secret_key|password|presigned_requests?|device_link_url)$/
/** Logins and their providers, uses of passkeys, files behind an address that is a credential, and values of secrets. Their responses name no token. */
const CREDENTIALS =
  /^auth\.identity\.|^auth\.confirmation\.|^auth\.passkeys\.(?:start|add)$|^devices\.|\.export([A-Z]|$)|\.setGameSecret$|^signInProviders\.put$/
const HIDDEN = '[hidden]'

type Schema = { type?: string; properties?: Record<string, unknown>; required?: readonly string[] }
export type Tool = {
  name: string
  description: string
  inputSchema: { type: 'object'; properties: Record<string, object>; required: string[]; additionalProperties: false }
  annotations: { title: string; readOnlyHint: boolean; destructiveHint: boolean; idempotentHint: boolean }
  operation: Operation
}

export function listTools(options: { has_writes: boolean; allow: readonly string[] }): Tool[] {
  return OPERATIONS.filter((operation) => isOffered(operation))
    .filter((operation) => options.has_writes || isRead(operation))
    .filter(({ id }) => options.allow.length === 0 || options.allow.some((prefix) => isBelow(id, prefix)))
    .map(toTool)
}

/** The beginnings of operation ids that `--allow` takes. */
export function groupsOfTools(): string[] {
  const groups = new Set<string>()
  for (const { id } of OPERATIONS.filter((operation) => isOffered(operation))) {
    const parts = id.split('.')
    for (let length = 1; length < parts.length; length++) groups.add(parts.slice(0, length).join('.'))
  }
  return [...groups].sort()
}

/** The same value, in which each member that is a secret is hidden. */
export function hideSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(hideSecrets)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, SECRET.test(name) ? HIDDEN : hideSecrets(member)]),
  )
}

function isOffered({ id, auth, response }: Operation): boolean {
  if (CREDENTIALS.test(id) || !auth.some((caller) => CALLERS.has(caller))) return false
  return !/"(?:\w+_)?token":\{/.test(JSON.stringify(response))
}

/** Operations that only check a body are reads too. */
function isRead({ method, id }: Operation): boolean {
  return method === 'GET' || /\.validate/.test(id)
}

function isBelow(id: string, prefix: string): boolean {
  return id === prefix || id.startsWith(`${prefix}.`)
}

function namesOf(schema: object): string[] {
  return Object.keys((schema as Schema).properties ?? {})
}

function toTool(operation: Operation): Tool {
  const { id, method, path, summary, params, query, body } = operation
  const { name: section } = sectionOf(operation)
  const read = isRead(operation)
  const { properties, required } = inputOf({ params, query, body })
  return {
    name: id.replaceAll('.', '_'),
    description: `${section}: ${summary} (${method} ${path})`,
    inputSchema: { type: 'object', properties, required, additionalProperties: false },
    annotations: {
      title: id,
      readOnlyHint: read,
      destructiveHint: method === 'DELETE',
      idempotentHint: method !== 'POST',
    },
    operation,
  }
}

/** Members of the path and the query stand beside each other, and the body is one member. */
function inputOf({ params, query, body }: Pick<Operation, 'params' | 'query' | 'body'>): {
  properties: Record<string, object>
  required: string[]
} {
  const properties: Record<string, object> = {}
  const required: string[] = []
  for (const schema of [plain(params), plain(query)]) {
    Object.assign(properties, schema.properties)
    required.push(...(schema.required ?? []))
  }
  const body_schema = plain(body)
  if (namesOf(body_schema).length > 0 || body_schema.type !== 'object') {
    properties.body = { description: 'Body of the request.', ...body_schema }
    if ((body_schema.required ?? []).length > 0) required.push('body')
  }
  return { properties, required }
}

/** The schema as JSON has it, without what TypeBox adds. */
function plain(schema: object): Schema {
  return JSON.parse(JSON.stringify(schema)) as Schema
}
