// What a lobby server reports about its players, and how many players there are.
import Type from 'typebox'
import { Attributes } from '../matching-config.ts'
import { operation } from '../operation.ts'
import { described, Empty, object } from '../records.ts'
import { SpectatorRole } from './roles.ts'

export const PlayerToken = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: 'Player token of the seat, from the response of find, join or create. Example: `player.eyJ0eXAi…`.',
})

export const playerConnected = operation({
  id: 'players.connected',
  service: 'matchmaker',
  method: 'POST',
  path: '/matchmaker/players/connected',
  summary:
    'Reports that a player has connected, and consumes the player token. The server must wait for this response, and close the connection on an error.',
  auth: ['lobby', 'development'],
  rate_limit: 'none',
  idempotent: true,
  body: object({ player_token: PlayerToken }),
  response: object(
    {
      role: SpectatorRole,
      team: Type.Optional(
        Type.String({ description: 'Team of the player. Absent where the game mode has no teams. Example: `red`.' }),
      ),
      attributes: Type.Optional(
        described(Attributes, 'Attributes with which the player was matched. Absent where the game mode has no rules.'),
      ),
    },
    'The player may enter.',
  ),
  errors: [
    'PLAYER_TOKEN_INVALID',
    'MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY',
    'MATCHMAKER_PLAYER_ALREADY_CONNECTED',
    'MATCHMAKER_PLAYER_REGISTRATION_EXPIRED',
    'MATCHMAKER_PLAYER_REMOVED',
    'MATCHMAKER_LOBBY_NOT_STARTED',
  ],
})

export const playerDisconnected = operation({
  id: 'players.disconnected',
  service: 'matchmaker',
  method: 'POST',
  path: '/matchmaker/players/disconnected',
  summary: 'Reports that a player has left. The seat is free, or kept for `hold_ms`. A repeated call changes nothing.',
  auth: ['lobby', 'development'],
  rate_limit: 'none',
  idempotent: true,
  body: object({
    player_token: PlayerToken,
    hold_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 300_000,
        description:
          'How long the seat is kept, in milliseconds. Until then the player can reconnect with the same token. Default 0, maximum 5 minutes.',
      }),
    ),
  }),
  response: Empty,
  errors: ['PLAYER_TOKEN_INVALID', 'MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY'],
})

const Identifier = Type.String({ minLength: 1, maxLength: 64 })
const PlayerCount = Type.Integer({ description: 'Number of players, reserved and connected.' })
const RegionStatistics = object({ player_count: PlayerCount })
const GameModeStatistics = object({
  player_count: PlayerCount,
  regions: Type.Record(Identifier, RegionStatistics, { description: 'Players by region name.' }),
})

export const getPlayerStatistics = operation({
  id: 'players.getStatistics',
  service: 'matchmaker',
  method: 'GET',
  path: '/matchmaker/players/statistics',
  summary: 'Counts players by game mode and region, in the lobbies of all versions.',
  auth: ['namespace', 'development'],
  rate_limit: 'matchmaker',
  query: object({
    exclude_outdated: Type.Optional(
      Type.Boolean({ description: 'Whether to count only lobbies of the deployed version. Default false.' }),
    ),
  }),
  response: object({
    player_count: PlayerCount,
    game_modes: Type.Record(Identifier, GameModeStatistics, { description: 'Players by name of the game mode.' }),
  }),
})
