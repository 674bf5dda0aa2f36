// The running lobbies of a namespace now, and their changes over a WebSocket.
import Type, { type Static } from 'typebox'
import { GameId, Id, LobbyId, NamespaceId, RegionId, VersionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { object, Timestamp } from '../records.ts'

const Count = (description: string) => Type.Integer({ minimum: 0, description })

export const LobbySummaryAnalytics = object(
  {
    lobby_id: LobbyId,
    lobby_group_id: Id('Id of the game mode.'),
    lobby_group_name_id: Type.String({ description: 'Name of the game mode in the version config.' }),
    version_id: VersionId,
    region_id: RegionId,
    create_ts: Timestamp('When the lobby was created.'),
    is_ready: Type.Boolean({ description: 'Whether the server has called ready.' }),
    is_idle: Type.Boolean({ description: 'Whether the lobby has no players: no seat is reserved or connected.' }),
    is_closed: Type.Boolean({ description: 'Whether find leaves the lobby out.' }),
    is_stalled: Type.Boolean({
      description: 'Whether the server has stopped responding. A stalled lobby takes no new players.',
    }),
    is_outdated: Type.Boolean({ description: 'Whether its version is neither deployed nor rolled out now.' }),
    max_players_normal: Count('Maximum number of players when a player comes by find.'),
    max_players_direct: Count('Maximum number of players when a player comes by join.'),
    max_players_party: Count('Maximum number of players when a party comes.'),
    total_player_count: Count('Taken seats, reserved and connected.'),
    registered_player_count: Count('Connected players.'),
    limits: object(
      {
        cpu_cores: Type.Number({ exclusiveMinimum: 0, description: 'Cores that it may keep busy.' }),
        memory_bytes: Count('Memory that it may use, in bytes.'),
      },
      'What the tier gave the lobby when it was created.',
    ),
    usage: Type.Optional(
      object(
        {
          cpu_cores: Type.Number({
            minimum: 0,
            description: 'Cores that were busy on average since the sample before.',
          }),
          memory_bytes: Count('Memory in use at the sample, in bytes, without cached files.'),
        },
        'The newest sample of its processes: every five seconds at first, at least once a minute later. Absent before the first one.',
      ),
    ),
  },
  'A lobby that runs or starts.',
)
export type LobbySummaryAnalytics = Static<typeof LobbySummaryAnalytics>

/**
 * Messages of a WebSocket at the same address, in the order of the journal. A snapshot has all lobbies at its index; changes
 * have the lobbies that changed since the message before.
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
    'Lists the running lobbies of a namespace. A WebSocket at the same address sends changes: see docs/logs.md. It takes the token as `token` in the query.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'viewer',
  params: object({ game_id: GameId, namespace_id: NamespaceId }),
  query: object({
    watch_index: Type.Optional(
      Type.String({
        maxLength: 64,
        description: 'WebSocket only: `index` of the last message that was received. The changes since then follow.',
      }),
    ),
  }),
  response: object({
    lobbies: Type.Array(LobbySummaryAnalytics, { description: 'The lobbies, oldest first.' }),
    watch: object(
      { index: Type.String({ description: 'State of this response: `watch_index` for a WebSocket.' }) },
      'Position from which a WebSocket continues.',
    ),
  }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})
