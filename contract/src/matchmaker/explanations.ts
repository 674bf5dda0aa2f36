// Explanations: why a request for a seat ended as it did. The matchmaker keeps them for all requests that failed, were slow
// or started a lobby, and for a sample of the others. They never contain who plays.
import Type, { type Static } from 'typebox'
import { operation } from '../operation.ts'
import { Id, Microseconds, object, Timestamp } from '../records.ts'

const Count = Type.Integer({ minimum: 0 })

/** The nearest to fit first: candidates are told in this order. */
export const VERDICTS = [
  'chosen',
  'not_best',
  'full',
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
  lobby_id: Id,
  game_mode: Type.String(),
  region: Type.String(),
  player_count: Count,
  max_players_normal: Count,
  max_players_direct: Count,
  verdict: Type.Enum([...VERDICTS], {
    description: 'Taken, or the first reason why not. not_best: it had room, and another was fuller or older.',
  }),
})

const Attempt = object(
  {
    offset: Microseconds('When it was decided, after the request came.'),
    outcome: Type.Enum(['seated', 'created', 'held', 'lost', 'remembered', 'refused'], {
      description:
        'held: the place was kept while the game verified. lost: it was gone by then. remembered: the seat that the Idempotency-Key got before.',
    }),
    code: Type.Optional(Type.String({ description: 'With refused.' })),
    lobby_id: Type.Optional(Id),
    failed_starts: Type.Optional(
      object(
        {
          count: Count,
          pause: Microseconds('How long no lobby was started from then on. 0: one could be.'),
          last_lobby_id: Id,
        },
        'Lobbies of this version, region and game mode that failed to start, one after the other, just before. From 3 on a request starts only one. From 4 on there are pauses.',
      ),
    ),
    places: Type.Array(object({ version_id: Id, region: Type.String(), game_mode: Type.String() }), {
      description: 'Where a find looked, at most 32.',
    }),
    candidates: Type.Array(Candidate, {
      description: 'The lobbies that were there, the nearest to fit first; at most 32.',
    }),
    candidates_left_out: Count,
    limits: object(
      {
        client_limit: Type.String({ description: 'Which limit of the namespace decided for this client.' }),
        client_players: Count,
        client_players_max: Count,
        lobbies: Count,
        lobby_count_max: Count,
      },
      'As they stood, before this request.',
    ),
  },
  'A decision, with what it was made of.',
)
export type Attempt = Static<typeof Attempt>

const Wait = object({
  lobby_id: Id,
  end: Type.Enum(['ready', 'gone', 'timeout']),
  duration: Microseconds('How long.'),
})
export type Wait = Static<typeof Wait>

const LobbyEnd = object(
  {
    lobby_id: Id,
    is_ready: Type.Boolean({ description: 'Whether it ever was.' }),
    stop_reason: Type.Optional(Type.String({ description: 'Why the matchmaker stopped it.' })),
    exit_code: Type.Optional(Type.Integer()),
    exit_reason: Type.Optional(
      Type.String({
        description:
          'How its server ended: exit, signal, oom, pids, never_ready, no_such_file, missing_library, build_damaged (the stored build is not what was uploaded: upload it again), …',
      }),
    ),
    listening: Type.Optional(
      object(
        {
          open: Type.Array(Type.String(), { description: 'Names of its ports at which it listens.' }),
          shut: Type.Array(Type.String(), { description: 'Names of its ports at which it does not listen.' }),
          others: Type.Optional(
            Type.Array(Type.String(), {
              description:
                'Other sockets at which it listens, such as `tcp 127.0.0.1:3000`. Absent where the system does not show them.',
            }),
          ),
        },
        'Where its server listens, as last seen before it was ready. Absent when it was ready, or ended, within seconds.',
      ),
    ),
    log_lines: Type.Array(Type.String(), { description: 'The last lines of a server that failed.' }),
    warnings: Type.Array(Type.String(), {
      description:
        'Seats that expired, and a lobby that was stopped, while connections to the lobby were open. Most often its server does not call `connected`.',
    }),
  },
  'What became of a lobby, as it is now.',
)

const Checked = Type.Enum(['none', 'passed', 'refused'], { description: 'none: the version asks for none.' })

const Verified = Type.Enum(['none', 'passed', 'refused', 'not_asked'], {
  description:
    "none: the version asks for none. not_asked: the game's endpoint keeps failing and is left alone for now.",
})

export const Explanation = object(
  {
    ray_id: Id,
    create_ts: Timestamp,
    operation: Type.String(),
    namespace_id: Id,
    duration: Microseconds('From the request to its answer.'),
    code: Type.Optional(Type.String({ description: 'The refusal; absent when a seat was given.' })),
    asked: Type.Record(Type.String(), Type.Unknown(), {
      description: 'What was wished: game modes, regions, tags. Nothing of what is secret.',
    }),
    captcha: Type.Optional(Checked),
    verification: Type.Optional(Verified),
    attempts: Type.Array(Attempt, { description: 'At most 8.' }),
    waits: Type.Array(Wait, { description: 'For lobbies to start.' }),
    lobbies: Type.Array(LobbyEnd, { description: 'Those that were chosen.' }),
  },
  'Why a request for a seat ended as it did.',
)
export type Explanation = Static<typeof Explanation>

export const explainRay = operation({
  id: 'logs.explainRay',
  service: 'matchmaker',
  method: 'GET',
  path: '/cloud/rays/{ray_id}/explain',
  summary: 'Tells why a find, join or create ended as it did. The ray id is in x-ray-id of every answer.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'developer',
  params: object({ ray_id: Id }),
  response: object({ explanation: Explanation }),
  errors: ['RAY_NOT_FOUND'],
})
