// Versions: a version config under a name. A version never changes; a namespace is moved to another one.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { DisplayName, ErrorDetailRecord, Id, object, Timestamp } from '../records.ts'
import { VersionConfig } from '../version-config.ts'
import { Draft, ValidationErrors } from './validation.ts'

export const VERSION_DISPLAY_NAME_LENGTH_MAX = 128

const summary = { version_id: Id, create_ts: Timestamp, display_name: Type.String() }

export const VersionSummary = object(summary, 'A version in short.')
export const VersionFull = object({ ...summary, config: VersionConfig })

const warnings = Type.Array(ErrorDetailRecord, {
  description:
    'What the platform accepts, and the author of the config should know. `url_only`: players reach this `https` port only at its ' +
    '`url`, because the platform has no certificate for the hosts of lobbies.',
})

const game = object({ game_id: Id })
const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const

export const createGameVersion = operation({
  ...defaults,
  id: 'games.versions.createGameVersion',
  method: 'POST',
  path: '/cloud/games/{game_id}/versions',
  summary: 'Creates a version. Its builds and its site must be complete.',
  role: 'developer',
  params: game,
  document: 'config',
  body: object({ display_name: DisplayName(VERSION_DISPLAY_NAME_LENGTH_MAX), config: VersionConfig }),
  response: object({ version_id: Id, warnings }),
  errors: ['GAME_NOT_FOUND', 'NAME_TAKEN'],
})

export const validateGameVersion = operation({
  ...defaults,
  id: 'games.versions.validateGameVersion',
  method: 'POST',
  path: '/cloud/games/{game_id}/versions/validate',
  summary: 'Validates information used to create a new version.',
  role: 'developer',
  params: game,
  document: 'config',
  body: object({ display_name: Draft, config: Type.Unknown({ description: 'A version config.' }) }),
  response: object({ ...ValidationErrors.properties, warnings }),
  errors: ['GAME_NOT_FOUND'],
})

export const reserveVersionName = operation({
  ...defaults,
  id: 'games.versions.reserveVersionName',
  method: 'POST',
  path: '/cloud/games/{game_id}/versions/reserve-name',
  summary: 'Gives out a display name for a version that is to be created; nobody is given it again.',
  role: 'developer',
  params: game,
  response: object({ version_display_name: Type.String() }),
  errors: ['GAME_NOT_FOUND'],
})

export const getGameVersionById = operation({
  ...defaults,
  id: 'games.versions.getGameVersionById',
  method: 'GET',
  path: '/cloud/games/{game_id}/versions/{version_id}',
  summary: 'Gets a version with its config.',
  role: 'viewer',
  params: object({ game_id: Id, version_id: Id }),
  response: object({ version: VersionFull }),
  errors: ['GAME_NOT_FOUND', 'VERSION_NOT_FOUND'],
})
