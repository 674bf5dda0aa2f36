// Why a request for a seat ended as it did. Refusals and errors are kept for a while, and some of the requests that got a
// seat; who plays is never told.
import Type, { type Static } from 'typebox'
import { operation } from '../operation.ts'
import { Id, object, Timestamp } from '../records.ts'

const Count = Type.Integer({ minimum: 0 })
const Microseconds = (description: string) => Type.Integer({ minimum: 0, description: `${description} Microseconds.` })

export const VERDICTS = [
  'chosen',
  'not_best',
  'full',
  'other_tags',
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
        description: 'How its server ended: exit, signal, oom, pids, never_ready, no_such_file, missing_library, …',
      }),
    ),
    log_lines: Type.Array(Type.String(), { description: 'The last lines of a server that failed.' }),
  },
  'What became of a lobby, as it is now.',
)

const Checked = Type.Enum(['none', 'passed', 'refused'], { description: 'none: the version asks for none.' })

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
    verification: Type.Optional(Checked),
    attempts: Type.Array(Attempt, { description: 'At most 8.' }),
    waits: Type.Array(Wait, { description: 'For lobbies to start.' }),
    lobbies: Type.Array(LobbyEnd, { description: 'Those that were chosen.' }),
  },
  'Why a request for a seat ended as it did.',
)
export type Explanation = Static<typeof Explanation>

export const explainRay = operation({
  id: 'logs.explainRay',
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
