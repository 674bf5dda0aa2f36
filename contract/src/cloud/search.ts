// Search in a game: one text, over all namespaces.
import Type, { type Static, type TSchema } from 'typebox'
import { GameId, Id, LobbyId, NamespaceId, PlayerId, RegionId } from '../ids.ts'
import { operation } from '../operation.ts'
import { IsCut, object, Timestamp } from '../records.ts'
import { RaySummary } from './rays.ts'

/** Entries of each kind in one response. */
export const FOUND_MAX = 20

const Found = <T extends TSchema>(item: T, description: string) =>
  object(
    {
      items: Type.Array(item, { description: 'The entries, newest first, at most 20.' }),
      is_cut: IsCut('The list contains the newest 20.'),
    },
    description,
  )

const FoundPlayer = object({
  player_id: PlayerId,
  lobby_id: LobbyId,
  namespace_id: NamespaceId,
  client_key: Type.String({ description: 'Client of the player: an IPv4 address or an IPv6 /64.' }),
  identity_id: Type.Optional(Id('Identity of the player. Absent when the request for the seat had none.')),
  create_ts: Timestamp('When the player got the seat.'),
  connect_ts: Type.Optional(Timestamp('When the player connected. Absent before.')),
  remove_ts: Type.Optional(Timestamp('When the player left. Absent while the player has the seat.')),
  remove_reason: Type.Optional(Type.String({ description: 'Why the player left. Example: `disconnected`.' })),
})
export type FoundPlayer = Static<typeof FoundPlayer>

const FoundLobby = object({
  lobby_id: LobbyId,
  namespace_id: NamespaceId,
  game_mode: Type.String({ description: 'Name of the game mode in the version config.' }),
  region_id: RegionId,
  create_ts: Timestamp('When the lobby was created.'),
  stop_ts: Type.Optional(Timestamp('When the lobby was stopped. Absent while it runs.')),
})
export type FoundLobby = Static<typeof FoundLobby>

export const searchGame = operation({
  id: 'games.searchGame',
  service: 'api',
  method: 'GET',
  path: '/cloud/games/{game_id}/search',
  summary: 'Finds players, lobbies and rays of a game by an id or by the address of a client, in all namespaces.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  role: 'developer',
  params: object({ game_id: GameId }),
  query: object({
    text: Type.String({
      examples: ['203.0.113.7'],
      maxLength: 64,
      description:
        'Id of a player, of an identity, of a lobby or of a ray; or an IPv4 address, an IPv6 address or an IPv6 /64. A lobby id also finds its players, a player id also finds its lobby and its rays. An identity id finds the newest seats of the identity, with their lobbies and rays. Example: `203.0.113.7`.',
    }),
  }),
  response: object({
    players: Found(FoundPlayer, 'Players with this id, identity or client, in this lobby, or seated by this ray.'),
    lobbies: Found(
      FoundLobby,
      'The lobby with this id, started by this ray, or of the players with this id or identity.',
    ),
    rays: Found(
      RaySummary,
      'Requests with this ray id, about this player or the players of this identity, or that started this lobby.',
    ),
  }),
  errors: ['GAME_NOT_FOUND'],
})
