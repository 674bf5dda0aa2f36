// Sessions of a person: where the person is logged in, and how to end that. And links that sign an administrator in once.
import Type, { type Static } from 'typebox'
import { Id } from '../ids.ts'
import { operation } from '../operation.ts'
import { Empty, object, Timestamp } from '../records.ts'

export const SessionSummary = object(
  {
    session_id: Id('Id of the session. It is not secret.'),
    create_ts: Timestamp('When the person logged in.'),
    refresh_ts: Timestamp('When the session was last used, to about 15 minutes.'),
    expire_ts: Timestamp('When it ends unless it is used before.'),
    is_current: Type.Boolean({ description: 'Whether this call belongs to the session.' }),
    client_ip: Type.Optional(
      Type.String({ description: 'Address of its last use. Absent in old sessions. Example: `203.0.113.7`.' }),
    ),
    user_agent: Type.Optional(
      Type.String({
        description: 'User-Agent header of its last use. Absent in old sessions, and for clients without one.',
      }),
    ),
    passkey_name: Type.Optional(
      Type.String({
        description: 'Name of the passkey that opened it. Absent: it was opened in another way. Example: `Laptop`.',
      }),
    ),
  },
  'A session of a person.',
)
export type SessionSummary = Static<typeof SessionSummary>

const defaults = { service: 'api', auth: ['admin', 'user'], rate_limit: 'cloud' } as const

export const listSessions = operation({
  ...defaults,
  id: 'auth.sessions.list',
  method: 'GET',
  path: '/auth/sessions',
  summary: "Lists the caller's sessions, the last used first. The list is empty for an access token, which has none.",
  response: object({
    sessions: Type.Array(SessionSummary, { description: 'The sessions, at most 50.' }),
  }),
})

export const endSession = operation({
  ...defaults,
  id: 'auth.sessions.end',
  method: 'DELETE',
  path: '/auth/sessions/{session_id}',
  summary: "Ends one of the caller's sessions: its user tokens are refused from now on.",
  params: object({ session_id: Id('Id of the session.') }),
  response: Empty,
  errors: ['SESSION_NOT_FOUND'],
})

export const endOtherSessions = operation({
  ...defaults,
  id: 'auth.sessions.endOthers',
  method: 'POST',
  path: '/auth/sessions/end-others',
  summary: "Ends all of the caller's sessions except the one of this call.",
  response: object({ ended_count: Type.Integer({ minimum: 0, description: 'Sessions that were ended.' }) }),
})

export const createSignInLink = operation({
  service: 'api',
  auth: ['admin'],
  rate_limit: 'cloud',
  id: 'admin.createSignInLink',
  method: 'POST',
  path: '/admin/sign-in-links',
  summary: 'Creates a link that signs the calling administrator in once, within an hour. Keep it secret.',
  response: object({
    url: Type.String({ description: 'Page that signs in. Example: `http://localhost:8080/sign-in?link=…`.' }),
    expire_ts: Timestamp('When the link expires: an hour after it was created.'),
  }),
})

export const completeLinkVerification = operation({
  service: 'api',
  auth: ['anyone'],
  rate_limit: 'cloud',
  id: 'auth.identity.link.completeVerification',
  method: 'POST',
  path: '/auth/identity/link/complete-verification',
  summary: 'Logs in as an administrator, with a link of `admin.createSignInLink`. A link is good once.',
  body: object({
    link: Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'Value of `link` in the URL of the link.',
    }),
  }),
  response: Empty,
  errors: ['SIGN_IN_LINK_INVALID'],
})
