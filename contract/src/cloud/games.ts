// Games: what a group develops. Everything below a game's address acts on that game only.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { DisplayName, Id, IsCut, NameId, object, Timestamp, Watch, WatchIndex } from '../records.ts'
import { GroupHandle, GroupSummary } from './groups.ts'
import { ImageUrl } from './images.ts'
import { NamespaceSummary } from './namespaces.ts'
import { Draft, ValidationErrors } from './validation.ts'
import { VersionSummary } from './versions.ts'

export const GAME_DISPLAY_NAME_LENGTH_MAX = 24

const PlayerCount = Type.Integer({ minimum: 0, description: 'Players connected to lobbies of all its namespaces.' })

export const GameSummary = object(
  {
    game_id: Id,
    name_id: Type.String(),
    display_name: Type.String(),
    create_ts: Timestamp,
    url: Type.String({ description: 'Address of the site of the namespace `prod`.' }),
    developer: GroupHandle,
    total_player_count: PlayerCount,
    logo_url: ImageUrl,
    banner_url: ImageUrl,
  },
  'A game in short.',
)

export const RegionSummary = object(
  {
    region_id: Id,
    region_name_id: Type.String({ description: 'What version configs and the matchmaker call it.' }),
    region_display_name: Type.String(),
    provider: Type.String({ description: 'How lobbies are run there.' }),
    universal_region: Type.Enum(['unknown', 'local'], {
      description: 'The city, for clients that ask for one: `local` for a region of that name, otherwise `unknown`.',
    }),
    provider_display_name: Type.String(),
  },
  'A place where lobbies run.',
)

export const GameFull = object({
  game_id: Id,
  create_ts: Timestamp,
  name_id: Type.String(),
  display_name: Type.String(),
  developer_group_id: Id,
  total_player_count: PlayerCount,
  logo_url: ImageUrl,
  banner_url: ImageUrl,
  namespaces: Type.Array(NamespaceSummary, { description: 'Newest first.' }),
  versions: Type.Array(VersionSummary, { description: 'Newest first.' }),
  available_regions: Type.Array(RegionSummary),
  is_cut: IsCut('It has the 1,000 newest namespaces and versions.'),
})

const params = object({ game_id: Id })

export const createGame = operation({
  id: 'games.createGame',
  service: 'api',
  method: 'POST',
  path: '/cloud/games',
  summary: 'Creates a game, with the namespaces prod and staging on an empty version.',
  role: 'developer',
  auth: ['admin', 'user'],
  rate_limit: 'cloud',
  body: object({
    name_id: Type.Optional(NameId),
    display_name: DisplayName(GAME_DISPLAY_NAME_LENGTH_MAX),
    developer_group_id: Id,
  }),
  response: object({ game_id: Id }),
  errors: ['GROUP_NOT_FOUND', 'NAME_TAKEN', 'QUOTA_REACHED'],
})

export const validateGame = operation({
  id: 'games.validateGame',
  service: 'api',
  method: 'POST',
  path: '/cloud/games/validate',
  summary: 'Validates information used to create a new game.',
  auth: ['admin', 'user'],
  rate_limit: 'cloud',
  body: object({ display_name: Draft, name_id: Type.Optional(Draft) }),
  response: ValidationErrors,
})

export const getGames = operation({
  id: 'games.getGames',
  service: 'api',
  method: 'GET',
  path: '/cloud/games',
  summary: 'Lists the games that the caller may see, newest first, and the groups that develop games.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  query: object({ watch_index: WatchIndex }),
  response: object({
    games: Type.Array(GameSummary),
    groups: Type.Array(GroupSummary),
    is_cut: IsCut('It has the 1,000 newest games and groups.'),
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

export const createCloudToken = operation({
  id: 'games.tokens.createCloudToken',
  service: 'api',
  method: 'POST',
  path: '/cloud/games/{game_id}/tokens/cloud',
  summary: 'Creates a token that acts for this game only: the way in for CI.',
  role: 'developer',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  params,
  response: object({ token: Type.String() }),
  errors: ['GAME_NOT_FOUND'],
})
