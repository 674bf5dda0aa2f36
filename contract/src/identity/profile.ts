// What people say of themselves, and what a game's player is called. Both are identities in the API.
import Type from 'typebox'
import { Draft, ValidationErrors } from '../cloud/validation.ts'
import { operation } from '../operation.ts'
import { DisplayName, Empty, Id, object, Timestamp } from '../records.ts'

export const IDENTITY_DISPLAY_NAME_LENGTH_MAX = 24

export const Profile = object(
  {
    identity_id: Id,
    display_name: Type.String(),
    account_number: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 9999, description: 'Of a player: tells guests apart, most of the time.' }),
    ),
    is_registered: Type.Boolean({ description: 'False: a guest, known by the token alone that his device keeps.' }),
    is_admin: Type.Boolean({ description: 'Logged in by access token.' }),
    join_ts: Timestamp,
    linked_accounts: Type.Array(
      object({
        email: Type.Optional(object({ email: Type.String() })),
        access_token: Type.Optional(object({ name: Type.String() })),
      }),
      { description: 'How this person logs in.' },
    ),
  },
  'A person or a player, as he is told it himself.',
)

const door = { auth: ['user', 'admin'], rate_limit: 'cloud', path: '/identity/identities/self/profile' } as const

export const getSelfProfile = operation({
  ...door,
  id: 'identities.getSelfProfile',
  method: 'GET',
  auth: ['user', 'admin', 'identity'],
  summary: 'Gets the profile of the person or player who calls.',
  response: object({ identity: Profile }),
  errors: ['IDENTITY_NOT_FOUND'],
})

export const updateProfile = operation({
  ...door,
  id: 'identities.updateProfile',
  method: 'POST',
  summary: 'Renames the person who calls.',
  body: object({ display_name: DisplayName(IDENTITY_DISPLAY_NAME_LENGTH_MAX) }),
  response: Empty,
})

export const validateProfile = operation({
  ...door,
  id: 'identities.validateProfile',
  method: 'POST',
  path: '/identity/identities/self/profile/validate',
  summary: 'Validates information used to rename a person.',
  body: object({ display_name: Draft }),
  response: ValidationErrors,
})
