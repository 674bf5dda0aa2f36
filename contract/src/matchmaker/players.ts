// Players, as the lobby server speaks of them.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Empty, object } from '../records.ts'

const PlayerToken = Type.String({ minLength: 1, maxLength: 2048, description: 'As find, join or create answered it.' })

export const playerConnected = operation({
  id: 'players.connected',
  service: 'matchmaker',
  method: 'POST',
  path: '/matchmaker/players/connected',
  summary: 'Consume a player token. Until this answers 200 the socket may do nothing; on an error it must be closed.',
  auth: ['lobby', 'development'],
  rate_limit: 'none',
  idempotent: true,
  body: object({ player_token: PlayerToken }),
  response: Empty,
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
  summary: 'The player has left; the seat is free, or kept for hold_ms. Repeating it changes nothing.',
  auth: ['lobby', 'development'],
  rate_limit: 'none',
  idempotent: true,
  body: object({
    player_token: PlayerToken,
    hold_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 300_000,
        description: 'Keep the seat for so long: until then the same player token connects again. 0 when absent.',
      }),
    ),
  }),
  response: Empty,
  errors: ['PLAYER_TOKEN_INVALID', 'MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY'],
})

const Identifier = Type.String({ minLength: 1, maxLength: 64 })
const PlayerCount = Type.Integer({ description: 'Seats that are taken: reserved and connected.' })
const RegionStatistics = object({ player_count: PlayerCount })
const GameModeStatistics = object({
  player_count: PlayerCount,
  regions: Type.Record(Identifier, RegionStatistics),
})

export const getPlayerStatistics = operation({
  id: 'players.getStatistics',
  service: 'matchmaker',
  method: 'GET',
  path: '/matchmaker/players/statistics',
  summary: 'How many play, by game mode and region, over the lobbies of all versions.',
  auth: ['namespace', 'development'],
  rate_limit: 'matchmaker',
  query: object({
    exclude_outdated: Type.Optional(Type.Boolean({ description: 'Count the lobbies of the current version only.' })),
  }),
  response: object({ player_count: PlayerCount, game_modes: Type.Record(Identifier, GameModeStatistics) }),
})
