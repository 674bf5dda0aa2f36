// The developers' hands on what runs: a lobby is stopped, a player taken out, a version drained. An answer leaves when
// what it says is durable; repeating a call changes nothing.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Empty, Id, object, Timestamp } from '../records.ts'

const defaults = { service: 'matchmaker', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const lobby = { game_id: Id, lobby_id: Id }

export const LobbyPlayer = object(
  {
    player_id: Id,
    create_ts: Timestamp,
    connect_ts: Type.Optional(
      Type.String({ format: 'date-time', description: 'Absent while the seat waits for its player.' }),
    ),
  },
  'A seat that is taken.',
)

export const deleteMatchmakerLobby = operation({
  ...defaults,
  id: 'games.matchmaker.deleteMatchmakerLobby',
  method: 'DELETE',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}',
  summary: 'Stops a lobby: its players have left, and its server is ended.',
  role: 'developer',
  params: object(lobby),
  response: object({ did_remove: Type.Boolean({ description: 'False: it had stopped already.' }) }),
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
  response: object({ players: Type.Array(LobbyPlayer, { description: 'In the order in which they came.' }) }),
  errors: ['GAME_NOT_FOUND', 'LOBBY_NOT_FOUND'],
})

export const deleteMatchmakerLobbyPlayer = operation({
  ...defaults,
  id: 'games.matchmaker.deleteMatchmakerLobbyPlayer',
  method: 'DELETE',
  path: '/cloud/games/{game_id}/matchmaker/lobbies/{lobby_id}/players/{player_id}',
  summary:
    "Takes a player out of a lobby: the seat is free, and the player's token is refused from now on. Closing a connection that is open is the game server's.",
  role: 'developer',
  params: object({ ...lobby, player_id: Id }),
  response: object({ did_remove: Type.Boolean({ description: 'False: the lobby has no such player any more.' }) }),
  errors: ['GAME_NOT_FOUND', 'LOBBY_NOT_FOUND'],
})

export const setMatchmakerVersionDraining = operation({
  ...defaults,
  id: 'games.matchmaker.setMatchmakerVersionDraining',
  method: 'PUT',
  path: '/cloud/games/{game_id}/matchmaker/namespaces/{namespace_id}/versions/{version_id}/draining',
  summary:
    'Drains a version in a namespace, or ends that: while it drains, its lobbies take no new players and end when they are empty, and no more of them are started. Who plays plays on.',
  role: 'developer',
  params: object({ game_id: Id, namespace_id: Id, version_id: Id }),
  body: object({ is_draining: Type.Boolean() }),
  response: Empty,
  errors: ['GAME_NOT_FOUND', 'NAMESPACE_NOT_FOUND', 'VERSION_NOT_FOUND', 'QUOTA_REACHED'],
})
