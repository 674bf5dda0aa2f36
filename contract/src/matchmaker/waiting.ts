// The requests of a namespace that wait now for a match by the rules of their game mode.
import Type, { type Static } from 'typebox'
import { GameId, NamespaceId, PlayerId } from '../ids.ts'
import { AttributeSchema } from '../matching-config.ts'
import { operation } from '../operation.ts'
import { object, Timestamp } from '../records.ts'
import { RefusedBy } from './match-wait.ts'

/** Requests in one response. */
export const WAITING_REQUESTS_MAX = 50

const Count = (description: string) => Type.Integer({ minimum: 0, description })
const GameModeName = Type.String({ description: 'Name of the game mode in the version config.' })

export const WaitingGameMode = object(
  {
    game_mode: GameModeName,
    requests: Count('Requests that wait. A party is one request.'),
    players: Count('Players of these requests.'),
    away_requests: Count(
      'Requests that keep their place although no call waits for them, such as after a hang-up: for at most 15 s, and without a match. `requests` does not count them.',
    ),
    oldest_wait_ms: Type.Optional(
      Count('How long the oldest request has waited, in milliseconds. Absent when no request waits.'),
    ),
    usual_wait_ms: Type.Optional(
      Count(
        'Half of the players of the game mode who got a match in the last hour waited at most so many milliseconds. Absent for fewer than 5.',
      ),
    ),
    players_min: Count('Players that a match needs after `start_after_s`.'),
    players_max: Count('Players that a match needs to begin at once.'),
  },
  'A game mode with rules for its matches.',
)
export type WaitingGameMode = Static<typeof WaitingGameMode>

export const WaitingRequest = object(
  {
    player_id: PlayerId,
    game_mode: GameModeName,
    create_ts: Timestamp('When the wait began. Later calls with the same Idempotency-Key continue it.'),
    waited_ms: Count('How long the request has waited, in milliseconds.'),
    player_count: Count('Players of the request: more than 1 for a party.'),
    players_waiting: Count('Players who wait in the same queue.'),
    players_missing: Count('Players who are missing for a match that begins at once.'),
    candidates: Count('Other requests that were checked, at most 128.'),
    refused_by: RefusedBy,
    values: Type.Array(
      object({
        rule: Type.String({ description: 'The rule. Example: `near skill`.' }),
        value: AttributeSchema,
      }),
      {
        description:
          'What the rules compare: one value for each rule with an attribute. A party has one value for all its members. A missing value matches any other, and is left out.',
      },
    ),
    regions: Type.Array(Type.String({ description: 'Name of the region.' }), {
      description: 'Regions in which the match may run, the best first.',
    }),
    latencies_ms: Type.Optional(
      Type.Record(Type.String(), Type.Number(), {
        description: 'Milliseconds to each region, measured or estimated. Only for rules with `ping`.',
      }),
    ),
    tags: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description: 'Tags of the request. Only requests with the same tags are matched. Absent without tags.',
      }),
    ),
  },
  'A request that waits for a match.',
)
export type WaitingRequest = Static<typeof WaitingRequest>

export const listWaitingRequests = operation({
  id: 'games.matchmaker.listMatchmakerWaitingRequests',
  service: 'matchmaker',
  method: 'GET',
  path: '/cloud/games/{game_id}/matchmaker/namespaces/{namespace_id}/waiting',
  summary:
    'Lists the requests that wait now for a match by rules: numbers by game mode, and of the oldest requests what they wait for.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'viewer',
  params: object({ game_id: GameId, namespace_id: NamespaceId }),
  query: object({
    game_mode: Type.Optional(
      Type.String({ minLength: 1, maxLength: 64, description: 'Only requests of this game mode. Default: all.' }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: WAITING_REQUESTS_MAX,
        description: 'Maximum number of requests in the response. Default 50, maximum 50. 0: only the numbers.',
      }),
    ),
  }),
  response: object({
    game_modes: Type.Array(WaitingGameMode, {
      description:
        'The game modes of the deployed version that have rules, sorted by name, and all others in which requests wait. `game_mode` does not limit them.',
    }),
    requests: Type.Array(WaitingRequest, { description: 'The requests that have waited longest, the oldest first.' }),
  }),
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND'],
})
