// Identities of players. Each is a guest of one namespace, known by its identity token.
import Type from 'typebox'
import { GameId } from '../ids.ts'
import { operation } from '../operation.ts'
import { object, Timestamp } from '../records.ts'
import { Profile } from './profile.ts'

export const setupIdentity = operation({
  id: 'identities.setup',
  service: 'matchmaker',
  method: 'POST',
  path: '/identity/identities',
  summary: 'Creates a guest identity in the namespace, or returns the identity of an existing token.',
  auth: ['namespace', 'development'],
  rate_limit: 'seats',
  body: object({
    existing_identity_token: Type.Optional(
      Type.String({
        maxLength: 2048,
        description:
          'Identity token of an earlier call, to get the same identity again. When it is invalid or expired, a new guest is created.',
      }),
    ),
  }),
  response: object({
    identity_token: Type.String({
      description:
        'Identity token. Store it on the device, and send it as the bearer token: it stands for the player and the namespace.',
    }),
    identity_token_expire_ts: Timestamp('When the token expires: 180 days after it was issued.'),
    identity: Profile,
    game_id: GameId,
  }),
  errors: ['NAMESPACE_NOT_FOUND', 'QUOTA_REACHED'],
})
