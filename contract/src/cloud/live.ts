// The lobbies of a namespace that run, as they are now, and what changes about them for who stays.
import Type, { type Static } from 'typebox'
import { operation } from '../operation.ts'
import { Id, object, Timestamp } from '../records.ts'

const Count = (description: string) => Type.Integer({ minimum: 0, description })

export const LobbySummaryAnalytics = object(
  {
    lobby_id: Id,
    lobby_group_id: Id,
    lobby_group_name_id: Type.String({ description: 'Its game mode.' }),
    region_id: Id,
    create_ts: Timestamp,
    is_ready: Type.Boolean({ description: 'Whether its server has called ready.' }),
    is_idle: Type.Boolean({ description: 'Whether nobody has a seat in it.' }),
    is_closed: Type.Boolean(),
    is_stalled: Type.Boolean({
      description: 'Whether its server does not answer: nobody gets a seat in it meanwhile.',
    }),
    is_outdated: Type.Boolean({ description: 'Whether another version is deployed by now.' }),
    max_players_normal: Count('For find.'),
    max_players_direct: Count('For join.'),
    max_players_party: Count('For parties.'),
    total_player_count: Count('Seats that are taken, reserved ones too.'),
    registered_player_count: Count('Players who have connected.'),
  },
  'A lobby that runs, or is being started.',
)
export type LobbySummaryAnalytics = Static<typeof LobbySummaryAnalytics>

/**
 * What a WebSocket at the same address is told, in the order of the journal. Each message takes who has taken those before
 * it to how it was at its index: a snapshot stands for all, changes are lobbies as they are now.
 */
export type LiveMessage =
  | { kind: 'snapshot'; index: string; lobbies: LobbySummaryAnalytics[] }
  | { kind: 'changes'; index: string; lobbies: LobbySummaryAnalytics[]; stopped_lobby_ids: string[] }
  | { kind: 'heartbeat'; index: string }

export const getAnalyticsMatchmakerLive = operation({
  id: 'games.namespaces.analytics.getAnalyticsMatchmakerLive',
  service: 'api',
  method: 'GET',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/analytics/matchmaker/live',
  summary:
    'The lobbies of a namespace that run, as of now. The same address takes a WebSocket, with the token in the query; docs/logs.md has its messages.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'viewer',
  params: object({ game_id: Id, namespace_id: Id }),
  query: object({
    watch_index: Type.Optional(
      Type.String({ maxLength: 64, description: 'For a WebSocket: the `index` of the last message.' }),
    ),
  }),
  response: object({
    lobbies: Type.Array(LobbySummaryAnalytics, { description: 'The oldest first.' }),
    watch: object({ index: Type.String() }),
  }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})
