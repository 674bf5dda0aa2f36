// Analytics: what happened in namespaces, as columns of numbers over time. Parallel arrays: the n-th entries of all arrays
// of a data set belong together. docs/analytics.md says what each number means.
import Type, { type Static } from 'typebox'
import { operation } from '../operation.ts'
import { Id, IsCut, object } from '../records.ts'

/** Games, and namespaces, of one call. */
export const ANALYTICS_IDS_MAX = 256

const Ts = Type.Array(Type.Integer(), { description: 'Where the bucket begins, in milliseconds since the epoch.' })
const counts = (description: string) => Type.Array(Type.Integer({ minimum: 0 }), { description })
const numbers = (description: string) => Type.Array(Type.Number({ minimum: 0 }), { description })
const Lobbies = counts('Lobbies that are there at the end of the bucket.')
const Players = counts('Players who have a seat at the end of the bucket.')
const Destroyed = counts('Lobbies that were stopped in the bucket.')
const Played = numbers('Mean of how long players who left were connected, in milliseconds.')
const region = { region_id: Type.Array(Id), region_name_id: Type.Array(Type.String()) }
const game_mode = { game_mode_id: Type.Array(Id), game_mode_name_id: Type.Array(Type.String()) }

const DATA_SETS = {
  matchmaker_overview: object(
    { lobby_count: Type.Integer({ minimum: 0 }), player_count: Type.Integer({ minimum: 0 }) },
    'What is there now, whatever the window.',
  ),
  player_count: object({
    player_count: Players,
    player_unready_count: counts('Of these, those who are not connected.'),
    ts: Ts,
  }),
  player_count_by_region: object({ player_count: Players, ...region, ts: Ts }),
  player_count_by_game_mode: object({ player_count: Players, ...game_mode, ts: Ts }),
  lobby_count: object({
    lobby_closed_count: counts('Of the lobbies, those that are closed.'),
    lobby_count: Lobbies,
    lobby_preemptive_count: counts('Of the unready ones, those that the platform opened by itself.'),
    lobby_unready_count: counts('Of the lobbies, those that have not called ready.'),
    ts: Ts,
  }),
  lobby_count_by_region: object({ lobby_count: Lobbies, ...region, ts: Ts }),
  lobby_count_by_game_mode: object({ lobby_count: Lobbies, ...game_mode, ts: Ts }),
  avg_play_duration: object({ duration: Played, ts: Ts }),
  avg_play_duration_by_region: object({ duration: Played, ...region }),
  avg_play_duration_by_game_mode: object({ duration: Played, ...game_mode }),
  new_players_per_second: object({ new_player_count: numbers('Seats that were given, a second.'), ts: Ts }),
  new_lobbies_per_second: object({ new_lobby_count: numbers('Lobbies that were created, a second.'), ts: Ts }),
  destroyed_lobbies_by_failure: object({
    destroyed_lobby_count: Destroyed,
    failed: Type.Array(Type.Boolean()),
    ts: Ts,
  }),
  destroyed_lobbies_by_exit_code: object({
    destroyed_lobby_count: Destroyed,
    exit_code: Type.Array(Type.Integer()),
    ts: Ts,
  }),
  failed_lobbies: object({ destroyed_lobby_count: Destroyed, ts: Ts }),
  lobby_ready_time: object({
    ready_duration: counts('Mean from creation to ready of the lobbies that became ready, in milliseconds.'),
    ts: Ts,
  }),
}

export const ANALYTICS_VARIANTS = Object.keys(DATA_SETS) as AnalyticsVariant[]
export type AnalyticsVariant = keyof typeof DATA_SETS

export const AnalyticsDataSet = Type.Partial(object(DATA_SETS), {
  additionalProperties: false,
  description: 'Exactly one member, of the name of the variant.',
})
export type AnalyticsDataSet = Static<typeof AnalyticsDataSet>

const Instant = (description: string) => Type.String({ format: 'date-time', description })
const ids = (description: string) => Type.Array(Id, { minItems: 1, maxItems: ANALYTICS_IDS_MAX, description })

export const getAnalytics = operation({
  id: 'games.namespaces.analytics.getAnalytics',
  service: 'api',
  method: 'GET',
  path: '/cloud/games/namespaces/analytics',
  summary: 'Numbers of what happened in namespaces, over a window of time. Lists are repeated members of the query.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'viewer',
  query: object({
    query_start: Instant('Where the window begins, RFC 3339.'),
    query_end: Instant('Where it ends.'),
    game_ids: ids('Games of the namespaces. Each must have at least one namespace in `namespace_ids`.'),
    namespace_ids: ids('Namespaces whose numbers are added up. Each must belong to a game in `game_ids`.'),
    variants: Type.Array(Type.Enum(ANALYTICS_VARIANTS), {
      minItems: 1,
      maxItems: ANALYTICS_VARIANTS.length,
      uniqueItems: true,
      description: 'Which data sets are told.',
    }),
  }),
  response: object({
    data_sets: Type.Array(AnalyticsDataSet, { description: 'One for each variant, in their order.' }),
    is_cut: IsCut('Data sets by region, game mode or exit code have the 100 largest lines.'),
  }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})
