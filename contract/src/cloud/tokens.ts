// Issued tokens of a game: list and revoke. A token itself is returned once, when it is created.
import Type from 'typebox'
import { GameId, NamespaceId, TokenId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Before, Empty, IsCut, object, PageLimit, Timestamp } from '../records.ts'
import { Creator } from './creator.ts'

export const TokenSummary = object(
  {
    token_id: TokenId,
    name: Type.Optional(
      Type.String({
        description:
          'What the token is for: the name that its creator gave, the machine of a device link, or the host of a development token. Absent without one.',
      }),
    ),
    created_by: Type.Optional(Creator('The caller who created it. Absent for tokens from before this was recorded.')),
    use_ts: Type.Optional(
      Timestamp('When it was last used, a few seconds late. Of cloud tokens only. Absent before the first use.'),
    ),
    create_ts: Timestamp('When the token was created.'),
    expire_ts: Type.Optional(Timestamp('When the token expires.')),
    revoke_ts: Type.Optional(Timestamp('When the token was revoked. Absent while it is not.')),
  },
  'An issued token, without its secret.',
)

const list = object({
  tokens: Type.Array(TokenSummary, { description: 'The tokens, newest first.' }),
  is_cut: IsCut('Continue with `before_token_id`.'),
})
export const TokenPage = object({ before_token_id: Before('token_id'), limit: PageLimit })
const page = TokenPage
const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const game = { game_id: GameId }
const namespace = { game_id: GameId, namespace_id: NamespaceId }

export const listGameCloudTokens = operation({
  ...defaults,
  id: 'games.tokens.listCloudTokens',
  method: 'GET',
  path: '/cloud/games/{game_id}/tokens/cloud',
  summary: 'Lists the cloud tokens of the game.',
  role: 'developer',
  params: object(game),
  query: page,
  response: list,
  errors: ['GAME_NOT_FOUND'],
})

export const revokeGameCloudToken = operation({
  ...defaults,
  id: 'games.tokens.revokeCloudToken',
  confirm: true,
  method: 'DELETE',
  path: '/cloud/games/{game_id}/tokens/cloud/{token_id}',
  summary: 'Revokes a cloud token. The platform refuses it within a second. A repeated call changes nothing.',
  role: 'developer',
  params: object({ ...game, token_id: TokenId }),
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
  query: page,
  response: list,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const revokeGameNamespaceTokenPublic = operation({
  ...defaults,
  id: 'games.namespaces.revokeGameNamespaceTokenPublic',
  confirm: true,
  method: 'DELETE',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/tokens/public/{token_id}',
  summary:
    'Revokes a public token: game clients with this token cannot find lobbies any more. Connected players keep playing.',
  role: 'developer',
  params: object({ ...namespace, token_id: TokenId }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'TOKEN_NOT_FOUND'],
})

export const revokeToken = operation({
  id: 'admin.revokeToken',
  confirm: true,
  service: 'api',
  method: 'DELETE',
  path: '/admin/tokens/{token_id}',
  summary: 'Revokes a token of any kind by its id, even when the platform has no record of it.',
  auth: ['admin'],
  rate_limit: 'cloud',
  params: object({ token_id: TokenId }),
  response: Empty,
})
