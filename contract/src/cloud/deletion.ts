// Deleting: what is deployed, or held by something else, is refused with IN_USE, whose metadata names the first that
// hold it: `held_by: [{kind, id}]`, and `is_cut` where there are more. What was stored is removed a while later.
import { operation } from '../operation.ts'
import { Empty, Id, object } from '../records.ts'

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
  path: '/group/groups/{group_id}',
  summary: 'Deletes a group that has no games.',
  role: 'owner',
  auth: ['admin', 'user'],
  params: object({ group_id: Id }),
  errors: ['GROUP_NOT_FOUND', 'IN_USE'],
})

export const deleteGame = operation({
  ...defaults,
  id: 'games.deleteGame',
  path: '/cloud/games/{game_id}',
  summary:
    'Deletes a game with all that is its own. Held by namespaces with a version that is not empty, or with lobbies.',
  role: 'owner',
  auth: ['admin', 'user'],
  params: object({ game_id: Id }),
  errors: ['GAME_NOT_FOUND', 'IN_USE'],
})

export const deleteGameNamespace = operation({
  ...defaults,
  id: 'games.namespaces.deleteGameNamespace',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}',
  summary: 'Deletes a namespace. Held by its lobbies.',
  params: object({ game_id: Id, namespace_id: Id }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'IN_USE'],
})

export const deleteGameVersion = operation({
  ...defaults,
  id: 'games.versions.deleteGameVersion',
  path: '/cloud/games/{game_id}/versions/{version_id}',
  summary: 'Deletes a version. Held by namespaces that it is deployed to, and by lobbies that still run it.',
  params: object({ game_id: Id, version_id: Id }),
  errors: ['GAME_NOT_FOUND', 'VERSION_NOT_FOUND', 'IN_USE'],
})

export const deleteGameBuild = operation({
  ...defaults,
  id: 'games.builds.deleteGameBuild',
  path: '/cloud/games/{game_id}/builds/{build_id}',
  summary: 'Deletes a build. Held by versions that name it, deployed or not: each can be deployed at any time.',
  params: object({ game_id: Id, build_id: Id }),
  errors: ['GAME_NOT_FOUND', 'BUILD_NOT_FOUND', 'IN_USE'],
})

export const deleteGameCdnSite = operation({
  ...defaults,
  id: 'games.cdn.deleteGameCdnSite',
  path: '/cloud/games/{game_id}/cdn/sites/{site_id}',
  summary: 'Deletes a site. Held by versions that name it, deployed or not.',
  params: object({ game_id: Id, site_id: Id }),
  errors: ['GAME_NOT_FOUND', 'SITE_NOT_FOUND', 'IN_USE'],
})
