// Requests for seats in a namespace as they end, over a WebSocket.
import Type, { type Static } from 'typebox'
import { GameId, LobbyId, NamespaceId, RayId, RegionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, Microseconds, object, Timestamp } from '../records.ts'

/** Requests of one response and of one message. */
export const FINDS_MAX = 100

export const FIND_OUTCOMES = ['seated', 'captcha', 'refused'] as const

export const LiveFind = object(
  {
    ray_id: RayId,
    create_ts: Timestamp('When the request arrived.'),
    duration: Microseconds('Time from the arrival of the request to its response.'),
    operation: Type.String({ description: 'Operation of the request. Example: `lobbies.find`.' }),
    outcome: Type.Enum([...FIND_OUTCOMES], {
      description:
        '`seated`: the player got a seat. `captcha`: the request needs a captcha response, or its response was refused. `refused`: any other error.',
    }),
    code: Type.Optional(Type.String({ description: 'Error code. Absent with `seated`.' })),
    lobby_id: Type.Optional(described(LobbyId, 'Lobby of the seat. Present with `seated`, if it is known.')),
    game_mode: Type.Optional(
      Type.String({ description: 'Game mode of the seat, or the first one that was requested. Absent when unknown.' }),
    ),
    region_id: Type.Optional(
      described(RegionId, 'Region of the seat, or the first one that was searched. Absent when unknown.'),
    ),
  },
  'A request for a seat that has ended.',
)
export type LiveFind = Static<typeof LiveFind>

/**
 * Messages of a WebSocket at the same address. A snapshot has the newest requests; `finds` has those that ended since the
 * message before. `left_out_count`: how many of them are missing, because the client or the list was too slow.
 */
export type FindsMessage =
  | { kind: 'snapshot'; index: string; finds: LiveFind[] }
  | { kind: 'finds'; index: string; finds: LiveFind[]; left_out_count: number }
  | { kind: 'heartbeat'; index: string }

export const getAnalyticsMatchmakerFinds = operation({
  id: 'games.namespaces.analytics.getAnalyticsMatchmakerFinds',
  service: 'api',
  method: 'GET',
  path: '/cloud/games/{game_id}/namespaces/{namespace_id}/analytics/matchmaker/finds',
  summary:
    'Lists the newest requests for seats that were kept: all refusals up to 20 per second, and a sample of the seats. A WebSocket at the same address sends further ones as they end. It takes the token as `token` in the query.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'developer',
  params: object({ game_id: GameId, namespace_id: NamespaceId }),
  query: object({
    watch_index: Type.Optional(
      Type.String({
        maxLength: 20,
        description: 'WebSocket only: `index` of the last message that was received. The requests since then follow.',
      }),
    ),
  }),
  response: object({
    finds: Type.Array(LiveFind, { description: 'The requests in the order in which they ended, at most 100.' }),
    watch: object(
      { index: Type.String({ description: 'State of this response: `watch_index` for a WebSocket.' }) },
      'Position from which a WebSocket continues.',
    ),
  }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})
