// The audit log: who changed what, when and from where; log-ins; and refusals for missing rights. A change and its event are
// written in one transaction.
import Type, { type Static } from 'typebox'
import { GameId, GroupId, Id, NamespaceId, RayId } from '../ids.ts'
import { operation } from '../operation.ts'
import { described, Instant, IsCut, object, Timestamp } from '../records.ts'

/** Events of one response. */
export const AUDIT_EVENTS_MAX = 200
const LIMIT_DEFAULT = 100
/** Characters of the id of an operation. */
const OPERATION_LENGTH_MAX = 128

export const AUDIT_OUTCOMES = ['done', 'begun', 'failed', 'refused'] as const
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number]

const Outcome = Type.Enum([...AUDIT_OUTCOMES], {
  description:
    '`done`: the change is committed, or the log-in succeeded. `begun`: a command to the matchmaker whose end is not known, because a process died or the database was away. `failed`: such a command had no effect, or a log-in failed. `refused`: the caller lacked the right.',
})
const OperationId = Type.String({
  maxLength: OPERATION_LENGTH_MAX,
  description: 'Id of the operation in this reference. Example: `games.namespaces.updateGameNamespaceVersion`.',
})

export const AuditChange = object(
  {
    member: Type.String({ description: 'Name of the member that changed. Example: `version_id`.' }),
    before: Type.Optional(
      Type.String({
        description: 'Value before, as text: a string unchanged, any other value as JSON. Absent when there was none.',
      }),
    ),
    after: Type.Optional(Type.String({ description: 'Value after, in the same form. Absent when it was removed.' })),
    is_secret: Type.Optional(
      Type.Boolean({ description: 'True when the value is secret and is therefore not recorded. Default: false.' }),
    ),
    is_cut: Type.Optional(
      Type.Boolean({ description: 'True when a value was too long and its end is missing. Default: false.' }),
    ),
  },
  'A member that changed.',
)
export type AuditChange = Static<typeof AuditChange>

export const AuditEvent = object(
  {
    event_id: Id('Id of the event. It sorts by time.'),
    create_ts: Timestamp('When it happened.'),
    group_id: Type.Optional(GroupId),
    game_id: Type.Optional(GameId),
    namespace_id: Type.Optional(NamespaceId),
    actor: object(
      {
        kind: Type.String({
          description:
            'Kind of the caller: `user`, `admin`, `cloud`, `development` or another kind of token; `anyone` without a credential; `platform` for what the platform does without a request.',
        }),
        user_id: Type.Optional(Id('Id of the user. Absent when no user is known.')),
        name: Type.Optional(
          Type.String({
            description: 'Display name of the user now, or the name of the access token. Example: `Ada`.',
          }),
        ),
        token_id: Type.Optional(Id('Id of the token; for a user, the id of the session. Absent without a credential.')),
      },
      'The caller.',
    ),
    client_ip: Type.String({ description: 'Address of the client; `-` for the platform. Example: `203.0.113.7`.' }),
    ray_id: RayId,
    operation: OperationId,
    outcome: Outcome,
    code: Type.Optional(Type.String({ description: 'Error code of a refusal or failure. Example: `API_FORBIDDEN`.' })),
    changes: Type.Array(AuditChange, { description: 'The members that changed. Empty for refusals.' }),
    dropped_count: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          'Refusals and failed log-ins before this event that were not recorded, because there were too many. Absent when there are none.',
      }),
    ),
  },
  'One entry of the audit log.',
)
export type AuditEvent = Static<typeof AuditEvent>

const Window = {
  query_start: Type.Optional(Instant('Start of the time window, inclusive. Default: no start.')),
  query_end: Type.Optional(Instant('End of the time window, exclusive. Default: no end.')),
}

const filters = {
  ...Window,
  game_id: Type.Optional(GameId),
  namespace_id: Type.Optional(NamespaceId),
  actor_id: Type.Optional(Id('Only events of this user, token or session.')),
  operation: Type.Optional(OperationId),
  outcome: Type.Optional(Outcome),
  code: Type.Optional(
    Type.String({
      maxLength: OPERATION_LENGTH_MAX,
      description: 'Only refusals and failures with this error code. Example: `API_FORBIDDEN`.',
    }),
  ),
  ray_id: Type.Optional(described(RayId, 'Only events of the request with this ray.')),
  client_ip: Type.Optional(
    Type.String({
      maxLength: 64,
      description:
        'Only events from this IPv4 or IPv6 address. `-`: only events of the platform. Example: `203.0.113.7`.',
    }),
  ),
  before_event_id: Type.Optional(
    Id('Continues a list: `event_id` of the last event of the previous response. Default: the newest events.'),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: AUDIT_EVENTS_MAX,
      description: `Events of the response. Default: ${LIMIT_DEFAULT}.`,
    }),
  ),
}
export const AUDIT_LIMIT_DEFAULT = LIMIT_DEFAULT

const events = object({
  events: Type.Array(AuditEvent, { description: 'Events, newest first.' }),
  is_cut: IsCut('Continue with `before_event_id`.'),
})
const Milliseconds = (description: string) =>
  Type.Integer({
    minimum: 0,
    maximum: 253_402_300_799_999,
    description: `${description} Milliseconds since the epoch.`,
  })
const window = {
  query_start: Milliseconds('Start of the window, inclusive.'),
  query_end: Milliseconds('End of the window, exclusive.'),
}
const file = object({
  url: Type.String({
    description: 'URL of the CSV file, valid for an hour. It needs no credential, so keep it secret.',
  }),
})

export const listGroupAuditEvents = operation({
  service: 'api',
  auth: ['admin', 'user'],
  rate_limit: 'cloud',
  id: 'groups.listGroupAuditEvents',
  method: 'GET',
  path: '/group/groups/{group_id}/audit-events',
  summary:
    'Lists the audit log of a group and its games, newest first. Owners and developers of the group may read it.',
  role: 'developer',
  params: object({ group_id: GroupId }),
  query: object(filters),
  response: events,
  errors: ['GROUP_NOT_FOUND'],
})

export const exportGroupAuditEvents = operation({
  service: 'api',
  auth: ['admin', 'user'],
  rate_limit: 'cloud',
  id: 'groups.exportGroupAuditEvents',
  method: 'POST',
  path: '/group/groups/{group_id}/audit-events/export',
  summary: 'Gets a URL for a CSV file with the audit log of a group in a time window, oldest first.',
  role: 'developer',
  params: object({ group_id: GroupId }),
  body: object(window),
  response: file,
  errors: ['GROUP_NOT_FOUND'],
})

export const listAuditEvents = operation({
  service: 'api',
  auth: ['admin'],
  rate_limit: 'cloud',
  id: 'admin.listAuditEvents',
  method: 'GET',
  path: '/admin/audit-events',
  summary:
    'Lists the audit events that belong to no group, such as log-ins, newest first. With `group_id`, those of a group, also of a deleted one.',
  query: object({ ...filters, group_id: Type.Optional(GroupId) }),
  response: events,
})

export const exportAuditEvents = operation({
  service: 'api',
  auth: ['admin'],
  rate_limit: 'cloud',
  id: 'admin.exportAuditEvents',
  method: 'POST',
  path: '/admin/audit-events/export',
  summary:
    'Gets a URL for a CSV file with the audit events of a time window that belong to no group, oldest first. With `group_id`, those of a group.',
  body: object({ ...window, group_id: Type.Optional(GroupId) }),
  response: file,
})
