// Games. Each belongs to a group. Every operation below the address of a game acts on this game only.
import Type from 'typebox'
import { GameId, Id, RegionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { DisplayName, described, IsCut, NameId, object, Timestamp, Watch, WatchIndex } from '../records.ts'
import { GroupHandle, GroupSummary } from './groups.ts'
import { ImageUrl } from './images.ts'
import { NamespaceSummary } from './namespaces.ts'
import { Draft, ValidationErrors } from './validation.ts'
import { VersionSummary } from './versions.ts'

/** Lifetime of a cloud token. */
export const CLOUD_TOKEN_TTL_MS_MAX = 365 * 24 * 60 * 60_000
/** Characters of the display name of a game. */
export const GAME_DISPLAY_NAME_LENGTH_MAX = 24

const GameName = Type.String({ description: 'Name for people. Example: `Arena`.' })
const GameNameId = Type.String({
  description: 'Short name, unique on the platform. It is part of the address of the site. Example: `arena`.',
})
const PlayerCount = Type.Integer({
  minimum: 0,
  description: 'Players connected to lobbies now, in all namespaces of the game.',
})

export const GameSummary = object(
  {
    game_id: GameId,
    name_id: GameNameId,
    display_name: GameName,
    create_ts: Timestamp('When the game was created.'),
    url: Type.String({ description: 'URL of the site of the namespace `prod`.' }),
    developer: GroupHandle,
    total_player_count: PlayerCount,
    logo_url: ImageUrl,
    banner_url: ImageUrl,
  },
  'A game without its namespaces and versions.',
)

export const RegionSummary = object(
  {
    region_id: RegionId,
    region_name_id: Type.String({
      description: 'Name of the region in version configs and in the matchmaker. Example: `frankfurt`.',
    }),
    region_display_name: Type.String({ description: 'Name for people. Example: `Frankfurt`.' }),
    provider: Type.String({ description: 'Driver that runs lobbies in the region. Example: `process`.' }),
    universal_region: Type.Enum(['unknown', 'local'], {
      description:
        'City of the region, for clients that expect one. `local` for a region with this name, otherwise `unknown`.',
    }),
    provider_display_name: Type.String({
      description: 'Name of the hosting provider, for people. Example: `This machine`.',
    }),
  },
  'A region: a place where lobbies run.',
)

export const GameFull = object(
  {
    game_id: GameId,
    create_ts: Timestamp('When the game was created.'),
    name_id: GameNameId,
    display_name: GameName,
    developer_group_id: Id('Id of the group that develops the game.'),
    total_player_count: PlayerCount,
    logo_url: ImageUrl,
    banner_url: ImageUrl,
    namespaces: Type.Array(NamespaceSummary, { description: 'Namespaces of the game, newest first.' }),
    versions: Type.Array(VersionSummary, { description: 'Versions of the game, newest first.' }),
    available_regions: Type.Array(RegionSummary, { description: 'Regions of the platform.' }),
    is_cut: IsCut('It contains the 1,000 newest namespaces and versions.'),
  },
  'A game with its namespaces and versions.',
)

const params = object({ game_id: GameId })

export const createGame = operation({
  id: 'games.createGame',
  service: 'api',
  method: 'POST',
  path: '/cloud/games',
  summary: 'Creates a game. It has the namespaces `prod` and `staging`, on an empty version.',
  role: 'developer',
  auth: ['admin', 'user'],
  rate_limit: 'cloud',
  body: object({
    name_id: Type.Optional(
      described(
        NameId,
        'Short name, unique on the platform: lower-case letters and digits, with single dashes in between. Default: made from the display name.',
      ),
    ),
    display_name: DisplayName(GAME_DISPLAY_NAME_LENGTH_MAX),
    developer_group_id: Id('Id of the group that develops the game.'),
  }),
  response: object({ game_id: GameId }),
  errors: ['GROUP_NOT_FOUND', 'NAME_TAKEN', 'QUOTA_REACHED'],
})

export const validateGame = operation({
  id: 'games.validateGame',
  service: 'api',
  method: 'POST',
  path: '/cloud/games/validate',
  summary: 'Checks the input for a new game without creating it.',
  auth: ['admin', 'user'],
  rate_limit: 'cloud',
  body: object({
    display_name: Draft('Display name to check.'),
    name_id: Type.Optional(Draft('Short name to check.')),
  }),
  response: ValidationErrors,
})

export const getGames = operation({
  id: 'games.getGames',
  service: 'api',
  method: 'GET',
  path: '/cloud/games',
  summary: "Lists the caller's games and groups, newest first. Administrators get all games and groups.",
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  query: object({ watch_index: WatchIndex }),
  response: object({
    games: Type.Array(GameSummary, { description: 'The games, newest first.' }),
    groups: Type.Array(GroupSummary, { description: 'The groups, newest first.' }),
    is_cut: IsCut('It contains the 1,000 newest games and groups.'),
    watch: Watch,
  }),
})

export const getGameById = operation({
  id: 'games.getGameById',
  service: 'api',
  method: 'GET',
  path: '/cloud/games/{game_id}',
  summary: 'Gets a game with its namespaces and versions.',
  role: 'viewer',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  params,
  query: object({ watch_index: WatchIndex }),
  response: object({ game: GameFull, watch: Watch }),
  errors: ['GAME_NOT_FOUND'],
})

export const exportGame = operation({
  id: 'games.exportGame',
  service: 'api',
  method: 'POST',
  path: '/cloud/games/{game_id}/export',
  summary:
    'Gets a URL for a file with all of a game: namespaces, versions, builds, sites, key-value data, ratings, schedules, analytics. `muster import-game` reads it on another platform. Secrets, tokens and domains are not in it.',
  role: 'developer',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  params,
  response: object({
    url: Type.String({
      description: 'URL of the tar archive, valid for an hour. It needs no credential, so keep it secret.',
    }),
  }),
  errors: ['GAME_NOT_FOUND'],
})

export const createCloudToken = operation({
  id: 'games.tokens.createCloudToken',
  service: 'api',
  method: 'POST',
  path: '/cloud/games/{game_id}/tokens/cloud',
  summary: 'Creates a cloud token. It acts for this game only. Use it in CI.',
  role: 'developer',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  params,
  body: Type.Optional(
    object({
      ttl: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: CLOUD_TOKEN_TTL_MS_MAX,
          description: 'How long the token is valid, in milliseconds. Default and maximum: 365 days.',
        }),
      ),
      name: Type.Optional(
        Type.String({
          format: 'display-name',
          minLength: 1,
          maxLength: 64,
          description: 'What the token is for, shown in the list of tokens. Example: `ci of the game`.',
        }),
      ),
    }),
  ),
  response: object({ token: Type.String({ description: 'The cloud token. It is returned only once.' }) }),
  errors: ['GAME_NOT_FOUND'],
})
