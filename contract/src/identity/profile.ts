// Profiles of users and of players; both are identities in the API. Members with a constant value exist because clients of
// the reference system require them.
import Type from 'typebox'
import { Draft, ValidationErrors } from '../cloud/validation.ts'
import { IdentityId } from '../ids.ts'
import { operation } from '../operation.ts'
import { DisplayName, Empty, object, Timestamp, Watch, WatchIndex } from '../records.ts'

/** Characters of the display name of an identity. */
export const IDENTITY_DISPLAY_NAME_LENGTH_MAX = 24

const Never = (description: string) => Type.Literal(false, { description: `${description} Always false.` })
const Zero = (description: string) => Type.Literal(0, { description: `${description} Always 0.` })
const NoList = (description: string) =>
  Type.Array(object({}), { maxItems: 0, description: `${description} Always empty.` })

export const Profile = object(
  {
    identity_id: IdentityId,
    display_name: Type.String({ description: 'Name for people. Example: `Ada`.' }),
    account_number: Type.Integer({
      minimum: 1,
      maximum: 9999,
      description: 'Number shown with the name, to tell apart identities with the same name. It is not unique.',
    }),
    avatar_url: Type.String({ description: 'URL of an SVG image, the same for all identities.' }),
    external: object(
      {
        profile: Type.String({ description: 'URL of the web page of the identity.' }),
      },
      'Links to the identity.',
    ),
    is_registered: Type.Boolean({
      description: 'Whether the identity is a user. False for a guest, who is known only by the token on the device.',
    }),
    is_admin: Type.Boolean({
      description: 'Whether the identity is an administrator: a user who logged in by access token.',
    }),
    join_ts: Timestamp('When the identity was created.'),
    bio: Type.Literal('', { description: 'Description of the identity. Always empty.' }),
    follower_count: Zero('Number of followers.'),
    following_count: Zero('Number of identities that this one follows.'),
    following: Never('Whether the caller follows the identity.'),
    is_following_me: Never('Whether the identity follows the caller.'),
    is_mutual_following: Never('Whether both follow each other.'),
    groups: NoList('Groups of the identity.'),
    games: NoList('Statistics by game.'),
    linked_accounts: Type.Array(
      object({
        email: Type.Optional(
          object({ email: Type.String({ description: 'The e-mail address.' }) }, 'Log-in by e-mail.'),
        ),
        access_token: Type.Optional(
          object({ name: Type.String({ description: 'Name of the access token.' }) }, 'Log-in by access token.'),
        ),
        provider: Type.Optional(
          object(
            {
              issuer: Type.String({ description: 'Issuer of the provider. Example: `https://accounts.google.com`.' }),
              title: Type.Optional(
                Type.String({ description: 'Name of the provider. Absent when it was removed from the platform.' }),
              ),
              email: Type.Optional(Type.String({ description: 'E-mail address that the provider reported.' })),
            },
            'Log-in with an account of a provider.',
          ),
        ),
      }),
      { description: 'How the user logs in. Empty for a guest.' },
    ),
  },
  'The profile of a user or a player, as returned to this user or player.',
)

const defaults = {
  service: 'api',
  auth: ['user', 'admin'],
  rate_limit: 'cloud',
  path: '/identity/identities/self/profile',
} as const

export const getSelfProfile = operation({
  ...defaults,
  id: 'identities.getSelfProfile',
  method: 'GET',
  auth: ['user', 'admin', 'identity'],
  summary: "Gets the caller's profile: of a user or a player.",
  query: object({ watch_index: WatchIndex }),
  response: object({ identity: Profile, watch: Watch }),
  errors: ['IDENTITY_NOT_FOUND'],
})

export const updateProfile = operation({
  ...defaults,
  id: 'identities.updateProfile',
  method: 'POST',
  auth: ['user', 'admin', 'identity'],
  summary: 'Renames the caller: a user or a player.',
  body: object({ display_name: DisplayName(IDENTITY_DISPLAY_NAME_LENGTH_MAX) }),
  response: Empty,
  errors: ['IDENTITY_NOT_FOUND'],
})

export const validateProfile = operation({
  ...defaults,
  id: 'identities.validateProfile',
  method: 'POST',
  path: '/identity/identities/self/profile/validate',
  auth: ['user', 'admin', 'identity'],
  summary: 'Checks a new name for the caller without renaming.',
  body: object({ display_name: Draft('Display name to check.') }),
  response: ValidationErrors,
})
