// Access to the site of a namespace, and the history of what was deployed to it.
import Type from 'typebox'
import { DeployId, GameId, NamespaceId, VersionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Empty, IsCut, object, Timestamp } from '../records.ts'

/** Users of the site of one namespace. */
export const AUTH_USERS_MAX = 32
/** Deploys of one response. */
const VERSION_HISTORY_MAX = 100

const AuthUser = Type.String({
  pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f:]*$',
  minLength: 1,
  maxLength: 64,
  description: 'Name of a user of the site, without colons and control characters. Example: `tester`.',
})

export const NamespaceVersion = object(
  {
    deploy_id: DeployId,
    namespace_id: NamespaceId,
    version_id: VersionId,
    deploy_ts: Timestamp('When the version was deployed.'),
    deployed_by: object(
      {
        kind: Type.String({ description: 'Kind of the caller: `user`, `admin` or `cloud`.' }),
        name: Type.Optional(
          Type.String({
            description:
              'Display name of the user now, or name of the access token. Absent for cloud tokens, and for users who deployed before this was recorded.',
          }),
        ),
      },
      'The caller who deployed it.',
    ),
    message: Type.Optional(
      Type.String({ description: 'Message of the deploy. Absent without one. Example: `Faster rounds`.' }),
    ),
    first_ready_ts: Type.Optional(
      Timestamp(
        'When the server of the first lobby of this deploy called ready. Absent when no lobby did, or when its record is no longer kept.',
      ),
    ),
    rolled_back_ts: Type.Optional(
      Timestamp('When a rollback replaced this deploy: its version did not work. Absent otherwise.'),
    ),
  },
  'A deploy: from `deploy_ts` on, the namespace used this version.',
)

const defaults = {
  service: 'api',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
} as const
const namespace = { game_id: GameId, namespace_id: NamespaceId }
const params = object(namespace)

export const setNamespaceCdnAuthType = operation({
  ...defaults,
  id: 'games.namespaces.setNamespaceCdnAuthType',
  method: 'PUT',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/cdn-auth',
  summary: 'Sets whether visitors of the site need a user name and a password.',
  role: 'developer',
  params,
  body: object({
    auth_type: Type.Enum(['none', 'basic'], {
      description: '`none`: the site is public. `basic`: visitors need the name and password of a user of the site.',
    }),
  }),
  response: Empty,
})

export const updateNamespaceCdnAuthUser = operation({
  ...defaults,
  id: 'games.namespaces.updateNamespaceCdnAuthUser',
  method: 'POST',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/auth-user',
  summary:
    'Adds a user of the site, or changes the password of a user. Send the bcrypt hash of the password; it is never returned.',
  role: 'developer',
  params,
  body: object({
    user: AuthUser,
    password: Type.String({
      maxLength: 128,
      description: 'bcrypt hash of the password (`$2a$`, `$2b$` or `$2y$`), with a cost from 4 to 13.',
    }),
  }),
  response: Empty,
  errors: [...defaults.errors, 'CDN_INVALID_AUTH_USER_PASSWORD', 'CDN_TOO_MANY_AUTH_USERS'],
})

export const removeNamespaceCdnAuthUser = operation({
  ...defaults,
  id: 'games.namespaces.removeNamespaceCdnAuthUser',
  method: 'DELETE',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/auth-user/{user}',
  summary: 'Removes a user of the site. A repeated call changes nothing.',
  role: 'developer',
  params: object({ ...namespace, user: AuthUser }),
  response: Empty,
})

export const toggleNamespaceDomainPublicAuth = operation({
  ...defaults,
  id: 'games.namespaces.toggleNamespaceDomainPublicAuth',
  method: 'PUT',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/domain-public-auth',
  summary: 'Sets whether pages on the host of the namespace may use the matchmaker without a token.',
  role: 'developer',
  params,
  body: object({
    enabled: Type.Boolean({ description: 'Whether such pages need no token: their Origin stands for the namespace.' }),
  }),
  response: Empty,
})

export const getGameNamespaceVersionHistoryList = operation({
  ...defaults,
  id: 'games.namespaces.getGameNamespaceVersionHistoryList',
  method: 'GET',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/version-history',
  summary: 'Lists the deploys of the namespace, newest first. To roll back, deploy an earlier version again.',
  role: 'viewer',
  params,
  query: object({
    anchor: Type.Optional(
      Type.String({
        format: 'uuid',
        description: 'Next page: the `deploy_id` of the last entry. Only earlier deploys are listed.',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: VERSION_HISTORY_MAX,
        description: `Maximum number of entries. Default ${VERSION_HISTORY_MAX}.`,
      }),
    ),
  }),
  response: object({
    versions: Type.Array(NamespaceVersion, { description: 'The deploys, newest first.' }),
    is_cut: IsCut('Earlier deploys follow with `anchor`.'),
  }),
})
