// What the server of a lobby asks and does about its own lobby, beside ready, closed and state (lobbies.ts).
import Type from 'typebox'
import { Id, LobbyId } from '../ids.ts'
import { Attributes } from '../matching-config.ts'
import { operation } from '../operation.ts'
import { described, Empty, object, Timestamp, Watch } from '../records.ts'
import { Tags } from './lobbies.ts'
import { SpectatorRole } from './roles.ts'

/** Players in one report. More than a lobby can have. */
const PLAYER_IDS_MAX = 4_096

/** Longest time for which a server keeps its lobby. */
const KEEP_MS_MAX = 24 * 3_600_000

export const KeepMs = Type.Integer({ minimum: 0, maximum: KEEP_MS_MAX })

const OwnSeat = object(
  {
    player_id: Id('Id of the player.'),
    is_connected: Type.Boolean({ description: 'Whether the player has connected. Otherwise the seat is reserved.' }),
    create_ts: Timestamp('When the seat was taken.'),
    role: SpectatorRole,
    team: Type.Optional(Type.String({ description: 'Team of the player. Absent where the game mode has no teams.' })),
    attributes: Type.Optional(
      described(Attributes, 'Attributes with which the player was matched. Absent where the game mode has no rules.'),
    ),
  },
  'A seat of the lobby.',
)

export const watchOwnLobby = operation({
  id: 'lobbies.watchOwn',
  service: 'matchmaker',
  method: 'GET',
  path: '/matchmaker/lobbies/own',
  summary:
    'Gets the lobby of the calling server, with its seats. With a watch index, the call waits until something of it changes.',
  auth: ['lobby'],
  rate_limit: 'matchmaker',
  query: object({
    watch_index: Type.Optional(
      Type.String({
        maxLength: 64,
        description:
          'Long poll: `watch.index` of the previous response. The call waits up to 40 s for a change. Without it, the call returns at once.',
      }),
    ),
  }),
  response: object({
    lobby_id: LobbyId,
    is_closed: Type.Boolean({ description: 'Whether find leaves the lobby out.' }),
    is_draining: Type.Boolean({
      description:
        'True when the version, the namespace or the node of the lobby drains, or the lobby restarts as planned: no new players come, and the server should lead its game to an end.',
    }),
    announcement: Type.Optional(
      object(
        {
          text: Type.String({
            description: 'Text for the players. Example: `The server restarts in 15 minutes`.',
          }),
          ts: Timestamp('When it was made. A server shows an announcement once.'),
        },
        'Last announcement of a schedule for the lobby, for some minutes. Absent: there is none.',
      ),
    ),
    seats: Type.Array(OwnSeat, {
      description: 'Seats of players, then of spectators, each in the order of their ids.',
    }),
    watch: Watch,
  }),
  errors: ['MATCHMAKER_LOBBY_STOPPED'],
})

export const setLobbyPlayers = operation({
  id: 'lobbies.setPlayers',
  service: 'matchmaker',
  method: 'PUT',
  path: '/matchmaker/lobbies/players',
  summary:
    'Reports all players who are in the game now, by player id or player token. For servers that keep a list of players.',
  auth: ['lobby'],
  rate_limit: 'matchmaker',
  repeatable: true,
  body: object({
    player_ids: Type.Array(Type.String({ minLength: 1, maxLength: 2048 }), {
      maxItems: PLAYER_IDS_MAX,
      description:
        'All players in the game, each by its id or by the player token that it sent. A player with a reserved seat is connected by it. A connected player who is missing gives the seat back. Reserved seats that are missing stay.',
    }),
  }),
  response: object({
    unknown_player_ids: Type.Array(Type.String(), {
      description: 'Members of the list that have no seat in the lobby, or whose seat has expired.',
    }),
  }),
  errors: ['MATCHMAKER_LOBBY_STOPPED', 'MATCHMAKER_LOBBY_NOT_STARTED'],
})

export const changeOwnLobby = operation({
  id: 'lobbies.changeOwn',
  service: 'matchmaker',
  method: 'PUT',
  path: '/matchmaker/lobbies/own',
  summary:
    'Changes the lobby of the calling server: how long it is kept while empty, and its tags. A member that is absent changes nothing.',
  auth: ['lobby'],
  rate_limit: 'matchmaker',
  repeatable: true,
  body: object({
    keep_ms: Type.Optional(
      described(
        KeepMs,
        'For so many milliseconds from now, at most a day, the lobby does not end because it is empty. For servers whose players the platform does not know. 0: no longer.',
      ),
    ),
    tags: Type.Optional(
      described(Tags, 'Tags of the lobby, in place of all that it has. Find, create and lists of lobbies use them.'),
    ),
  }),
  response: object({
    keep_until_ts: Type.Optional(Timestamp('Until when the lobby is kept. Absent: it is not.')),
  }),
  errors: [
    'MATCHMAKER_LOBBY_STOPPED',
    'MATCHMAKER_TAGS_DISABLED',
    'MATCHMAKER_TOO_MANY_TAGS',
    'MATCHMAKER_TAG_NAME_TOO_LONG',
    'MATCHMAKER_TAG_TOO_LONG',
  ],
})

export const stopOwnLobby = operation({
  id: 'lobbies.stop',
  service: 'matchmaker',
  method: 'POST',
  path: '/matchmaker/lobbies/stop',
  summary: 'Ends the lobby of the calling server, which receives a signal. Seats that are still taken are given back.',
  auth: ['lobby'],
  rate_limit: 'matchmaker',
  repeatable: true,
  response: Empty,
  errors: [],
})
