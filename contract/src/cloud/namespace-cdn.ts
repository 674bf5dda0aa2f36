// How a namespace's site may be visited, and what has been deployed to the namespace so far.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Empty, Id, IsCut, object, Timestamp } from '../records.ts'

/** Users of one namespace's site. */
export const AUTH_USERS_MAX = 32
const VERSION_HISTORY_MAX = 100

const AuthUser = Type.String({
  pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f:]*$',
  minLength: 1,
  maxLength: 64,
  description: 'A user name, without colon and control characters.',
})

export const NamespaceVersion = object(
  {
    deploy_id: Id,
    namespace_id: Id,
    version_id: Id,
    deploy_ts: Timestamp,
    deployed_by: object({
      kind: Type.String({ description: 'The kind of the token that deployed it.' }),
      name: Type.Optional(Type.String({ description: 'Whose token it was, where tokens have a name.' })),
    }),
  },
  'A deploy: from deploy_ts on the namespace was on this version.',
)

const defaults = {
  service: 'api',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
} as const
const namespace = { game_id: Id, namespace_id: Id }
const params = object(namespace)

export const setNamespaceCdnAuthType = operation({
  ...defaults,
  id: 'games.namespaces.setNamespaceCdnAuthType',
  method: 'PUT',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/cdn-auth',
  summary: 'Says what a visitor of the site must show: nothing, or the name and password of one of its users.',
  role: 'developer',
  params,
  body: object({ auth_type: Type.Enum(['none', 'basic']) }),
  response: Empty,
})

export const updateNamespaceCdnAuthUser = operation({
  ...defaults,
  id: 'games.namespaces.updateNamespaceCdnAuthUser',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/auth-user',
  summary: 'Adds a user of the site, or changes the password of one. The password is a bcrypt hash, never told again.',
  role: 'developer',
  params,
  body: object({
    user: AuthUser,
    password: Type.String({ maxLength: 128, description: 'A bcrypt hash ($2a$, $2b$ or $2y$) of cost 4 to 13.' }),
  }),
  response: Empty,
  errors: [...defaults.errors, 'CDN_INVALID_AUTH_USER_PASSWORD', 'CDN_TOO_MANY_AUTH_USERS'],
})

export const removeNamespaceCdnAuthUser = operation({
  ...defaults,
  id: 'games.namespaces.removeNamespaceCdnAuthUser',
  method: 'DELETE',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/auth-user/{user}',
  summary: 'Removes a user of the site. Repeating it changes nothing.',
  role: 'developer',
  params: object({ ...namespace, user: AuthUser }),
  response: Empty,
})

export const toggleNamespaceDomainPublicAuth = operation({
  ...defaults,
  id: 'games.namespaces.toggleNamespaceDomainPublicAuth',
  method: 'PUT',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/domain-public-auth',
  summary: 'Says whether a page on the namespace’s own host may use the matchmaker without a token.',
  role: 'developer',
  params,
  body: object({ enabled: Type.Boolean() }),
  response: Empty,
})

export const getGameNamespaceVersionHistoryList = operation({
  ...defaults,
  id: 'games.namespaces.getGameNamespaceVersionHistoryList',
  method: 'GET',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/version-history',
  summary: 'Lists what was deployed to the namespace, when and by whom, newest first. To roll back is to deploy again.',
  role: 'viewer',
  params,
  query: object({
    anchor: Type.Optional(
      Type.String({ format: 'uuid', description: 'Only what was deployed before this deploy_id.' }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: VERSION_HISTORY_MAX, description: `Default ${VERSION_HISTORY_MAX}.` }),
    ),
  }),
  response: object({
    versions: Type.Array(NamespaceVersion),
    is_cut: IsCut('Earlier deploys follow with `anchor`.'),
  }),
})
