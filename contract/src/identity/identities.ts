// Identities of games' players: who plays, as far as a game wants to know. An identity is a guest of one namespace.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Id, object, Timestamp } from '../records.ts'
import { Profile } from './profile.ts'

export const setupIdentity = operation({
  id: 'identities.setup',
  service: 'matchmaker',
  method: 'POST',
  path: '/identity/identities',
  summary: 'Makes a guest of the namespace, or finds again the one that a kept token is of.',
  auth: ['namespace', 'development'],
  rate_limit: 'seats',
  body: object({
    existing_identity_token: Type.Optional(
      Type.String({
        maxLength: 2048,
        description: 'What an earlier call answered. One that is not good any more is as none: a new guest is made.',
      }),
    ),
  }),
  response: object({
    identity_token: Type.String({
      description: 'To be kept, and sent as the bearer token: it says who plays, and stands for the namespace.',
    }),
    identity_token_expire_ts: Timestamp,
    identity: Profile,
    game_id: Id,
  }),
  errors: ['NAMESPACE_NOT_FOUND', 'QUOTA_REACHED'],
})
