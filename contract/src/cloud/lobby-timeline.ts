// What happened to a lobby, in the order of time: from the request that started it to the exit code of its server.
import Type, { type Static } from 'typebox'
import { GameId, LobbyId, PlayerId, RayId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, object, Timestamp } from '../records.ts'

export const LOBBY_EVENT_KINDS = [
  'requested',
  'created',
  'process_started',
  'listening',
  'ready',
  'player_reserved',
  'player_connected',
  'player_left',
  'closed',
  'reopened',
  'stalled',
  'responding',
  'stopped',
  'exited',
] as const
export type LobbyEventKind = (typeof LOBBY_EVENT_KINDS)[number]

export const LobbyTimelineEvent = object(
  {
    ts: Timestamp('When it happened.'),
    kind: Type.Enum([...LOBBY_EVENT_KINDS], {
      description: [
        '`requested`: the request that started the lobby arrived.',
        '`process_started`: the process of its server began.',
        '`listening`: the server listened at its first port.',
        '`ready`: the server called ready.',
        '`player_reserved`, `player_connected`, `player_left`: a seat was taken, used and freed.',
        '`closed` and `reopened`: find began to leave the lobby out, or to use it again.',
        '`stalled` and `responding`: the server stopped responding, or responded again.',
        '`stopped`: the platform ended the lobby. `exited`: the process of its server ended.',
      ].join(' '),
    }),
    player_id: Type.Optional(described(PlayerId, 'Player whose seat it was. Only with the kinds of players.')),
    reason: Type.Optional(
      Type.String({
        description: [
          'With `player_left`: `disconnected`, `expired`, `too_long`, `lobby_stopped`, `unanswered` or `requested`.',
          'With `stopped`: `never_ready`, `idle`, `outdated`, `exited`, `requested`, `node_lost`, `node_drained` or `node_removed`.',
          'With `exited`: how the process ended, for example `exit`, `signal`, `stopped` or `oom` (out of memory).',
        ].join(' '),
      }),
    ),
    exit_code: Type.Optional(
      Type.Integer({
        description:
          'Exit code of the server, with `exited`; 128 plus the signal number when a signal ended it. 127: the program does not exist. -1: unknown.',
      }),
    ),
    ray_id: Type.Optional(
      described(RayId, 'Ray of the request: with `requested`, and with `player_reserved` while the ray is kept.'),
    ),
    operation: Type.Optional(
      Type.String({
        description:
          'Operation that started the lobby, with `requested`, or that took the seat, with `player_reserved` while its ray is kept. Example: `lobbies.find`.',
      }),
    ),
  },
  'Something that happened to a lobby.',
)
export type LobbyTimelineEvent = Static<typeof LobbyTimelineEvent>

/** Events of one page. */
export const TIMELINE_PAGE_MAX = 500

export const getLobbyTimeline = operation({
  id: 'games.matchmaker.getLobbyTimeline',
  service: 'api',
  method: 'GET',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/timeline',
  summary:
    'Lists what happened to a running or ended lobby, oldest first. Some events are kept only for a while: `requested` and `listening` as long as the ray, those of players as long as the players, and `closed`, `reopened`, `stalled` and `responding` as long as the journal.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'viewer',
  params: object({ game_id: GameId, lobby_id: LobbyId }),
  query: object({
    cursor: Type.Optional(
      Type.String({
        maxLength: 128,
        description: '`next_cursor` of the previous page. Without it, the page begins with the oldest event.',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: TIMELINE_PAGE_MAX,
        description: 'Events of the page, at most 500. Default 200.',
      }),
    ),
  }),
  response: object({
    events: Type.Array(LobbyTimelineEvent, { description: 'The events, oldest first.' }),
    next_cursor: Type.Optional(
      Type.String({
        description:
          'Position after this page. Absent when the list is complete. A page searches a limited part of the journal, so it may have fewer than `limit`, or none, and still a next page.',
      }),
    ),
  }),
  errors: ['GAME_NOT_FOUND', 'LOBBY_NOT_FOUND'],
})
