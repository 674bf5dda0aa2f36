// Development tokens. For a call with such a token, the matchmaker responds as if a lobby ran at `hostname`, the developer's
// own machine.
import Type, { type Static } from 'typebox'
import { GameId, NamespaceId, TokenId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Empty, IsCut, object, U32 } from '../records.ts'
import { TokenPage, TokenSummary } from './tokens.ts'
import { Draft, ValidationErrors } from './validation.ts'

export const DEVELOPMENT_PORT_PROTOCOLS = ['http', 'https', 'tcp', 'tcp_tls', 'udp'] as const
/** Characters of the host of a development token. */
export const HOSTNAME_LENGTH_MAX = 253

export const DevelopmentPort = object(
  {
    port: Type.Optional(
      Type.Integer({ description: 'Port number, 1 to 65535. Exactly one of `port` and `port_range` is required.' }),
    ),
    port_range: Type.Optional(
      object(
        { min: U32('First port of the range.'), max: U32('Last port of the range.') },
        'Range of TCP or UDP ports, instead of `port`. Ranges may overlap.',
      ),
    ),
    protocol: Type.Enum([...DEVELOPMENT_PORT_PROTOCOLS], {
      description: 'Protocol that the server speaks at this port.',
    }),
  },
  'Where the server on the machine of the developer listens: a port, or a range of ports.',
)
export type DevelopmentPort = Static<typeof DevelopmentPort>

export const DevelopmentPorts = Type.Record(Type.String(), DevelopmentPort, {
  additionalProperties: false,
  description: 'Ports of the server by name, at most 16. Seats contain them.',
})

const namespace = { game_id: GameId, namespace_id: NamespaceId }
const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const NOT_FOUND = ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'] as const

export const createGameNamespaceTokenDevelopment = operation({
  ...defaults,
  id: 'games.namespaces.createGameNamespaceTokenDevelopment',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/development',
  summary:
    'Creates a development token, valid for a year. Matchmaker calls with it return a fictitious lobby on your own machine, and never touch real players and lobbies.',
  role: 'developer',
  params: object(namespace),
  body: object({
    hostname: Type.String({
      minLength: 1,
      maxLength: HOSTNAME_LENGTH_MAX,
      description: 'Host name or IP address of your machine, as players reach it. Example: `localhost`.',
    }),
    ports: Type.Optional(DevelopmentPorts),
  }),
  response: object({ token: Type.String({ description: 'The development token. It is returned only once.' }) }),
  errors: NOT_FOUND,
})

export const validateGameNamespaceTokenDevelopment = operation({
  ...defaults,
  id: 'games.namespaces.validateGameNamespaceTokenDevelopment',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/development/validate',
  summary: 'Checks the input for a new development token without creating it.',
  role: 'developer',
  params: object(namespace),
  body: object({
    hostname: Draft('Host name or IP address to check.'),
    ports: Type.Optional(Type.Unknown({ description: 'Ports to check, by name.' })),
  }),
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
  query: TokenPage,
  response: object({
    tokens: Type.Array(TokenSummary, { description: 'The tokens, newest first.' }),
    is_cut: IsCut('Continue with `before_token_id`.'),
  }),
  errors: NOT_FOUND,
})

export const revokeGameNamespaceTokenDevelopment = operation({
  ...defaults,
  id: 'games.namespaces.revokeGameNamespaceTokenDevelopment',
  confirm: true,
  method: 'DELETE',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/development/{token_id}',
  summary: 'Revokes a development token. Repeating it changes nothing.',
  role: 'developer',
  params: object({ ...namespace, token_id: TokenId }),
  response: Empty,
  errors: [...NOT_FOUND, 'TOKEN_NOT_FOUND'],
})
