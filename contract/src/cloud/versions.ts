// Versions: a version config with a name. A version never changes; to change a namespace, deploy another version to it.
import Type from 'typebox'
import { GameId, NamespaceId, VersionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Before, DisplayName, ErrorDetailRecord, IsCut, object, PageLimit, Timestamp } from '../records.ts'
import { VersionConfig } from '../version-config.ts'
import { Draft, ValidationErrors } from './validation.ts'

/** Characters of the display name of a version. */
export const VERSION_DISPLAY_NAME_LENGTH_MAX = 128

const summary = {
  version_id: VersionId,
  create_ts: Timestamp('When the version was created.'),
  display_name: Type.String({ description: 'Name for people, unique in the game. Example: `1.4.0`.' }),
}

export const VersionSummary = object(summary, 'A version without its config.')
export const VersionFull = object({ ...summary, config: VersionConfig }, 'A version with its config.')

const warnings = Type.Array(ErrorDetailRecord, {
  description:
    'Problems that do not prevent the version. `url_only`: players reach this `https` port only at its `url`, because the platform has no certificate for the hosts of lobbies.',
})

const game = object({ game_id: GameId })
const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const

export const listGameVersions = operation({
  ...defaults,
  id: 'games.versions.listGameVersions',
  method: 'GET',
  path: '/cloud/games/{game_id}/versions',
  summary: 'Lists the versions of a game, newest first, with the namespaces that use each of them.',
  role: 'viewer',
  params: game,
  query: object({ before_version_id: Before('version_id'), limit: PageLimit }),
  response: object({
    versions: Type.Array(
      object({
        ...summary,
        namespace_ids: Type.Array(NamespaceId, { description: 'Namespaces on which the version is deployed now.' }),
      }),
      { description: 'The versions, newest first.' },
    ),
    is_cut: IsCut('Continue with `before_version_id`.'),
  }),
  errors: ['GAME_NOT_FOUND'],
})

export const createGameVersion = operation({
  ...defaults,
  id: 'games.versions.createGameVersion',
  method: 'POST',
  path: '/cloud/games/{game_id}/versions',
  summary: 'Creates a version. The uploads of its builds and its site must be complete.',
  role: 'developer',
  params: game,
  document: 'config',
  body: object({ display_name: DisplayName(VERSION_DISPLAY_NAME_LENGTH_MAX), config: VersionConfig }),
  response: object({ version_id: VersionId, warnings }),
  errors: ['GAME_NOT_FOUND', 'NAME_TAKEN'],
})

export const validateGameVersion = operation({
  ...defaults,
  id: 'games.versions.validateGameVersion',
  method: 'POST',
  path: '/cloud/games/{game_id}/versions/validate',
  summary: 'Checks the input for a new version without creating it.',
  role: 'developer',
  params: game,
  document: 'config',
  body: object({
    display_name: Draft('Display name to check.'),
    config: Type.Unknown({ description: 'Version config to check.' }),
  }),
  response: object({ ...ValidationErrors.properties, warnings }),
  errors: ['GAME_NOT_FOUND'],
})

export const reserveVersionName = operation({
  ...defaults,
  id: 'games.versions.reserveVersionName',
  method: 'POST',
  path: '/cloud/games/{game_id}/versions/reserve-name',
  summary: 'Reserves a display name for a new version. No name is returned twice.',
  role: 'developer',
  params: game,
  response: object({
    version_display_name: Type.String({ description: 'The reserved display name.' }),
  }),
  errors: ['GAME_NOT_FOUND'],
})

export const getGameVersionById = operation({
  ...defaults,
  id: 'games.versions.getGameVersionById',
  method: 'GET',
  path: '/cloud/games/{game_id}/versions/{version_id}',
  summary: 'Gets a version with its config.',
  role: 'viewer',
  params: object({ game_id: GameId, version_id: VersionId }),
  response: object({ version: VersionFull }),
  errors: ['GAME_NOT_FOUND', 'VERSION_NOT_FOUND'],
})
