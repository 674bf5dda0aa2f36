// Profiles of people and of players. Both are identities in the API. Members whose value is always the same are those
// that clients of the reference system cannot do without.
import Type from 'typebox'
import { Draft, ValidationErrors } from '../cloud/validation.ts'
import { operation } from '../operation.ts'
import { DisplayName, Empty, Id, object, Timestamp, Watch, WatchIndex } from '../records.ts'

export const IDENTITY_DISPLAY_NAME_LENGTH_MAX = 24

const Never = (description: string) => Type.Literal(false, { description: `${description} Always false.` })
const Zero = (description: string) => Type.Literal(0, { description: `${description} Always 0.` })
const NoList = (description: string) =>
  Type.Array(object({}), { maxItems: 0, description: `${description} Always empty.` })

export const Profile = object(
  {
    identity_id: Id,
    display_name: Type.String(),
    account_number: Type.Integer({
      minimum: 1,
      maximum: 9999,
      description: 'Tells identities of one name apart, most of the time.',
    }),
    avatar_url: Type.String({ description: 'Address of an SVG image, the same for all identities.' }),
    external: object({
      profile: Type.String({ description: 'Address of the web page that leads to the identity.' }),
    }),
    is_registered: Type.Boolean({ description: 'False: a guest, known by the token alone that his device keeps.' }),
    is_admin: Type.Boolean({ description: 'Logged in by access token.' }),
    join_ts: Timestamp,
    bio: Type.Literal('', { description: 'Text of the identity about itself. Always empty.' }),
    follower_count: Zero('Identities that follow this one.'),
    following_count: Zero('Identities that this one follows.'),
    following: Never('Whether the caller follows the identity.'),
    is_following_me: Never('Whether the identity follows the caller.'),
    is_mutual_following: Never('Whether both follow each other.'),
    groups: NoList('Groups that players can see.'),
    games: NoList('Statistics by game.'),
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
  summary: 'Gets the profile of the person or player who calls.',
  query: object({ watch_index: WatchIndex }),
  response: object({ identity: Profile, watch: Watch }),
  errors: ['IDENTITY_NOT_FOUND'],
})

export const updateProfile = operation({
  ...defaults,
  id: 'identities.updateProfile',
  method: 'POST',
  auth: ['user', 'admin', 'identity'],
  summary: 'Renames the person or player who calls.',
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
  summary: 'Validates information used to rename a person or a player.',
  body: object({ display_name: Draft }),
  response: ValidationErrors,
})
