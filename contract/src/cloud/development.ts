// Development tokens: with one, the matchmaker answers as if a lobby ran at `hostname`, on the developer's own machine.
import Type, { type Static } from 'typebox'
import { operation } from '../operation.ts'
import { Empty, Id, object, U32 } from '../records.ts'
import { TokenSummary } from './tokens.ts'
import { Draft, ValidationErrors } from './validation.ts'

export const DEVELOPMENT_PORT_PROTOCOLS = ['http', 'https', 'tcp', 'tcp_tls', 'udp'] as const
export const HOSTNAME_LENGTH_MAX = 253

export const DevelopmentPort = object(
  {
    port: Type.Optional(Type.Integer({ description: '1 to 65535.' })),
    port_range: Type.Optional(
      object(
        { min: U32, max: U32 },
        'Connectable ports, in the place of `port`. The network mode must be host; ranges may overlap.',
      ),
    ),
    protocol: Type.Enum([...DEVELOPMENT_PORT_PROTOCOLS]),
  },
  'Either a port, or a range of TCP or UDP ports.',
)
export type DevelopmentPort = Static<typeof DevelopmentPort>

export const DevelopmentPorts = Type.Record(Type.String(), DevelopmentPort, {
  additionalProperties: false,
  description: 'By port name, at most 16.',
})

const namespace = { game_id: Id, namespace_id: Id }
const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const NOT_FOUND = ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'] as const

export const createGameNamespaceTokenDevelopment = operation({
  ...defaults,
  id: 'games.namespaces.createGameNamespaceTokenDevelopment',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/development',
  summary:
    'Creates a development token for the namespace: matchmaker calls with it never touch its players and lobbies.',
  role: 'developer',
  params: object(namespace),
  body: object({
    hostname: Type.String({ minLength: 1, maxLength: HOSTNAME_LENGTH_MAX, description: 'A host name or IP address.' }),
    ports: Type.Optional(DevelopmentPorts),
  }),
  response: object({ token: Type.String() }),
  errors: NOT_FOUND,
})

export const validateGameNamespaceTokenDevelopment = operation({
  ...defaults,
  id: 'games.namespaces.validateGameNamespaceTokenDevelopment',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/development/validate',
  summary: 'Validates information used to create a new development token.',
  role: 'developer',
  params: object(namespace),
  body: object({ hostname: Draft, ports: Type.Optional(Type.Unknown()) }),
  response: ValidationErrors,
  errors: NOT_FOUND,
})

export const listGameNamespaceTokensDevelopment = operation({
  ...defaults,
  id: 'games.namespaces.listGameNamespaceTokensDevelopment',
  method: 'GET',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/development',
  summary: 'Lists the development tokens of the namespace.',
  role: 'developer',
  params: object(namespace),
  response: object({ tokens: Type.Array(TokenSummary, { description: 'The newest first.' }) }),
  errors: NOT_FOUND,
})

export const revokeGameNamespaceTokenDevelopment = operation({
  ...defaults,
  id: 'games.namespaces.revokeGameNamespaceTokenDevelopment',
  method: 'DELETE',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/development/{token_id}',
  summary: 'Revokes a development token. Repeating it changes nothing.',
  role: 'developer',
  params: object({ ...namespace, token_id: Id }),
  response: Empty,
  errors: [...NOT_FOUND, 'TOKEN_NOT_FOUND'],
})
