// The roles of seats, in requests and in responses.
import Type from 'typebox'

/** What a request for a seat asks for. */
export const Role = Type.Enum(['player', 'spectator'], {
  description:
    '`spectator`: a seat beside those of players, in no limit of players and in no team. The game mode needs `max_spectators`. Not together with `party`. Default: `player`.',
})

/** The role of a seat, where it is not a player's. */
export const SpectatorRole = Type.Optional(
  Type.Enum(['spectator'], { description: '`spectator` for the seat of a spectator. Absent for players.' }),
)
