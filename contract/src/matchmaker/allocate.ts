// Allocate: how another matchmaker, or a backend of the game, starts a lobby for players that it has matched.
import Type from 'typebox'
import { IdentityId, NamespaceId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, object } from '../records.ts'
import { createLobby, Seat } from './lobbies.ts'
import { KeepMs } from './own-lobby.ts'

const { game_mode, region, publicity, with_code, tags, max_players, lobby_config } = createLobby.body.properties
const { player: _player, ...lobby } = Seat.properties.lobby.properties

export const allocateLobby = operation({
  id: 'lobbies.allocate',
  service: 'matchmaker',
  method: 'POST',
  path: '/matchmaker/lobbies/allocate',
  summary:
    'Starts a new lobby with a seat for each of these players: all of them, or nothing. Returns when the lobby is ready. For other matchmakers and backends of the game.',
  auth: ['cloud'],
  rate_limit: 'seats',
  idempotent: true,
  body: object({
    namespace_id: described(NamespaceId, 'Id of the namespace, which belongs to the game of the token.'),
    game_mode,
    region: Type.Optional(
      described(
        region,
        'Name of the region. Default: the nearest region of the game mode to the first player with an address. Example: `frankfurt`.',
      ),
    ),
    players: Type.Array(
      object({
        address: Type.Optional(
          Type.String({
            minLength: 2,
            maxLength: 45,
            description:
              'IPv4 or IPv6 address of the player, for the limits of its client. Without it no limit of a client applies. Example: `203.0.113.7`.',
          }),
        ),
        identity_id: Type.Optional(
          described(
            IdentityId,
            'Identity of the player in the namespace, which the backend vouches for. A page with this identity gets the seat as an event, and from the list of its own seats.',
          ),
        ),
      }),
      {
        minItems: 1,
        maxItems: 256,
        description: 'The players, each with one seat. At most as many as the lobby has seats.',
      },
    ),
    publicity: Type.Optional(
      described(
        publicity,
        '`private`: only these players enter, and others who join by the id or code. `public`: find fills the seats that are left. Default: `private`. The game mode need not enable custom lobbies.',
      ),
    ),
    with_code,
    tags,
    max_players,
    lobby_config,
    keep_ms: Type.Optional(
      described(
        KeepMs,
        'For so many milliseconds, at most a day, the lobby does not end because it is empty. For servers that let in players without a seat. Default: the seats keep it, and then `idle_grace_ms`.',
      ),
    ),
  }),
  response: object({
    lobby: object(lobby, 'The lobby in which the seats are.'),
    ports: Seat.properties.ports,
    players: Type.Array(
      object({
        player_id: Type.String({ format: 'uuid', description: 'Id of the player in the lobby.' }),
        identity_id: Type.Optional(described(IdentityId, 'Identity of the player. Present when the call named it.')),
        token: Type.String({
          description:
            'Player token. Give it to this player only, with the ports: the player connects within `player_deadline_ms`.',
        }),
      }),
      { description: 'The players in the order of the call.' },
    ),
  }),
  errors: [
    'NAMESPACE_NOT_FOUND',
    'MATCHMAKER_GAME_MODE_NOT_FOUND',
    'MATCHMAKER_REGION_NOT_FOUND',
    'MATCHMAKER_REGION_NOT_ENABLED_FOR_GAME_MODE',
    'MATCHMAKER_AUTO_CREATE_FAILED',
    'MATCHMAKER_TAGS_DISABLED',
    'MATCHMAKER_TOO_MANY_TAGS',
    'MATCHMAKER_TAG_NAME_TOO_LONG',
    'MATCHMAKER_TAG_TOO_LONG',
    'MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED',
    'MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID',
    'MATCHMAKER_CUSTOM_LOBBY_CONFIG_INVALID',
    'MATCHMAKER_VERSION_DRAINING',
    'MATCHMAKER_TOO_MANY_LOBBIES',
    'MATCHMAKER_REGION_FULL',
    'MATCHMAKER_NO_PORTS',
    'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE',
    'MATCHMAKER_LOBBY_STOPPED',
    'MATCHMAKER_LOBBY_NOT_STARTED',
  ],
})
