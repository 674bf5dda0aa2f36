// Explanations: why a request for a seat ended as it did. The matchmaker keeps them for all requests that failed, were slow
// or started a lobby, and for a sample of the others. They never contain who plays.
import Type, { type Static } from 'typebox'
import { ReportedProtocol } from '../cloud/logs.ts'
import { Id, LobbyId, NamespaceId, RayId, VersionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Microseconds, object, Timestamp } from '../records.ts'
import { RefusedBy, waitMembers } from './match-wait.ts'

const Count = (description: string) => Type.Integer({ minimum: 0, description })

/** Candidates are listed in this order: the closest to a match first. */
export const VERDICTS = [
  'chosen',
  'not_best',
  'full',
  'nothing_to_watch',
  'other_tags',
  'stalled',
  'closed',
  'not_public',
  'draining',
  'other_region',
  'other_game_mode',
  'other_version',
  'stopped',
] as const
export type Verdict = (typeof VERDICTS)[number]

const Candidate = object({
  lobby_id: LobbyId,
  game_mode: Type.String({ description: 'Name of its game mode.' }),
  region: Type.String({ description: 'Name of its region.' }),
  player_count: Count('Taken seats, reserved and connected.'),
  max_players_normal: Count('Maximum number of players when a player comes by find.'),
  max_players_direct: Count('Maximum number of players when a player comes by join.'),
  verdict: Type.Enum([...VERDICTS], {
    description:
      '`chosen`, or the first reason why the lobby was not chosen. `not_best`: it had room, but another one was fuller or older. `nothing_to_watch`: it has no players for a spectator to watch, or has not started yet.',
  }),
})

const Attempt = object(
  {
    offset: Microseconds('Time from the arrival of the request to the decision.'),
    outcome: Type.Enum(['seated', 'created', 'held', 'lost', 'remembered', 'waiting', 'refused'], {
      description:
        '`held`: the seat was held during verification. `lost`: it was gone after verification. `remembered`: the seat of an earlier call with the same Idempotency-Key. `waiting`: no match was complete.',
    }),
    code: Type.Optional(Type.String({ description: 'Error code. Present with `refused`.' })),
    lobby_id: Type.Optional(LobbyId),
    failed_starts: Type.Optional(
      object(
        {
          count: Count('Number of failed starts in a row.'),
          pause: Microseconds('How long no lobby is started from then on. 0: a lobby can be started.'),
          last_lobby_id: Id('Id of the lobby that failed last.'),
        },
        'Failed starts in a row of this version, region and game mode. From 3 on, a request starts only one lobby. From 4 on, starts pause.',
      ),
    ),
    places: Type.Array(
      object({
        version_id: VersionId,
        region: Type.String({ description: 'Name of the region.' }),
        game_mode: Type.String({ description: 'Name of the game mode.' }),
      }),
      { description: 'Where find searched, at most 32 entries.' },
    ),
    candidates: Type.Array(Candidate, {
      description: 'Lobbies that were considered, the closest to a match first; at most 32.',
    }),
    candidates_left_out: Count('Number of candidates beyond the first 32.'),
    limits: object(
      {
        client_limit: Type.String({
          description:
            'Name of the limit of the namespace that holds for this client. Example: `max_players_per_client_vpn`.',
        }),
        client_players: Count('Players of the client.'),
        client_players_max: Count('Maximum number of players of the client.'),
        lobbies: Count('Lobbies of the namespace.'),
        lobby_count_max: Count('Maximum number of lobbies of the namespace.'),
      },
      'Limits and counts before this request.',
    ),
  },
  'A decision about the request, and the facts it is based on.',
)
export type Attempt = Static<typeof Attempt>

const Wait = object({
  lobby_id: LobbyId,
  end: Type.Enum(['ready', 'gone', 'timeout'], {
    description:
      '`ready`: the server became ready. `gone`: the lobby stopped. `timeout`: the server was not ready in time.',
  }),
  duration: Microseconds('Length of the wait.'),
})
export type Wait = Static<typeof Wait>

const MatchWait = object(
  {
    ...waitMembers,
    candidates: Count('Other requests that were checked, at most 128.'),
    refused_by: RefusedBy,
  },
  'The last check of the queue before the request ended without a match.',
)
export type MatchWait = Static<typeof MatchWait>

const LobbyEnd = object(
  {
    lobby_id: LobbyId,
    is_ready: Type.Boolean({ description: 'Whether the lobby ever became ready.' }),
    stop_reason: Type.Optional(
      Type.String({ description: 'Why the matchmaker stopped the lobby. Absent when it runs.' }),
    ),
    exit_code: Type.Optional(
      Type.Integer({ description: 'Exit code of the server; 128 plus the signal number when a signal ended it.' }),
    ),
    exit_reason: Type.Optional(
      Type.String({
        description:
          'How the server ended, such as `exit`, `signal`, `oom`, `pids`, `disk`, `never_ready`, `no_such_file`, `missing_library` or `build_damaged` (upload the build again).',
      }),
    ),
    listening: Type.Optional(
      object(
        {
          open: Type.Array(Type.String(), { description: 'Names of the ports at which the server listens.' }),
          shut: Type.Array(Type.String(), { description: 'Names of the ports at which the server does not listen.' }),
          others: Type.Optional(
            Type.Array(Type.String(), {
              description:
                'Other sockets at which the server listens, such as `tcp 127.0.0.1:3000`. Absent when the system does not report them.',
            }),
          ),
          remedy: Type.Optional(
            Type.String({
              description:
                'What to change so that the server listens where the version says. Absent when it is not known.',
            }),
          ),
        },
        'Where the server listened at the last check before it was ready. Absent when it was ready, or ended, within seconds.',
      ),
    ),
    protocol: Type.Optional(ReportedProtocol),
    log_lines: Type.Array(Type.String(), { description: 'Last lines of the log, when the server failed.' }),
    warnings: Type.Array(Type.String(), {
      description:
        'Seats that expired, or a stop of the lobby, while connections to it were open. The usual cause: the server does not call `connected`.',
    }),
  },
  'The current state of a lobby.',
)

const Checked = Type.Enum(['none', 'passed', 'refused'], {
  description: 'Result of the captcha. `none`: the version requires none.',
})

const Verified = Type.Enum(['none', 'passed', 'refused', 'not_asked'], {
  description:
    "Result of external verification. `none`: the game mode requires none. `not_asked`: the game's endpoint keeps failing, so it is not called for now.",
})

export const Explanation = object(
  {
    ray_id: RayId,
    create_ts: Timestamp('When the request arrived.'),
    operation: Type.String({ description: 'Operation of the request. Example: `lobbies.find`.' }),
    namespace_id: NamespaceId,
    duration: Microseconds('Time from the request to its response.'),
    code: Type.Optional(
      Type.String({ description: 'Error code of the response. Absent when the request got a seat.' }),
    ),
    asked: Type.Record(Type.String(), Type.Unknown(), {
      description: 'What the request asked for: game modes, regions, tags. It contains no secrets.',
    }),
    captcha: Type.Optional(Checked),
    verification: Type.Optional(Verified),
    attempts: Type.Array(Attempt, { description: 'Decisions about the request, in order; at most 8.' }),
    waits: Type.Array(Wait, { description: 'How long the request waited for lobbies to start.' }),
    match_wait: Type.Optional(MatchWait),
    unnamed_proxy: Type.Optional(
      Type.String({
        description:
          'Address of a proxy in front of an edge that no setting names, when a limit of the client refused the request: all players behind it count as one client.',
      }),
    ),
    lobbies: Type.Array(LobbyEnd, { description: 'The lobbies that were chosen.' }),
  },
  'Why a request for a seat ended as it did.',
)
export type Explanation = Static<typeof Explanation>

export const explainRay = operation({
  id: 'logs.explainRay',
  service: 'matchmaker',
  method: 'GET',
  path: '/cloud/rays/{ray_id}/explain',
  summary:
    'Explains why a find, join or create ended as it did. Every response has its ray id in the header `x-ray-id`.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'developer',
  params: object({ ray_id: RayId }),
  response: object({ explanation: Explanation }),
  errors: ['RAY_NOT_FOUND'],
})
