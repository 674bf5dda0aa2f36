// Renaming changes the display name only. Addresses, name ids and running lobbies stay as they are.

import { BuildId, GameId, NamespaceId, SiteId, VersionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { DisplayName, Empty, object } from '../records.ts'
import { BUILD_DISPLAY_NAME_LENGTH_MAX } from './builds.ts'
import { GAME_DISPLAY_NAME_LENGTH_MAX } from './games.ts'
import { NAMESPACE_DISPLAY_NAME_LENGTH_MAX } from './namespaces.ts'
import { SITE_DISPLAY_NAME_LENGTH_MAX } from './sites.ts'
import { VERSION_DISPLAY_NAME_LENGTH_MAX } from './versions.ts'

const defaults = {
  service: 'api',
  method: 'PUT',
  role: 'developer',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  response: Empty,
} as const

export const renameGame = operation({
  ...defaults,
  id: 'games.renameGame',
  path: '/cloud/games/{game_id}/display-name',
  summary: 'Changes the display name of a game.',
  params: object({ game_id: GameId }),
  body: object({ display_name: DisplayName(GAME_DISPLAY_NAME_LENGTH_MAX) }),
  errors: ['GAME_NOT_FOUND'],
})

export const renameGameNamespace = operation({
  ...defaults,
  id: 'games.namespaces.renameGameNamespace',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/display-name',
  summary: 'Changes the display name of a namespace.',
  params: object({ game_id: GameId, namespace_id: NamespaceId }),
  body: object({ display_name: DisplayName(NAMESPACE_DISPLAY_NAME_LENGTH_MAX) }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})

export const renameGameVersion = operation({
  ...defaults,
  id: 'games.versions.renameGameVersion',
  path: '/cloud/games/{game_id}/versions/{version_id}/display-name',
  summary: 'Changes the display name of a version. The config of a version never changes.',
  params: object({ game_id: GameId, version_id: VersionId }),
  body: object({ display_name: DisplayName(VERSION_DISPLAY_NAME_LENGTH_MAX) }),
  errors: ['GAME_NOT_FOUND', 'VERSION_NOT_FOUND', 'NAME_TAKEN'],
})

export const renameGameBuild = operation({
  ...defaults,
  id: 'games.builds.renameGameBuild',
  path: '/cloud/games/{game_id}/builds/{build_id}/display-name',
  summary: 'Changes the display name of a build.',
  params: object({ game_id: GameId, build_id: BuildId }),
  body: object({ display_name: DisplayName(BUILD_DISPLAY_NAME_LENGTH_MAX) }),
  errors: ['GAME_NOT_FOUND', 'BUILD_NOT_FOUND'],
})

export const renameGameCdnSite = operation({
  ...defaults,
  id: 'games.cdn.renameGameCdnSite',
  path: '/cloud/games/{game_id}/cdn/sites/{site_id}/display-name',
  summary: 'Changes the display name of a site.',
  params: object({ game_id: GameId, site_id: SiteId }),
  body: object({ display_name: DisplayName(SITE_DISPLAY_NAME_LENGTH_MAX) }),
  errors: ['GAME_NOT_FOUND', 'SITE_NOT_FOUND'],
})
