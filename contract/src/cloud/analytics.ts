// Analytics: numbers about namespaces over time. A data set is a table in columns: the n-th entries of all its arrays belong
// together. docs/analytics.md explains each number.
import Type, { type Static } from 'typebox'
import { Id } from '../ids.ts'
import { operation } from '../operation.ts'
import { IsCut, object } from '../records.ts'

/** Games in one call, and namespaces in one call. */
export const ANALYTICS_IDS_MAX = 256

const Ts = Type.Array(Type.Integer(), { description: 'Start of each bucket, in milliseconds since the epoch.' })
const counts = (description: string) => Type.Array(Type.Integer({ minimum: 0 }), { description })
const numbers = (description: string) => Type.Array(Type.Number({ minimum: 0 }), { description })
const Lobbies = counts('Lobbies that exist at the end of the bucket: created and not yet stopped.')
const Players = counts('Players with a seat at the end of the bucket, reserved or connected.')
const Destroyed = counts('Lobbies that were stopped in the bucket.')
const Played = numbers('Mean time that players who left were connected, in milliseconds.')
const region = {
  region_id: Type.Array(Id('Id of a region.'), { description: 'Ids of the regions.' }),
  region_name_id: Type.Array(Type.String(), { description: 'Names of the regions. Example: `frankfurt`.' }),
}
const game_mode = {
  game_mode_id: Type.Array(Id('Id of a game mode.'), {
    description: 'Ids of the game modes, each derived from its game and its name.',
  }),
  game_mode_name_id: Type.Array(Type.String(), { description: 'Names of the game modes in the version config.' }),
}

const percentiles = (share: string) =>
  numbers(`Milliseconds within which ${share} of these finds got their seat, with an error of at most a fifth.`)

export const FindDurations = object(
  {
    find_count: counts('Finds that got a seat in the bucket.'),
    duration_p50: percentiles('half'),
    duration_p95: percentiles('95 %'),
    duration_p99: percentiles('99 %'),
    ts: Ts,
  },
  'Duration of `lobbies.find` in the matchmaker over time, with the start of a lobby where one was started. Buckets without a find are left out. The least width is a minute.',
)

const waits = (share: string) =>
  numbers(`Milliseconds that ${share} of these requests waited at most, with an error of at most a fifth.`)

const MatchWaits = object(
  {
    request_count: counts('Requests that got a match in the bucket. A party is one request.'),
    wait_p50: waits('half'),
    wait_p95: waits('95 %'),
    wait_p99: waits('99 %'),
    ts: Ts,
  },
  'Wait for a match by the rules of a game mode over time, without the start of the lobby. Buckets without a match are left out. The least width is a minute.',
)

const DATA_SETS = {
  matchmaker_overview: object(
    {
      lobby_count: Type.Integer({ minimum: 0, description: 'Lobbies that exist now.' }),
      player_count: Type.Integer({ minimum: 0, description: 'Players who have a seat now.' }),
    },
    'Current numbers. The window of the query does not matter.',
  ),
  player_count: object(
    {
      player_count: Players,
      player_unready_count: counts('The part of `player_count` that is not connected.'),
      ts: Ts,
    },
    'Players over time.',
  ),
  player_count_by_region: object({ player_count: Players, ...region, ts: Ts }, 'Players over time, by region.'),
  player_count_by_game_mode: object(
    { player_count: Players, ...game_mode, ts: Ts },
    'Players over time, by game mode.',
  ),
  lobby_count: object(
    {
      lobby_closed_count: counts('The part of `lobby_count` that is closed.'),
      lobby_count: Lobbies,
      lobby_preemptive_count: counts(
        'The part of `lobby_unready_count` that the platform started: for a find, or as idle lobbies.',
      ),
      lobby_unready_count: counts('The part of `lobby_count` whose servers have not called ready.'),
      ts: Ts,
    },
    'Lobbies over time.',
  ),
  lobby_count_by_region: object({ lobby_count: Lobbies, ...region, ts: Ts }, 'Lobbies over time, by region.'),
  lobby_count_by_game_mode: object({ lobby_count: Lobbies, ...game_mode, ts: Ts }, 'Lobbies over time, by game mode.'),
  avg_play_duration: object({ duration: Played, ts: Ts }, 'Play time over time.'),
  avg_play_duration_by_region: object({ duration: Played, ...region }, 'Play time in the whole window, by region.'),
  avg_play_duration_by_game_mode: object(
    { duration: Played, ...game_mode },
    'Play time in the whole window, by game mode.',
  ),
  new_players_per_second: object(
    { new_player_count: numbers('Seats reserved in the bucket, per second.'), ts: Ts },
    'New players over time.',
  ),
  new_lobbies_per_second: object(
    { new_lobby_count: numbers('Lobbies created in the bucket, per second.'), ts: Ts },
    'New lobbies over time.',
  ),
  destroyed_lobbies_by_failure: object(
    {
      destroyed_lobby_count: Destroyed,
      failed: Type.Array(Type.Boolean(), {
        description: 'Whether these lobbies failed: never became ready, or ended on their own with an error.',
      }),
      ts: Ts,
    },
    'Stopped lobbies over time, split into failed ones and others.',
  ),
  destroyed_lobbies_by_exit_code: object(
    {
      destroyed_lobby_count: Destroyed,
      exit_code: Type.Array(Type.Integer(), {
        description: 'Exit code of the server; 128 plus the signal number when a signal ended it.',
      }),
      ts: Ts,
    },
    'Stopped lobbies over time, by exit code.',
  ),
  failed_lobbies: object({ destroyed_lobby_count: Destroyed, ts: Ts }, 'Failed lobbies over time.'),
  lobby_ready_time: object(
    {
      ready_duration: counts('Mean time from creation to ready, in milliseconds, of lobbies that became ready.'),
      ts: Ts,
    },
    'Start time of lobbies over time.',
  ),
  find_duration: FindDurations,
  match_wait: MatchWaits,
}

export const ANALYTICS_VARIANTS = Object.keys(DATA_SETS) as AnalyticsVariant[]
export type AnalyticsVariant = keyof typeof DATA_SETS

export const AnalyticsDataSet = Type.Partial(object(DATA_SETS), {
  additionalProperties: false,
  description: 'One data set: an object with exactly one member, named like the variant.',
})
export type AnalyticsDataSet = Static<typeof AnalyticsDataSet>

const Instant = (description: string) => Type.String({ format: 'date-time', description })
const ids = (description: string) => Type.Array(Id('Id.'), { minItems: 1, maxItems: ANALYTICS_IDS_MAX, description })

export const getAnalytics = operation({
  id: 'games.namespaces.analytics.getAnalytics',
  service: 'api',
  method: 'GET',
  path: '/cloud/games/namespaces/analytics',
  summary: 'Gets numbers about namespaces over a time window. Repeat a query parameter to send a list.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'viewer',
  query: object({
    query_start: Instant('Start of the window, RFC 3339. Example: `2026-11-21T00:00:00Z`.'),
    query_end: Instant('End of the window, RFC 3339. Later than `query_start`.'),
    game_ids: ids('Games of the namespaces, 1 to 256. Each needs at least one namespace in `namespace_ids`.'),
    namespace_ids: ids('Namespaces whose numbers are added up, 1 to 256. Each belongs to a game in `game_ids`.'),
    variants: Type.Array(Type.Enum(ANALYTICS_VARIANTS), {
      minItems: 1,
      maxItems: ANALYTICS_VARIANTS.length,
      uniqueItems: true,
      description: 'Data sets to return. Example: `player_count`.',
    }),
  }),
  response: object({
    data_sets: Type.Array(AnalyticsDataSet, {
      description: 'One data set for each variant, in the order of `variants`.',
    }),
    is_cut: IsCut('Data sets by region, game mode or exit code contain the 100 largest lines.'),
  }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})
