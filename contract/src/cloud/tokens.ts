// The tokens that were given out for a game, and their end. A token itself is told once, when it is created.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Empty, Id, IsCut, object, Timestamp } from '../records.ts'

export const TokenSummary = object(
  {
    token_id: Id,
    create_ts: Timestamp,
    expire_ts: Type.Optional(Timestamp),
    revoke_ts: Type.Optional(Type.String({ format: 'date-time', description: 'Present: it is not valid any more.' })),
  },
  'A token, without the token.',
)

const list = object({
  tokens: Type.Array(TokenSummary, { description: 'The newest first.' }),
  is_cut: IsCut('It has the 1,000 newest.'),
})
const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const game = { game_id: Id }
const namespace = { game_id: Id, namespace_id: Id }

export const listGameCloudTokens = operation({
  ...defaults,
  id: 'games.tokens.listCloudTokens',
  method: 'GET',
  path: '/cloud/games/{game_id}/tokens/cloud',
  summary: 'Lists the cloud tokens of the game.',
  role: 'developer',
  params: object(game),
  response: list,
  errors: ['GAME_NOT_FOUND'],
})

export const revokeGameCloudToken = operation({
  ...defaults,
  id: 'games.tokens.revokeCloudToken',
  method: 'DELETE',
  path: '/cloud/games/{game_id}/tokens/cloud/{token_id}',
  summary: 'Revokes a cloud token: within a second nothing takes it any more. Repeating it changes nothing.',
  role: 'developer',
  params: object({ ...game, token_id: Id }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'TOKEN_NOT_FOUND'],
})

export const listGameNamespaceTokensPublic = operation({
  ...defaults,
  id: 'games.namespaces.listGameNamespaceTokensPublic',
  method: 'GET',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/public',
  summary: 'Lists the public tokens of the namespace.',
  role: 'developer',
  params: object(namespace),
  response: list,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const revokeGameNamespaceTokenPublic = operation({
  ...defaults,
  id: 'games.namespaces.revokeGameNamespaceTokenPublic',
  method: 'DELETE',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/public/{token_id}',
  summary: 'Revokes a public token: games that carry it cannot find lobbies any more. Who plays goes on.',
  role: 'developer',
  params: object({ ...namespace, token_id: Id }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'TOKEN_NOT_FOUND'],
})

export const revokeToken = operation({
  id: 'admin.revokeToken',
  service: 'api',
  method: 'DELETE',
  path: '/admin/tokens/{token_id}',
  summary: 'Revokes a token of any kind by its id, known to the platform or not: for administrators.',
  auth: ['admin'],
  rate_limit: 'cloud',
  params: object({ token_id: Id }),
  response: Empty,
})
