// How developers act on running lobbies: stop a lobby, remove a player, drain a version. The response is sent after the change
// is durable. A repeated call changes nothing.
import Type from 'typebox'
import { GameId, LobbyId, NamespaceId, PlayerId, VersionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Empty, object, Timestamp } from '../records.ts'

const defaults = { service: 'matchmaker', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const lobby = { game_id: GameId, lobby_id: LobbyId }

export const LobbyPlayer = object(
  {
    player_id: PlayerId,
    create_ts: Timestamp('When the seat was reserved.'),
    connect_ts: Type.Optional(Timestamp('When the player connected. Absent while the seat is reserved.')),
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
    players: Type.Array(LobbyPlayer, { description: 'The players, in the order in which they got their seats.' }),
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
