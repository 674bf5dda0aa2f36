// Sign-in of people with an account elsewhere, by OpenID Connect. An administrator names providers. A person is sent to one of
// them, and comes back to the hub with a code. The platform exchanges the code, and checks what the provider signed.
import Type, { type Static } from 'typebox'
import { GroupId, Id } from '../ids.ts'
import { operation } from '../operation.ts'
import { object, Timestamp } from '../records.ts'

/** Providers of a platform. */
export const SIGN_IN_PROVIDERS_MAX = 20
/** Values of the claim of one provider that give a role. */
const RULES_MAX = 100
/** Values of the claim that make a person an administrator. */
const ADMIN_VALUES_MAX = 20
const SCOPES_MAX = 20
const NAME_LENGTH_MAX = 32
const TITLE_LENGTH_MAX = 48
const URL_LENGTH_MAX = 512
const CLIENT_LENGTH_MAX = 512
const CLAIM_LENGTH_MAX = 128
const VALUE_LENGTH_MAX = 256
/** Characters of a parameter that a provider sends back. */
const PARAMETER_LENGTH_MAX = 4_096
const SESSION_HOURS_MAX = 90 * 24
export const SIGN_IN_SESSION_HOURS = 7 * 24
export const SIGN_IN_SCOPES: readonly string[] = ['openid', 'profile', 'email']

const Name = Type.String({
  pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
  minLength: 1,
  maxLength: NAME_LENGTH_MAX,
  description: 'Name of the provider, unique and part of its addresses. Example: `keycloak`.',
})
const Title = Type.String({
  format: 'display-name',
  minLength: 1,
  maxLength: TITLE_LENGTH_MAX,
  description: 'Name on the button of the sign-in page. Example: `Example Studio`.',
})
const Issuer = Type.String({
  minLength: 1,
  maxLength: URL_LENGTH_MAX,
  description:
    'Issuer of the provider, without `/.well-known/openid-configuration`. Example: `https://accounts.google.com`.',
})
const Visible = (description: string) =>
  Type.String({ minLength: 1, maxLength: CLIENT_LENGTH_MAX, pattern: '^[\\x20-\\x7e]+$', description })
const ClaimValue = (description: string) => Type.String({ minLength: 1, maxLength: VALUE_LENGTH_MAX, description })
const Rule = object(
  {
    value: ClaimValue('Value of the claim. Example: `game-developers`.'),
    group_id: GroupId,
    role: Type.Enum(['developer', 'viewer'], { description: 'Role of the person in the group.' }),
  },
  'A value of the claim that makes a person a member of a group.',
)
const settings = {
  title: Title,
  issuer: Type.String({ ...Issuer, examples: ['https://id.example.com'] }),
  client_id: Visible('Client id that the provider gave the platform. Example: `muster`.'),
  scopes: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 128, pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$' }), {
      maxItems: SCOPES_MAX,
      description: 'Scopes that are asked for. `openid` is always one. Default: `openid`, `profile`, `email`.',
    }),
  ),
  groups_claim: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: CLAIM_LENGTH_MAX,
      description:
        'Claim with the values of `rules` and `admin_values`: a text or a list of texts. A dot enters an object. Example: `groups`, `realm_access.roles`.',
    }),
  ),
  rules: Type.Optional(
    Type.Array(Rule, {
      maxItems: RULES_MAX,
      description:
        'Which values make a person a member of which group. They are applied at each sign-in, also to take a membership away. Default: none.',
    }),
  ),
  admin_values: Type.Optional(
    Type.Array(ClaimValue('Value of the claim. Example: `platform-admins`.'), {
      maxItems: ADMIN_VALUES_MAX,
      description: 'Values that make a person an administrator of the platform, for the session. Default: none.',
    }),
  ),
  requires_value: Type.Optional(
    Type.Boolean({
      description: 'Whether only people with a value of `rules` or `admin_values` may sign in. Default: false.',
    }),
  ),
  links_by_email: Type.Optional(
    Type.Boolean({
      description:
        'Whether a person with the same verified e-mail address is the same user. Set it only for a provider whose verified addresses you trust. Default: false.',
    }),
  ),
  session_hours: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: SESSION_HOURS_MAX,
      description: 'Hours after which a person must sign in again. Default: 168.',
    }),
  ),
}

export const SignInProvider = object(
  {
    provider_id: Id('Id of the provider.'),
    name: Name,
    ...settings,
    has_secret: Type.Boolean({ description: 'Whether a client secret is stored. No operation returns it.' }),
    redirect_url: Type.String({
      description:
        'Address to register at the provider as the redirect URI. Example: `https://muster.example.com/sign-in/keycloak`.',
    }),
    sign_out_url: Type.String({
      description: 'Address to register at the provider as the post-logout redirect URI.',
    }),
    backchannel_logout_url: Type.String({
      description: 'Address to register at the provider for back-channel logout. The provider must reach it.',
    }),
    account_count: Type.Integer({ minimum: 0, description: 'Accounts of the issuer that have signed in.' }),
    create_ts: Timestamp('When the provider was added.'),
  },
  'A provider of sign-ins, without its secret.',
)
export type SignInProvider = Static<typeof SignInProvider>

const admin = { service: 'api', auth: ['admin'], rate_limit: 'cloud' } as const
const path = '/admin/sign-in-providers'
const of_provider = { params: object({ provider_name: Name }), errors: ['SIGN_IN_PROVIDER_NOT_FOUND'] } as const

export const listSignInProviders = operation({
  ...admin,
  id: 'signInProviders.list',
  method: 'GET',
  path,
  summary: 'Lists the providers with which people sign in, by name.',
  response: object({ providers: Type.Array(SignInProvider, { description: 'The providers, at most 20.' }) }),
})

export const putSignInProvider = operation({
  ...admin,
  id: 'signInProviders.put',
  confirm: true,
  method: 'PUT',
  path: `${path}/{provider_name}`,
  summary:
    'Adds a provider, or replaces the one with this name. The secret stays when it is left out and the issuer and the client are the same.',
  params: object({ provider_name: Name }),
  body: object({
    ...settings,
    client_secret: Type.Optional(
      Visible('Client secret. It is stored encrypted. Leave it out for a public client, which has none.'),
    ),
  }),
  response: object({ provider: SignInProvider }),
})

export const deleteSignInProvider = operation({
  ...admin,
  ...of_provider,
  id: 'signInProviders.delete',
  confirm: true,
  method: 'DELETE',
  path: `${path}/{provider_name}`,
  summary: 'Removes a provider, and ends the sessions that were opened with it. The users and their memberships stay.',
  response: object({ ended_count: Type.Integer({ minimum: 0, description: 'Sessions that were ended.' }) }),
})

export const checkSignInIssuer = operation({
  ...admin,
  id: 'signInProviders.check',
  method: 'POST',
  path: `${path}/check`,
  summary: 'Reads the configuration and the keys of an issuer, and returns what is wrong with them.',
  body: object({ issuer: Issuer }),
  response: object({
    is_ok: Type.Boolean({ description: 'Whether people could sign in there.' }),
    problem: Type.Optional(Type.String({ description: 'What is wrong, with its remedy. Absent: nothing is.' })),
    authorization_endpoint: Type.Optional(Type.String({ description: 'Where people are sent to.' })),
    key_count: Type.Optional(Type.Integer({ minimum: 0, description: 'Keys that the provider publishes.' })),
    has_sign_out: Type.Optional(
      Type.Boolean({ description: 'Whether a sign-out of the hub also leads to the provider.' }),
    ),
    has_backchannel_logout: Type.Optional(
      Type.Boolean({ description: 'Whether a sign-out at the provider can end the sessions here.' }),
    ),
  }),
})

const anyone = { service: 'api', auth: ['anyone'], rate_limit: 'cloud' } as const
const open_path = '/auth/identity/providers'

export const listOpenSignInProviders = operation({
  ...anyone,
  id: 'auth.identity.provider.list',
  method: 'GET',
  path: open_path,
  summary: 'Lists the providers that a person can choose from to sign in. It needs no credential.',
  response: object({
    providers: Type.Array(object({ name: Name, title: Title }, 'A provider.'), {
      description: 'The providers, by title.',
    }),
  }),
})

export const startProviderSignIn = operation({
  ...anyone,
  ...of_provider,
  id: 'auth.identity.provider.start',
  method: 'POST',
  path: `${open_path}/{provider_name}/start`,
  summary:
    'Begins a sign-in with a provider. The browser keeps it in a cookie for ten minutes, and goes to the address of the response.',
  body: object({
    to: Type.Optional(
      Type.String({
        maxLength: 512,
        pattern: '^/([^/\\\\].*)?$',
        description: 'Path of the hub to show after the sign-in. Default: `/`.',
      }),
    ),
  }),
  response: object({ url: Type.String({ description: 'Address at the provider.' }) }),
  errors: ['SIGN_IN_PROVIDER_NOT_FOUND', 'SIGN_IN_FAILED', 'API_FORBIDDEN'],
})

const Parameter = (description: string) => Type.Optional(Type.String({ maxLength: PARAMETER_LENGTH_MAX, description }))

export const completeProviderSignIn = operation({
  ...anyone,
  id: 'auth.identity.provider.complete',
  method: 'POST',
  path: `${open_path}/{provider_name}/complete`,
  summary:
    'Logs in with what a provider sent the browser back with. It takes the cookie of `auth.identity.provider.start`, once.',
  params: object({ provider_name: Name }),
  body: object({
    state: Parameter('Value of `state` in the address.'),
    code: Parameter('Value of `code` in the address.'),
    iss: Parameter('Value of `iss` in the address.'),
    error: Parameter('Value of `error` in the address.'),
    error_description: Parameter('Value of `error_description` in the address.'),
  }),
  response: object({ to: Type.String({ description: 'Path of the hub to show now.' }) }),
  errors: ['SIGN_IN_PROVIDER_NOT_FOUND', 'SIGN_IN_FAILED', 'API_FORBIDDEN'],
})
