// External verification of a game mode's action: whom the platform asks before it gives a seat.
import Type, { type Static } from 'typebox'
import { object } from './records.ts'

export const VerificationConfig = object(
  {
    url: Type.String({
      minLength: 1,
      maxLength: 2_048,
      description: 'Where the question is posted. A status from 200 to 299 is a yes; any other is a no.',
    }),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String({ maxLength: 4_096 }), {
        maxProperties: 32,
        description:
          'Sent along. Answers have an empty text in the place of each value; a config that is created must say them.',
      }),
    ),
  },
  "The game's own endpoint, asked before a seat is given.",
)
export type VerificationConfig = Static<typeof VerificationConfig>

/** Members of an action that ask the game's own endpoint: `verification` is the later name of the same. */
export const verificationMembers = {
  verification_config: Type.Optional(VerificationConfig),
  verification: Type.Optional(VerificationConfig),
}

export const SEAT_ACTIONS = ['find', 'join', 'create'] as const
export type SeatAction = (typeof SEAT_ACTIONS)[number]
