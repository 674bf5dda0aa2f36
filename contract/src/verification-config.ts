// External verification of an action of a game mode: an endpoint of the game that accepts or refuses each seat.
import Type, { type Static } from 'typebox'
import { object } from './records.ts'

export const VerificationConfig = object(
  {
    url: Type.String({
      minLength: 1,
      maxLength: 2_048,
      description:
        'URL that receives a POST request before a seat is reserved. A status from 200 to 299 accepts; every other status refuses. Example: `https://accounts.example.org/gate`.',
    }),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String({ maxLength: 4_096 }), {
        maxProperties: 32,
        description:
          'Headers of the request, at most 32. Values are required to create a version, and are empty strings when a version is read.',
      }),
    ),
  },
  "The game's own endpoint, which accepts or refuses each seat. Default: none. `verification` and `verification_config` are two names of the same member.",
)
export type VerificationConfig = Static<typeof VerificationConfig>

/** Members of an action that configure external verification: `verification` is the later name of the same. */
export const verificationMembers = {
  verification_config: Type.Optional(VerificationConfig),
  verification: Type.Optional(VerificationConfig),
}

export const SEAT_ACTIONS = ['find', 'join', 'create'] as const
export type SeatAction = (typeof SEAT_ACTIONS)[number]
