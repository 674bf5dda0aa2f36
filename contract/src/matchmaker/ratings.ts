// Ratings: how strong a player is in a game mode, computed from the results that lobby servers report. A rating belongs to an
// identity and a game mode of a namespace.
import Type from 'typebox'
import { Id, IdentityId, PlayerId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, object, Timestamp } from '../records.ts'

/** Teams of a result, and players of all its teams: as many as a lobby has seats. */
export const RATED_PLAYERS_MAX = 256
/** Players whose ratings a lobby's server reads at once. */
export const RATING_PLAYERS_READ_MAX = 64
/** Ratings of a page. */
export const RATING_PAGE_MAX = 256
/** Results of a lobby that are remembered. */
export const RATING_RESULTS_MAX = 10_000

const GameModeName = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'Name of the game mode in the version config. Example: `default`.',
})
/** The schema admits a token, which is longer than an id. */
const PlayerName = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'Id of the player, as in the header `X-Player-Id`; or the player token. Example: `player.eyJ0eXAi…`.',
})
const NamespaceName = Type.Optional(
  Type.String({
    format: 'uuid',
    description:
      'Id of the namespace. Required for users, administrators and cloud tokens; other tokens stand for their namespace.',
  }),
)
const Anchor = Type.Optional(Type.String({ maxLength: 256, description: 'Next page: `anchor` of the previous page.' }))
const NextAnchor = Type.Optional(Type.String({ description: 'Send it to get the next page. Absent on the last page.' }))

const strength = {
  mu: Type.Number({ description: 'Estimated strength. A new player has 25.' }),
  sigma: Type.Number({
    description:
      'Uncertainty of the estimate: a standard deviation. A new player has 25/3; it shrinks with each match.',
  }),
  ordinal: Type.Number({
    description: 'One number to sort by: `mu - 3 * sigma`. A new player has 0. It may be negative.',
  }),
  matches: Type.Integer({ minimum: 0, description: 'Number of matches that were rated.' }),
}

/** The rating of one identity in one game mode. */
export const Rating = object(
  { game_mode: GameModeName, ...strength, update_ts: Timestamp('When the last match was rated.') },
  'The rating of an identity in a game mode.',
)
export const RatedIdentity = object(
  {
    game_mode: GameModeName,
    identity_id: IdentityId,
    display_name: Type.String({ description: 'Display name of the identity.' }),
    account_number: Type.Integer({
      description: 'Number that is shown after the display name, so that equal names differ.',
    }),
    ...strength,
    update_ts: Timestamp('When the last match was rated.'),
  },
  'An identity and its rating in a game mode.',
)
const Ratings = Type.Array(Rating, {
  description: 'One rating for each game mode in which a match was rated, sorted by name; at most 256.',
})

export const reportLobbyResult = operation({
  id: 'lobbies.result',
  service: 'api',
  method: 'POST',
  path: '/matchmaker/lobbies/result',
  summary:
    'Reports how a match ended, and changes the ratings of its players. The game mode needs `ratings` in the version config. A repeated call returns the first response and rates nothing again.',
  auth: ['lobby', 'development'],
  rate_limit: 'matchmaker',
  repeatable: true,
  body: object({
    teams: Type.Array(
      Type.Array(PlayerName, { minItems: 1, maxItems: RATED_PLAYERS_MAX, description: 'Players of the team.' }),
      {
        minItems: 2,
        maxItems: RATED_PLAYERS_MAX,
        description:
          'The teams of the match. Where each plays alone, each is a team. All teams together have at most 256 players, each once. Players who have left count too; they must have had a seat in this lobby.',
      },
    ),
    ranks: Type.Array(
      Type.Integer({ minimum: 1, maximum: RATED_PLAYERS_MAX, description: 'Place of the team. 1 is the best.' }),
      {
        minItems: 2,
        maxItems: RATED_PLAYERS_MAX,
        description: 'Place of each team, in the order of `teams`. Equal places are a draw. Example: `[1, 2]`.',
      },
    ),
    match_id: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9._:-]{1,64}$',
        description:
          'Name of the match, chosen by the server: letters, digits and `._:-`, at most 64. Send one when the lobby plays several matches: at most 10,000 are remembered. Default: the lobby is one match and has one result. Example: `round-3`.',
      }),
    ),
  }),
  response: object({
    ratings: Type.Array(
      object(
        {
          player_id: PlayerId,
          ...strength,
          ordinal_change: Type.Number({ description: 'How much this match changed `ordinal`.' }),
        },
        'A player and the rating after the match.',
      ),
      { description: 'Players whose ratings changed, in the order of `teams`.' },
    ),
    unrated_players: Type.Array(
      object(
        {
          player_id: PlayerId,
          reason: Type.Enum(['no_identity', 'same_identity'], {
            description:
              '`no_identity`: the seat was not requested with an identity token, or the identity was removed. `same_identity`: another player of the match has the same identity, which is rated once, in its team with the worst place.',
          }),
        },
        'A player who has no rating from the match.',
      ),
      {
        description:
          'Players who got no rating. In the computation each counts as a new player, so that the sizes of the teams stay true.',
      },
    ),
  }),
  errors: [
    'RATING_DISABLED',
    'RATING_PLAYER_NOT_FOUND',
    'RATING_IDENTITY_REQUIRED',
    'RATING_RESULT_DIFFERS',
    'PLAYER_TOKEN_INVALID',
    'NAMESPACE_NOT_FOUND',
    'QUOTA_REACHED',
  ],
})

const reading = { service: 'api', method: 'GET' } as const
const developers = { service: 'api', auth: ['cloud', 'user', 'admin'], rate_limit: 'cloud' } as const
const NamedNamespaceId = Id('Id of the namespace.')

export const getOwnRatings = operation({
  ...reading,
  id: 'ratings.getOwn',
  path: '/ratings/own',
  summary: 'Gets the ratings of the calling player, one for each game mode.',
  auth: ['identity'],
  rate_limit: 'matchmaker',
  response: object({ ratings: Ratings }),
})

export const getPlayerRatings = operation({
  ...reading,
  id: 'ratings.getPlayers',
  path: '/ratings/players',
  summary: 'Gets the ratings of players of the lobby in its game mode, for its server.',
  auth: ['lobby'],
  rate_limit: 'matchmaker',
  query: object({
    players: Type.Array(PlayerName, {
      minItems: 1,
      maxItems: RATING_PLAYERS_READ_MAX,
      description: 'The players, at most 64. Repeat the parameter for each.',
    }),
  }),
  response: object({
    players: Type.Array(
      object(
        { player_id: PlayerId, ...strength },
        'A player and the rating. One without an identity has that of a new player.',
      ),
      { description: 'The players, in the order of the query.' },
    ),
  }),
  errors: ['RATING_DISABLED', 'RATING_PLAYER_NOT_FOUND', 'PLAYER_TOKEN_INVALID'],
})

export const listRatings = operation({
  ...reading,
  id: 'ratings.list',
  path: '/ratings/list',
  summary: 'Lists the ratings of a game mode, the highest `ordinal` first, in pages: a leaderboard.',
  auth: ['identity', 'lobby', 'cloud', 'user', 'admin'],
  role: 'viewer',
  rate_limit: 'matchmaker',
  query: object({
    game_mode: GameModeName,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: RATING_PAGE_MAX,
        description: 'Maximum number of ratings in the response. Default 100, maximum 256.',
      }),
    ),
    anchor: Anchor,
    namespace_id: NamespaceName,
  }),
  response: object({
    ratings: Type.Array(RatedIdentity, {
      description: 'A page of ratings. One that changes meanwhile may move to another page.',
    }),
    anchor: NextAnchor,
  }),
  errors: ['NAMESPACE_NOT_FOUND'],
})

export const getIdentityRatings = operation({
  ...developers,
  ...reading,
  id: 'ratings.get',
  path: '/ratings/identities/{identity_id}',
  summary: 'Gets the ratings of an identity, one for each game mode.',
  role: 'viewer',
  params: object({ identity_id: IdentityId }),
  query: object({ namespace_id: NamedNamespaceId }),
  response: object({ ratings: Ratings }),
  errors: ['NAMESPACE_NOT_FOUND', 'IDENTITY_NOT_FOUND'],
})

export const exportRatings = operation({
  ...developers,
  ...reading,
  id: 'ratings.export',
  path: '/ratings/export',
  summary:
    'Returns all ratings of a namespace in pages, sorted by game mode and identity. A rating that changes meanwhile stays at its place, so none is missing and none is there twice.',
  role: 'viewer',
  query: object({
    namespace_id: NamedNamespaceId,
    game_mode: Type.Optional(described(GameModeName, 'Only ratings of this game mode. Default: all.')),
    anchor: Anchor,
  }),
  response: object({
    ratings: Type.Array(RatedIdentity, { description: 'A page of at most 256 ratings.' }),
    anchor: NextAnchor,
  }),
  errors: ['NAMESPACE_NOT_FOUND'],
})

export const resetRatings = operation({
  ...developers,
  id: 'ratings.reset',
  method: 'POST',
  path: '/ratings/reset',
  summary:
    'Removes ratings: of an identity, of a game mode, or of an identity in a game mode. The next match begins with the rating of a new player.',
  role: 'developer',
  repeatable: true,
  body: object({
    namespace_id: NamedNamespaceId,
    identity_id: Type.Optional(described(IdentityId, 'Only ratings of this identity. Required without `game_mode`.')),
    game_mode: Type.Optional(
      described(GameModeName, 'Only ratings of this game mode. Required without `identity_id`.'),
    ),
  }),
  response: object({
    removed_count: Type.Integer({ minimum: 0, description: 'Number of ratings that were removed.' }),
  }),
  errors: ['NAMESPACE_NOT_FOUND', 'VALIDATION_ERROR'],
})
