// Logging in. It leaves a session in a cookie, which only the refresh below reads: it answers the user token that all
// other operations take, good for a quarter of an hour.
import Type from 'typebox'
import { CaptchaResponse } from '../captcha-config.ts'
import { operation } from '../operation.ts'
import { Empty, Id, object, Timestamp } from '../records.ts'

const defaults = { service: 'api', auth: ['anyone'], rate_limit: 'cloud' } as const

export const startEmailVerification = operation({
  ...defaults,
  id: 'auth.identity.email.startVerification',
  method: 'POST',
  path: '/auth/identity/email/start-verification',
  summary: 'Sends a code to an address: eight characters, good for 15 minutes.',
  body: object({
    email: Type.String({ format: 'email', maxLength: 254 }),
    captcha: Type.Optional(
      object(
        { turnstile: Type.Optional(CaptchaResponse) },
        'Required when bootstrap has `captcha.turnstile`: the response of its widget, solved on the main domain.',
      ),
    ),
  }),
  response: object({ verification_id: Id }),
  errors: ['API_FORBIDDEN', 'CAPTCHA_CAPTCHA_INVALID', 'CAPTCHA_CAPTCHA_FAILED', 'CAPTCHA_PROVIDER_FAILED'],
})

export const completeEmailVerification = operation({
  ...defaults,
  id: 'auth.identity.email.completeVerification',
  method: 'POST',
  path: '/auth/identity/email/complete-verification',
  summary: 'Logs in with the code. Who has not been here before is somebody now. A code can be tried four times.',
  body: object({ verification_id: Id, code: Type.String({ minLength: 1, maxLength: 64 }) }),
  response: object({
    status: Type.Enum(['switch_identity', 'already_complete', 'expired', 'too_many_attempts', 'incorrect'], {
      description: 'switch_identity: you are logged in.',
    }),
  }),
})

export const completeAccessTokenVerification = operation({
  ...defaults,
  id: 'auth.identity.accessToken.completeVerification',
  method: 'POST',
  path: '/auth/identity/access-token/complete-verification',
  summary: "Logs in with the operator's access token: as an administrator.",
  body: object({ access_token: Type.String({ minLength: 1, maxLength: 2048 }) }),
  response: Empty,
  errors: ['TOKEN_INVALID', 'TOKEN_EXPIRED', 'TOKEN_REVOKED'],
})

export const refreshIdentityToken = operation({
  ...defaults,
  id: 'auth.tokens.refreshIdentityToken',
  method: 'POST',
  path: '/auth/tokens/identity',
  summary: "Answers a user token for the session of the cookie, or ends the session. Demands the hub's Origin.",
  body: object({ logout: Type.Optional(Type.Boolean({ description: 'End the session; then nothing is answered.' })) }),
  response: object({
    token: Type.Optional(Type.String({ description: 'A user token.' })),
    exp: Type.Optional(Timestamp),
    identity_id: Type.Optional(Id),
  }),
  errors: ['TOKEN_REFRESH_NOT_FOUND', 'API_FORBIDDEN'],
})

export const inspectAuth = operation({
  id: 'auth.inspect',
  service: 'api',
  method: 'GET',
  path: '/cloud/auth/inspect',
  summary: 'Tells who the caller is.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  response: object({
    agent: object(
      {
        identity: Type.Optional(object({ identity_id: Id }, 'A person.')),
        game_cloud: Type.Optional(object({ game_id: Id }, 'A cloud token.')),
        access_token: Type.Optional(object({ name: Type.String() }, 'An administrator.')),
      },
      'One of the members; of an administrator who has logged in, two.',
    ),
  }),
})
