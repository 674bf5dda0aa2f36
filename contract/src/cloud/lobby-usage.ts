// What a lobby used over its life: processor, memory, traffic and players, for as long as its logs are kept.
import Type, { type Static } from 'typebox'
import { GameId, LobbyId } from '../ids.ts'
import { operation } from '../operation.ts'
import { object, Timestamp } from '../records.ts'

const Count = (description: string) => Type.Integer({ minimum: 0, description })

export const LobbyUsagePoint = object(
  {
    ts: Timestamp('When the step begins.'),
    cpu_cores: Type.Number({ description: 'Mean number of busy cores. Example: 0.25.' }),
    memory_bytes: Count('Highest memory use, in bytes.'),
    bytes_in: Type.Optional(
      Count('Bytes that clients sent to the lobby through the edge. Absent when they were not counted.'),
    ),
    bytes_out: Type.Optional(
      Count('Bytes that clients received from the lobby through the edge. Absent when they were not counted.'),
    ),
    player_count: Type.Optional(
      Count('Highest number of players, reserved and connected. Absent when they were not counted.'),
    ),
  },
  'What a lobby used in one step.',
)
export type LobbyUsagePoint = Static<typeof LobbyUsagePoint>

export const getLobbyUsage = operation({
  id: 'games.matchmaker.getLobbyUsage',
  service: 'api',
  method: 'GET',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/usage',
  summary:
    'Gets the processor time, memory, traffic and players of a running or stopped lobby over its life, in at most 240 steps.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'viewer',
  params: object({ game_id: GameId, lobby_id: LobbyId }),
  query: object({
    step_ms: Type.Optional(
      Type.Integer({
        minimum: 1_000,
        maximum: 86_400_000,
        description: 'Shortest length of a step in milliseconds. Default: as short as is kept. Example: 60,000.',
      }),
    ),
  }),
  response: object({
    lobby_id: LobbyId,
    start_ts: Timestamp('When the first step begins. Without any step, when the lobby was created.'),
    step_ms: Type.Integer({
      description: 'Length of a step in milliseconds: at least `step_ms` of the query. The last step may be shorter.',
    }),
    cpu_cores: Type.Number({ description: 'Cores that the lobby may use.' }),
    memory_bytes: Count('Memory that the lobby may use, in bytes.'),
    points: Type.Array(LobbyUsagePoint, {
      description: 'The steps, oldest first. Empty when nothing was measured, or is kept.',
    }),
  }),
  errors: ['GAME_NOT_FOUND', 'LOBBY_NOT_FOUND', 'LOBBY_LOGS_NOT_REACHABLE', 'API_NOT_AVAILABLE'],
})
