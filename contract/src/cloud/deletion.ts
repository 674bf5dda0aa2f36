// Deleting. A record that others use is not deleted: IN_USE names the first users in `held_by: [{kind, id}]`, and has
// `is_cut` when there are more. Stored files are removed later.

import { BuildId, GameId, GroupId, NamespaceId, SiteId, VersionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Empty, object } from '../records.ts'

const defaults = {
  service: 'api',
  method: 'DELETE',
  role: 'developer',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  response: Empty,
} as const

export const deleteGroup = operation({
  ...defaults,
  id: 'groups.delete',
  confirm: true,
  path: '/group/groups/{group_id}',
  summary: 'Deletes a group. Refused with `IN_USE` while the group has games.',
  role: 'owner',
  auth: ['admin', 'user'],
  params: object({ group_id: GroupId }),
  errors: ['GROUP_NOT_FOUND', 'IN_USE'],
})

export const deleteGame = operation({
  ...defaults,
  id: 'games.deleteGame',
  confirm: true,
  path: '/cloud/games/{game_id}',
  summary:
    'Deletes a game with everything in it. Refused with `IN_USE` while a namespace has lobbies or a version that is not empty.',
  role: 'owner',
  auth: ['admin', 'user'],
  params: object({ game_id: GameId }),
  errors: ['GAME_NOT_FOUND', 'IN_USE'],
})

export const deleteGameNamespace = operation({
  ...defaults,
  id: 'games.namespaces.deleteGameNamespace',
  confirm: true,
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}',
  summary: 'Deletes a namespace. Refused with `IN_USE` while it has lobbies.',
  params: object({ game_id: GameId, namespace_id: NamespaceId }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'IN_USE'],
})

export const deleteGameVersion = operation({
  ...defaults,
  id: 'games.versions.deleteGameVersion',
  path: '/cloud/games/{game_id}/versions/{version_id}',
  summary: 'Deletes a version. Refused with `IN_USE` while it is deployed to a namespace, or lobbies run it.',
  params: object({ game_id: GameId, version_id: VersionId }),
  errors: ['GAME_NOT_FOUND', 'VERSION_NOT_FOUND', 'IN_USE'],
})

export const deleteGameBuild = operation({
  ...defaults,
  id: 'games.builds.deleteGameBuild',
  path: '/cloud/games/{game_id}/builds/{build_id}',
  summary: 'Deletes a build. Refused with `IN_USE` while a version names it, even a version that is not deployed.',
  params: object({ game_id: GameId, build_id: BuildId }),
  errors: ['GAME_NOT_FOUND', 'BUILD_NOT_FOUND', 'IN_USE'],
})

export const deleteGameCdnSite = operation({
  ...defaults,
  id: 'games.cdn.deleteGameCdnSite',
  path: '/cloud/games/{game_id}/cdn/sites/{site_id}',
  summary: 'Deletes a site. Refused with `IN_USE` while a version names it, even a version that is not deployed.',
  params: object({ game_id: GameId, site_id: SiteId }),
  errors: ['GAME_NOT_FOUND', 'SITE_NOT_FOUND', 'IN_USE'],
})
