// Log-in. It creates a session, kept in a cookie that only the refresh operation reads. The refresh returns a user token, which
// all other operations accept, and which is valid for 15 minutes.
import Type from 'typebox'
import { CaptchaResponse } from '../captcha-config.ts'
import { GameId, Id, IdentityId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, Empty, object, Timestamp } from '../records.ts'

const defaults = { service: 'api', auth: ['anyone'], rate_limit: 'cloud' } as const

export const startEmailVerification = operation({
  ...defaults,
  id: 'auth.identity.email.startVerification',
  method: 'POST',
  path: '/auth/identity/email/start-verification',
  summary: 'Sends a log-in code to an e-mail address: eight characters, valid for 15 minutes.',
  body: object({
    email: Type.String({
      format: 'email',
      maxLength: 254,
      description: 'E-mail address that receives the code. Example: `ada@example.com`.',
    }),
    captcha: Type.Optional(
      object(
        { turnstile: Type.Optional(described(CaptchaResponse, 'Response of the Turnstile widget.')) },
        'Required when bootstrap has `captcha.turnstile`: a captcha solved on a page of the main domain.',
      ),
    ),
  }),
  response: object({ verification_id: Id('Id of the verification. Send it back with the code.') }),
  errors: ['API_FORBIDDEN', 'CAPTCHA_CAPTCHA_INVALID', 'CAPTCHA_CAPTCHA_FAILED', 'CAPTCHA_PROVIDER_FAILED'],
})

export const completeEmailVerification = operation({
  ...defaults,
  id: 'auth.identity.email.completeVerification',
  method: 'POST',
  path: '/auth/identity/email/complete-verification',
  summary: 'Logs in with a code. A new e-mail address gets a new user. A code allows four attempts.',
  body: object({
    verification_id: Id('Id of the verification. Send it back with the code.'),
    code: Type.String({ minLength: 1, maxLength: 64, description: 'Code from the e-mail. Example: `K3F7QX9A`.' }),
  }),
  response: object({
    status: Type.Enum(['switch_identity', 'already_complete', 'expired', 'too_many_attempts', 'incorrect'], {
      description:
        '`switch_identity`: the caller is logged in. `already_complete`: the code was used before. `expired`: request a new code. `too_many_attempts`: four attempts failed. `incorrect`: another attempt is possible.',
    }),
  }),
})

export const completeAccessTokenVerification = operation({
  ...defaults,
  id: 'auth.identity.accessToken.completeVerification',
  method: 'POST',
  path: '/auth/identity/access-token/complete-verification',
  summary: "Logs in as an administrator, with the operator's access token.",
  body: object({
    access_token: Type.String({
      minLength: 1,
      maxLength: 2048,
      description: "The operator's access token, from the file `admin-token` of the data folder.",
    }),
  }),
  response: Empty,
  errors: ['TOKEN_INVALID', 'TOKEN_EXPIRED', 'TOKEN_REVOKED'],
})

export const refreshIdentityToken = operation({
  ...defaults,
  id: 'auth.tokens.refreshIdentityToken',
  method: 'POST',
  path: '/auth/tokens/identity',
  summary:
    'Gets a user token for the session in the cookie, or ends the session. Requires the Origin of the main domain.',
  body: object({
    logout: Type.Optional(
      Type.Boolean({ description: 'Whether to end the session. The response then has no token. Default false.' }),
    ),
  }),
  response: object({
    token: Type.Optional(Type.String({ description: 'User token, valid for 15 minutes.' })),
    exp: Type.Optional(Timestamp('When the user token expires: 15 minutes after it was issued.')),
    identity_id: Type.Optional(described(IdentityId, 'Id of the user.')),
    end_session_url: Type.Optional(
      Type.String({
        description:
          'After a logout: address at the provider where the person ends the session there too. Absent when there is none.',
      }),
    ),
  }),
  errors: ['TOKEN_REFRESH_NOT_FOUND', 'API_FORBIDDEN'],
})

export const inspectAuth = operation({
  id: 'auth.inspect',
  service: 'api',
  method: 'GET',
  path: '/cloud/auth/inspect',
  summary: 'Gets what the credential of the call proves.',
  auth: ['admin', 'user', 'cloud'],
  rate_limit: 'cloud',
  response: object({
    agent: object(
      {
        identity: Type.Optional(object({ identity_id: IdentityId }, 'The caller is a user.')),
        game_cloud: Type.Optional(object({ game_id: GameId }, 'The caller has a cloud token.')),
        access_token: Type.Optional(
          object(
            { name: Type.String({ description: 'Name of the access token.' }) },
            'The caller is an administrator.',
          ),
        ),
      },
      'The caller. It has one member; for an administrator who has logged in, two.',
    ),
    client_ip: Type.Optional(
      Type.String({ description: 'Address of the client, as the platform sees it. Example: `203.0.113.7`.' }),
    ),
  }),
})
