// Passkeys of a person, by WebAuthn. A passkey signs in without anything else, and confirms what destroys. The browser makes it
// and keeps its private key: the platform stores the public key. Each use begins with a challenge that is good once.
import Type, { type Static } from 'typebox'
import { Id, IdentityId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Empty, object, Timestamp } from '../records.ts'

/** Passkeys of a person. */
export const PASSKEYS_MAX = 10
/** For this time after a confirmation, or after a sign-in with a passkey, operations with `confirm` ask no more. */
export const CONFIRMATION_MINUTES = 5
/** Characters of the name of a passkey. */
const NAME_LENGTH_MAX = 48
/** Characters of a credential id: 1023 bytes in base64url. */
const CREDENTIAL_LENGTH_MAX = 1_364
/** Characters of what a browser or an authenticator sends, in base64url. */
const DATA_LENGTH_MAX = 8_192
/** Characters of a sealed challenge. */
const STATE_LENGTH_MAX = 1_024
/** Ways to reach one authenticator. */
const TRANSPORTS_MAX = 10

const Name = Type.String({
  format: 'display-name',
  minLength: 1,
  maxLength: NAME_LENGTH_MAX,
  description: 'Name of the passkey, for the person. Example: `Laptop`.',
})
const Base64 = (description: string, maxLength = DATA_LENGTH_MAX) =>
  Type.String({ pattern: '^[A-Za-z0-9_-]+$', minLength: 1, maxLength, description: `${description} In base64url.` })
const CredentialId = Base64('Id that the authenticator gave the passkey.', CREDENTIAL_LENGTH_MAX)
const PublicKeyType = Type.Literal('public-key', { description: 'Always `public-key`.' })
const Transports = Type.Array(Type.String({ maxLength: 32, pattern: '^[a-z0-9-]+$' }), {
  maxItems: TRANSPORTS_MAX,
  description: 'How the browser reaches the authenticator. Example: `internal`, `usb`.',
})
const State = Type.String({
  minLength: 1,
  maxLength: STATE_LENGTH_MAX,
  description: 'The challenge, sealed. Send it back with the response of the browser, once and within five minutes.',
})

export const Passkey = object(
  {
    passkey_id: Id('Id of the passkey.'),
    name: Name,
    signs_in: Type.Boolean({
      description:
        'Whether it signs in. False for a passkey that was added in a session of a provider of sign-ins: it only confirms.',
    }),
    create_ts: Timestamp('When it was added.'),
    use_ts: Type.Optional(Timestamp('When it was last used. Absent: never.')),
  },
  'A passkey of a person, without its keys.',
)
export type Passkey = Static<typeof Passkey>

const KnownCredential = object(
  { id: CredentialId, type: PublicKeyType, transports: Type.Optional(Transports) },
  'A passkey of the person.',
)
const timeout = Type.Integer({ minimum: 0, description: 'Milliseconds that the browser waits for the person.' })
const UserVerification = Type.Literal('required', { description: 'Always `required`: a PIN, a finger or a face.' })

const CreationOptions = object(
  {
    rp: object(
      { id: Type.String({ description: 'Host of the hub.' }), name: Type.String({ description: 'Always `Muster`.' }) },
      'The platform.',
    ),
    user: object(
      {
        id: Base64('Id of the person for authenticators.'),
        name: Type.String({ description: 'Name of the account, such as an e-mail address.' }),
        displayName: Type.String({ description: 'Name of the person.' }),
      },
      'The person.',
    ),
    challenge: Base64('What the authenticator signs.'),
    pubKeyCredParams: Type.Array(
      object({
        type: PublicKeyType,
        alg: Type.Integer({ description: 'Number of a signature algorithm in COSE. Example: `-7` for ES256.' }),
      }),
      { description: 'The algorithms that the platform accepts, the best first.' },
    ),
    timeout,
    excludeCredentials: Type.Array(KnownCredential, { description: 'Passkeys that the person has already.' }),
    authenticatorSelection: object(
      {
        residentKey: Type.Literal('required', {
          description: 'Always `required`: the passkey is found without a name.',
        }),
        requireResidentKey: Type.Literal(true, { description: 'Always true.' }),
        userVerification: UserVerification,
      },
      'What an authenticator must be able to do.',
    ),
    attestation: Type.Literal('none', {
      description: 'Always `none`: the make of the authenticator is not asked for.',
    }),
  },
  'For `PublicKeyCredential.parseCreationOptionsFromJSON`.',
)
const RequestOptions = object(
  {
    rpId: Type.String({ description: 'Host of the hub.' }),
    challenge: Base64('What the authenticator signs.'),
    timeout,
    allowCredentials: Type.Array(KnownCredential, {
      description: 'Passkeys that may respond. Empty for a sign-in: every passkey of the host may.',
    }),
    userVerification: UserVerification,
  },
  'For `PublicKeyCredential.parseRequestOptionsFromJSON`.',
)

const Extensions = Type.Object(
  {},
  { additionalProperties: true, description: 'Results of extensions. The platform uses none.' },
)
const credential = {
  id: CredentialId,
  rawId: CredentialId,
  type: PublicKeyType,
  authenticatorAttachment: Type.Optional(
    Type.String({ maxLength: 32, description: 'Kind of authenticator. Not used.' }),
  ),
  clientExtensionResults: Extensions,
}
const ClientData = Base64('What the browser says of the page and the challenge.')
const Registration = object(
  {
    ...credential,
    response: object(
      {
        clientDataJSON: ClientData,
        attestationObject: Base64('The new public key, as the authenticator reports it.'),
        transports: Type.Optional(Transports),
        authenticatorData: Type.Optional(Base64('A part of `attestationObject`. Not used.')),
        publicKey: Type.Optional(Base64('A part of `attestationObject`. Not used.')),
        publicKeyAlgorithm: Type.Optional(Type.Integer({ description: 'A part of `attestationObject`. Not used.' })),
      },
      'What the authenticator made.',
    ),
  },
  '`toJSON()` of the new credential.',
)
const Assertion = object(
  {
    ...credential,
    response: object(
      {
        clientDataJSON: ClientData,
        authenticatorData: Base64('What the authenticator says of its use.'),
        signature: Base64('Signature of both.'),
        userHandle: Type.Optional(Base64('Id of the person for authenticators.')),
      },
      'What the authenticator signed.',
    ),
  },
  '`toJSON()` of the credential.',
)
export type PasskeyRegistration = Static<typeof Registration>
export type PasskeyAssertion = Static<typeof Assertion>

const defaults = { service: 'api', auth: ['admin', 'user'], rate_limit: 'cloud' } as const
const path = '/auth/passkeys'
const of_passkey = { params: object({ passkey_id: Id('Id of the passkey.') }), errors: ['PASSKEY_NOT_FOUND'] } as const
const request = object({ state: State, options: RequestOptions })

export const listPasskeys = operation({
  ...defaults,
  id: 'auth.passkeys.list',
  method: 'GET',
  path,
  summary: "Lists the caller's passkeys, the newest first. The list is empty for an access token.",
  response: object({ passkeys: Type.Array(Passkey, { description: 'The passkeys, at most 10.' }) }),
})

export const startPasskey = operation({
  ...defaults,
  id: 'auth.passkeys.start',
  method: 'POST',
  path: `${path}/start`,
  confirm: true,
  summary: 'Begins to add a passkey to the caller, who has logged in. The browser makes it with the options.',
  response: object({ state: State, options: CreationOptions }),
  errors: ['PASSKEY_UNAVAILABLE', 'PASSKEY_LIMIT_REACHED', 'API_FORBIDDEN'],
})

export const addPasskey = operation({
  ...defaults,
  id: 'auth.passkeys.add',
  method: 'POST',
  path,
  summary: 'Adds the passkey that the browser made with the options of `auth.passkeys.start`.',
  body: object({ state: State, name: Name, credential: Registration }),
  response: object({ passkey: Passkey }),
  errors: ['PASSKEY_UNAVAILABLE', 'PASSKEY_LIMIT_REACHED', 'PASSKEY_REFUSED', 'API_FORBIDDEN'],
})

export const renamePasskey = operation({
  ...defaults,
  ...of_passkey,
  id: 'auth.passkeys.rename',
  method: 'PUT',
  path: `${path}/{passkey_id}`,
  summary: "Renames one of the caller's passkeys.",
  body: object({ name: Name }),
  response: Empty,
})

export const removePasskey = operation({
  ...defaults,
  ...of_passkey,
  id: 'auth.passkeys.remove',
  method: 'DELETE',
  path: `${path}/{passkey_id}`,
  confirm: true,
  summary: "Removes one of the caller's passkeys, and ends the other sessions that were opened with it.",
  response: object({ ended_count: Type.Integer({ minimum: 0, description: 'Sessions that were ended.' }) }),
})

export const startConfirmation = operation({
  ...defaults,
  id: 'auth.confirmation.start',
  method: 'POST',
  path: '/auth/confirmation/start',
  summary: 'Begins a confirmation of the calling session with a passkey.',
  response: request,
  errors: ['PASSKEY_UNAVAILABLE', 'PASSKEY_NOT_FOUND', 'API_FORBIDDEN'],
})

export const completeConfirmation = operation({
  ...defaults,
  id: 'auth.confirmation.complete',
  method: 'POST',
  path: '/auth/confirmation/complete',
  summary: 'Confirms the calling session for five minutes, with what the passkey signed.',
  body: object({ state: State, credential: Assertion }),
  response: object({ until_ts: Timestamp('Until when operations that destroy ask no more.') }),
  errors: ['PASSKEY_UNAVAILABLE', 'PASSKEY_REFUSED', 'API_FORBIDDEN'],
})

const anyone = { service: 'api', auth: ['anyone'], rate_limit: 'cloud' } as const

export const startPasskeySignIn = operation({
  ...anyone,
  id: 'auth.identity.passkey.start',
  method: 'POST',
  path: '/auth/identity/passkey/start',
  summary: 'Begins a log-in with a passkey. Nothing is stored until it is completed.',
  response: request,
  errors: ['PASSKEY_UNAVAILABLE', 'API_FORBIDDEN'],
})

export const completePasskeySignIn = operation({
  ...anyone,
  id: 'auth.identity.passkey.complete',
  method: 'POST',
  path: '/auth/identity/passkey/complete',
  summary: 'Logs in with what the passkey signed. The session counts as confirmed for five minutes.',
  body: object({ state: State, credential: Assertion }),
  response: Empty,
  errors: ['PASSKEY_UNAVAILABLE', 'PASSKEY_REFUSED', 'API_FORBIDDEN'],
})

export const removePasskeysOf = operation({
  service: 'api',
  auth: ['admin'],
  rate_limit: 'cloud',
  id: 'admin.removePasskeys',
  method: 'DELETE',
  path: '/admin/users/{user_id}/passkeys',
  confirm: true,
  summary: 'Removes all passkeys of a person who has lost them, and ends the sessions that were opened with them.',
  params: object({ user_id: IdentityId }),
  response: object({
    removed_count: Type.Integer({ minimum: 0, description: 'Passkeys that were removed.' }),
    ended_count: Type.Integer({ minimum: 0, description: 'Sessions that were ended.' }),
  }),
})
