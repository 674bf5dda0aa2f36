// Examples derived from the schemas: a call for a shell, and its response. Ids in a call are shell variables, named like the
// member.
import type { CallerKind, Operation } from '@musterhost/contract'
import { type OpenApiSchema, resolve, type Schemas } from './schema.ts'

/** Values for members whose schema does not describe their form completely, by name. */
const VALUES: Readonly<Record<string, unknown>> = {
  access_token: '$MUSTER_TOKEN',
  account_number: 4711,
  addresses: ['ada@example.com'],
  args: ['node', 'server.mjs'],
  chat_id: '-1001234567890',
  code: 'K3F7QX9A',
  byte_offset: 0,
  cname_record: 'b9c1f0a4.cdn.example.com',
  config: {
    cdn: { site_id: '$SITE_ID' },
    matchmaker: {
      game_modes: {
        default: {
          max_players: 8,
          docker: { image_id: '$BUILD_ID', args: ['node', 'server.mjs'], ports: { default: { protocol: 'http' } } },
        },
      },
    },
  },
  content_length: 1024,
  cron: '0 18 * * FRI',
  time_zone: 'Europe/Berlin',
  content_type: 'text/html',
  sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  device_link_token: '$DEVICE_LINK_TOKEN',
  directory: 'players',
  display_name: 'Arena',
  domain: 'play.example.com',
  email: 'ada@example.com',
  env: { LOG_LEVEL: 'info' },
  game_mode: 'default',
  game_mode_id: 'default',
  game_modes: ['default'],
  glob: '**/*.wasm',
  group_invite_code: '$GROUP_INVITE_CODE',
  host: 'localhost:26000',
  is_tls: false,
  hostname: 'localhost',
  image_tag: 'arena:1',
  key: 'players/ada',
  keys: ['players/ada', 'players/grace'],
  latitude: 50.1,
  longitude: 8.7,
  name_id: 'arena',
  password: '$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy',
  message: 'The member `site_id` is required.',
  path: 'index.html',
  player_token: '$PLAYER_TOKEN',
  port: 26000,
  query_end: '2026-11-21T10:30:00.000Z',
  query_start: '2026-11-21T09:30:00.000Z',
  reason: 'required',
  region_display_name: 'Local',
  region_id: 'local',
  tier: 'basic-1d1',
  tags: { mode: 'ranked' },
  state: { map: 'dunes' },
  token: 'cloud.eyJ0eXAi…',
  url: 'http://localhost/…',
  version_display_name: '1.2.0',
  user: 'tester',
}
const ANY_JSON = { map: 'dunes' }
/** Depth of an example value. */
const DEPTH_MAX = 12

/** A call has only the required members, a response has all. */
type Purpose = 'call' | 'response'

function bodyExample(schemas: Schemas, schema: OpenApiSchema): unknown {
  return exampleOf(schemas, schema, { name: '', purpose: 'call', depth: 0 })
}

export function responseExample(schemas: Schemas, schema: OpenApiSchema): unknown {
  return exampleOf(schemas, schema, { name: '', purpose: 'response', depth: 0 })
}

type Position = { name: string; purpose: Purpose; depth: number }

function exampleOf(schemas: Schemas, given: OpenApiSchema, position: Position): unknown {
  const schema = resolve(schemas, given)
  const { name, purpose, depth } = position
  if (depth > DEPTH_MAX) return null
  const below = (inner: OpenApiSchema, inner_name: string): unknown =>
    exampleOf(schemas, inner, { name: inner_name, purpose, depth: depth + 1 })
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  if (schema.examples !== undefined) return schema.examples[0]
  if (schema.anyOf !== undefined) return below(schema.anyOf[0]!, name)
  if (schema.format === 'uuid') return purpose === 'call' ? `$${variableOf(name)}` : ID
  const known = Object.hasOwn(VALUES, name) ? VALUES[name] : undefined
  if (known !== undefined && isOfType(known, schema) && (purpose === 'call' || !hasVariable(known))) return known
  switch (schema.type) {
    case 'object':
      return objectOf(schema, purpose, below)
    case 'array':
      if (schema.items === undefined || schema.maxItems === 0) return []
      return Array.from({ length: Math.max(1, schema.minItems ?? 0) }, () => below(schema.items!, singular(name)))
    case 'string':
      return schema.format === 'date-time' ? '2026-11-21T09:30:00.000Z' : 'text'
    case 'integer':
    case 'number':
      return Math.min(Math.max(schema.minimum ?? 1, 1), schema.maximum ?? 1)
    case 'boolean':
      return true
    default:
      return ANY_JSON
  }
}

const ID = '0199c6a2-7d3e-7b41-9c55-2f8e6a1d4b07'

function objectOf(
  schema: OpenApiSchema,
  purpose: Purpose,
  below: (inner: OpenApiSchema, name: string) => unknown,
): unknown {
  const value = schema.additionalProperties
  if (typeof value === 'object') return { default: below(value, '') }
  const members = Object.entries(schema.properties ?? {})
  const said = members.filter(([name]) => purpose === 'response' || schema.required?.includes(name))
  // When a minimum number of members is required, the first ones are used.
  const least = said.length < (schema.minProperties ?? 0) ? members.slice(0, schema.minProperties) : said
  return Object.fromEntries(least.map(([name, member]) => [name, below(member, name)]))
}

/** Shell variables appear in calls only. */
function hasVariable(value: unknown): boolean {
  return /\$[A-Z]/.test(JSON.stringify(value))
}

function isOfType(value: unknown, { type, items }: OpenApiSchema): boolean {
  if (type === undefined) return true
  if (type === 'array' || Array.isArray(value))
    return type === 'array' && Array.isArray(value) && items?.type === 'string'
  if (type === 'integer' || type === 'number') return typeof value === 'number'
  return typeof value === type
}

/** `games` -> `game`: the name of one item. */
function singular(name: string): string {
  return name.endsWith('s') ? name.slice(0, -1) : name
}

function variableOf(name: string): string {
  return (name === '' ? 'id' : name).toUpperCase()
}

/** The shell variable for the credential, the most usual kind of caller first. */
const TOKENS: readonly (readonly [CallerKind, string])[] = [
  ['namespace', 'PUBLIC_TOKEN'],
  ['lobby', 'PLATFORM_TOKEN'],
  ['cloud', 'MUSTER_TOKEN'],
  ['user', 'MUSTER_TOKEN'],
  ['admin', 'MUSTER_TOKEN'],
  ['identity', 'IDENTITY_TOKEN'],
  ['development', 'DEVELOPMENT_TOKEN'],
]

export type CallParts = {
  operation: Operation
  query: readonly { name: string; schema: OpenApiSchema }[]
  body: OpenApiSchema | null
}

/** A call of the operation, for a POSIX shell with curl. */
export function curlOf(main_url: string, schemas: Schemas, { operation, query, body }: CallParts): string {
  const { method, auth, id } = operation
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = VALUES[name]
    return typeof value === 'string' && !value.startsWith('$') ? value : `$${variableOf(name)}`
  })
  const pairs = query.map(
    ({ name, schema }) => `${name}=${String(exampleOf(schemas, schema, { name, purpose: 'call', depth: 0 }))}`,
  )
  const address = `${main_url}${path}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`
  const token = auth.includes('anyone') ? undefined : TOKENS.find(([kind]) => auth.includes(kind))?.[1]
  const lines = [`curl ${method === 'GET' ? '' : `-X ${method} `}"${address}"`]
  if (token !== undefined) lines.push(`-H "Authorization: Bearer $${token}"`)
  // A page of the main domain makes this call: it needs the Origin and the session cookie.
  if (id === 'auth.tokens.refreshIdentityToken') lines.push(`-H "Origin: ${main_url}" -b cookies.txt -c cookies.txt`)
  if (body === null) return lines.join(' \\\n  ')
  lines.push('-H "Content-Type: application/json"', '-d @- <<JSON')
  const text = JSON.stringify(bodyExample(schemas, body), null, 2)
  return `${lines.join(' \\\n  ')}\n${inHereDocument(text)}\nJSON`
}

/** Escapes everything that the shell would expand, except variables in capitals. */
function inHereDocument(text: string): string {
  return text.replace(/[\\`]|\$(?![A-Z][A-Z_]*(?!\w))/g, (character) => `\\${character}`)
}
