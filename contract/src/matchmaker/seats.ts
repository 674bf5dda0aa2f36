// The seats that a player has already: how a page is back in its lobby after a reload, a crash or a change of the network.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { described, object, Timestamp } from '../records.ts'
import { Seat } from './lobbies.ts'
import { PlayerToken } from './players.ts'

export const OwnSeat = object(
  {
    is_connected: Type.Boolean({
      description:
        'Whether the lobby server, or the platform with `seats` `edge`, has the player as connected. A connection that broke without a close is noticed late.',
    }),
    expire_ts: Type.Optional(
      Timestamp('When the seat ends unless the player connects. Absent while the player is connected.'),
    ),
    ...Seat.properties,
  },
  'A seat that the player has, and how to connect to it.',
)

export const listOwnSeats = operation({
  id: 'seats.listOwn',
  service: 'matchmaker',
  method: 'POST',
  path: '/matchmaker/seats/own',
  summary:
    'Lists the seats that the caller has in lobbies that are ready: reserved, connected, or kept for `hold_ms`. Takes no seat and changes nothing. The identity of the caller counts, and the player token in the body.',
  auth: ['namespace', 'development'],
  rate_limit: 'matchmaker',
  repeatable: true,
  body: object({
    player_token: Type.Optional(
      described(
        PlayerToken,
        'Player token of an earlier seat, which is listed first if it has not ended. Without it, only seats of the identity are listed.',
      ),
    ),
  }),
  response: object({
    seats: Type.Array(OwnSeat, {
      description:
        'At most 16: the seat of the player token, then the seats of the identity, the newest first. Each has the same player token as before. Empty when all have ended, and always with a development token.',
    }),
  }),
  errors: ['NAMESPACE_NOT_FOUND', 'PLAYER_TOKEN_INVALID'],
})
