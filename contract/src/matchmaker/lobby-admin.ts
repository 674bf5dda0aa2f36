// How developers act on lobbies: stop a lobby, remove a player, drain a version, start a lobby of a version before its deploy.
// The response is sent after the change is durable. A repeated call changes nothing.
import Type from 'typebox'
import { GameId, LobbyId, NamespaceId, PlayerId, VersionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, Empty, object, Timestamp } from '../records.ts'
import { SpectatorRole } from './roles.ts'

const defaults = { service: 'matchmaker', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const lobby = { game_id: GameId, lobby_id: LobbyId }

export const LobbyPlayer = object(
  {
    player_id: PlayerId,
    create_ts: Timestamp('When the seat was reserved.'),
    connect_ts: Type.Optional(Timestamp('When the player connected. Absent while the seat is reserved.')),
    role: SpectatorRole,
  },
  'A player with a seat in a lobby.',
)

export const deleteMatchmakerLobby = operation({
  ...defaults,
  id: 'games.matchmaker.deleteMatchmakerLobby',
  method: 'DELETE',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}',
  summary: 'Stops a lobby. Its players lose their seats, and its server is ended.',
  role: 'developer',
  params: object(lobby),
  response: object({
    did_remove: Type.Boolean({ description: 'Whether this call stopped the lobby. False when it had stopped before.' }),
  }),
  errors: ['GAME_NOT_FOUND', 'LOBBY_NOT_FOUND'],
})

export const listMatchmakerLobbyPlayers = operation({
  ...defaults,
  id: 'games.matchmaker.listMatchmakerLobbyPlayers',
  method: 'GET',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/players',
  summary: 'Lists the players of a lobby, reserved and connected.',
  role: 'viewer',
  params: object(lobby),
  response: object({
    players: Type.Array(LobbyPlayer, {
      description: 'The players and then the spectators, each in the order in which they got their seats.',
    }),
  }),
  errors: ['GAME_NOT_FOUND', 'LOBBY_NOT_FOUND'],
})

export const deleteMatchmakerLobbyPlayer = operation({
  ...defaults,
  id: 'games.matchmaker.deleteMatchmakerLobbyPlayer',
  method: 'DELETE',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/players/{player_id}',
  summary:
    'Removes a player from a lobby. The seat is free, and the player token is refused from now on. An open connection stays open until the game server closes it.',
  role: 'developer',
  params: object({ ...lobby, player_id: PlayerId }),
  response: object({
    did_remove: Type.Boolean({
      description: 'Whether this call removed the player. False when the player had no seat in the lobby.',
    }),
  }),
  errors: ['GAME_NOT_FOUND', 'LOBBY_NOT_FOUND'],
})

export const setMatchmakerVersionDraining = operation({
  ...defaults,
  id: 'games.matchmaker.setMatchmakerVersionDraining',
  method: 'PUT',
  path: '/cloud/games/{game_id}/matchmaker/namespaces/{namespace_id}/versions/{version_id}/draining',
  summary:
    'Starts or ends draining a version in a namespace. While it drains, its lobbies take no new players and stop when empty, and no new ones start. Connected players keep playing.',
  role: 'developer',
  params: object({ game_id: GameId, namespace_id: NamespaceId, version_id: VersionId }),
  body: object({ is_draining: Type.Boolean({ description: 'Whether the version drains.' }) }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'VERSION_NOT_FOUND', 'QUOTA_REACHED'],
})

/** Longest wait of one call that checks a version. */
export const CHECK_WAIT_MS_MAX = 50_000

export const checkMatchmakerVersion = operation({
  ...defaults,
  id: 'games.matchmaker.checkMatchmakerVersion',
  method: 'POST',
  path: '/cloud/games/{game_id}/matchmaker/namespaces/{namespace_id}/versions/{version_id}/check',
  summary:
    'Starts one lobby of a version in a namespace that need not run it, and waits for its server. Call it before a deploy: players find the lobby only after the version is deployed. A caller that hangs up before it is ready ends it.',
  role: 'developer',
  params: object({ game_id: GameId, namespace_id: NamespaceId, version_id: VersionId }),
  body: object({
    lobby_id: Type.Optional(
      described(LobbyId, 'Lobby that an earlier call started: the call waits for it. Without it, a lobby is started.'),
    ),
    game_mode: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          'Name of the game mode of a new lobby, which starts in the first region of the mode. Default: `default`, or the first by name.',
      }),
    ),
    wait_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: CHECK_WAIT_MS_MAX,
        description:
          'Time in milliseconds after which the call returns although the server is not ready. Default 50000.',
      }),
    ),
  }),
  response: object({
    lobby_id: LobbyId,
    is_ready: Type.Boolean({
      description:
        'Whether the server is ready. The lobby then keeps a reserved seat for `player_deadline_ms`, so that it does not stop before the deploy.',
    }),
    is_started: Type.Boolean({ description: 'Whether the process of the server was started.' }),
    is_listening: Type.Boolean({ description: 'Whether the server listens at any port. False where it is not known.' }),
    message: Type.String({
      description:
        'What the platform sees of the server, for people. Example: `Its server does not listen on PORT_GAME.` Empty when it is ready.',
    }),
    log_lines: Type.Array(Type.String(), { description: 'Last lines of the log of the server, oldest first.' }),
  }),
  errors: [
    'GAME_NOT_FOUND',
    'NAMESPACE_NOT_FOUND',
    'VERSION_NOT_FOUND',
    'LOBBY_NOT_FOUND',
    'MATCHMAKER_GAME_MODE_NOT_FOUND',
    'MATCHMAKER_AUTO_CREATE_FAILED',
    'MATCHMAKER_VERSION_DRAINING',
    'MATCHMAKER_TOO_MANY_LOBBIES',
    'MATCHMAKER_REGION_FULL',
    'MATCHMAKER_NO_PORTS',
    'MATCHMAKER_LOBBY_STOPPED',
    'QUOTA_REACHED',
  ],
})
