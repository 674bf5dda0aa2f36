// Notices: messages about what happens on the platform, to a chat, a phone, a mailbox or a program. A target belongs to a
// group, a game or the platform. It gets the notices of the events that it names, in order, each at least once.
import Type, { type Static } from 'typebox'
import { GameId, GroupId, Id, NamespaceId } from '../ids.ts'
import { NOTICE_EVENT_NAMES, NOTICE_EVENTS, NOTICE_KINDS } from '../notice-events.ts'
import { operation } from '../operation.ts'
import { described, Empty, IsCut, object, Timestamp } from '../records.ts'

/** Targets of a group, of a game, and of the platform. */
export const NOTICE_TARGETS_MAX = 20
/** Deliveries of one response. */
export const NOTICE_DELIVERIES_MAX = 100
/** Addresses of one e-mail target. */
const ADDRESSES_MAX = 10
/** Games, and namespaces, that a target can be limited to. */
const FILTERS_MAX = 50
/** Characters of an address, a token or a key of a target. */
const SECRET_LENGTH_MAX = 2_048
const NAME_LENGTH_MAX = 32

const TargetId = Id('Id of the target.')
const OfGroup = Type.Optional(described(GroupId, 'Group of the target. Absent, with `game_id` absent: the platform.'))
const OfGame = Type.Optional(described(GameId, 'Game of the target.'))
const Kind = Type.Enum([...NOTICE_KINDS], {
  description:
    'Where notices go. `discord`, `slack`: the webhook of a channel. `telegram`: a chat, by a bot. `ntfy`: a topic. `email`: mailboxes. `webhook`: a program of your own, which gets signed JSON.',
})
const Event = Type.Enum([...NOTICE_EVENT_NAMES], {
  description: Object.entries(NOTICE_EVENTS)
    .map(([name, text]) => `\`${name}\`: ${text}`)
    .join(' '),
})
const TargetName = Type.String({
  pattern: `^[a-z0-9]+(-[a-z0-9]+)*$`,
  minLength: 1,
  maxLength: NAME_LENGTH_MAX,
  description: 'Name of the target, unique in its group, game or platform. Example: `team-chat`.',
})
const Secret = (description: string) =>
  Type.String({ minLength: 1, maxLength: SECRET_LENGTH_MAX, pattern: '^[\\x21-\\x7e]+$', description })
const ChatId = Type.Optional(
  Type.String({
    maxLength: 64,
    pattern: '^(-?[0-9]{1,20}|@[A-Za-z0-9_]{1,32})$',
    description: 'Chat of a Telegram target: its number, or `@name` of a public channel. Example: `-1001234567890`.',
  }),
)
const Addresses = Type.Optional(
  Type.Array(Type.String({ minLength: 3, maxLength: 254, pattern: '^[^\\s@<>,;]+@[^\\s@<>,;]+$' }), {
    minItems: 1,
    maxItems: ADDRESSES_MAX,
    description:
      'Addresses of an e-mail target. For a group or a game, they are addresses of members of the group; an administrator may set any.',
  }),
)
const settings = {
  events: Type.Array(Event, {
    minItems: 1,
    maxItems: NOTICE_EVENT_NAMES.length,
    description: 'Events that the target gets.',
  }),
  game_ids: Type.Optional(
    Type.Array(GameId, {
      maxItems: FILTERS_MAX,
      description: 'Only notices about these games, and about no game. Absent: all.',
    }),
  ),
  namespace_ids: Type.Optional(
    Type.Array(NamespaceId, {
      maxItems: FILTERS_MAX,
      description: 'Only notices about these namespaces, and about no namespace. Absent: all.',
    }),
  ),
  chat_id: ChatId,
  addresses: Addresses,
}

export const NoticeTarget = object(
  {
    target_id: TargetId,
    group_id: OfGroup,
    game_id: OfGame,
    name: TargetName,
    kind: Kind,
    hint: Type.Optional(
      Type.String({
        description:
          'Host of the address and its last characters. No operation returns the rest. Example: `discord.com …9fQx`.',
      }),
    ),
    ...settings,
    is_paused: Type.Boolean({ description: 'Whether the target gets nothing now. Its notices wait.' }),
    pause_reason: Type.Optional(
      Type.String({ description: 'Why the platform paused it. Absent when a person did, and when it is not paused.' }),
    ),
    waiting_count: Type.Integer({ minimum: 0, description: 'Notices that wait to be delivered.' }),
    dropped_count: Type.Integer({
      minimum: 0,
      description: 'Notices that were dropped because too many waited.',
    }),
    create_ts: Timestamp('When the target was made.'),
    delivery_ts: Type.Optional(Timestamp('When it last took a notice. Absent: never.')),
  },
  'A place that notices go to, without its secrets.',
)
export type NoticeTarget = Static<typeof NoticeTarget>

export const NoticeDelivery = object(
  {
    notice_id: Id('Id of the notice. It is in each message, and the same when a notice is sent again.'),
    event: Type.Enum([...NOTICE_EVENT_NAMES, 'test'], { description: 'Event of the notice, or `test`.' }),
    title: Type.String({ description: 'Title of the notice. Example: `arena prod: 1.2.0 is live`.' }),
    state: Type.Enum(['waiting', 'delivered', 'failed'], {
      description:
        '`waiting`: not taken yet. `delivered`: the target took it. `failed`: the target refused it; `resend` tries again.',
    }),
    create_ts: Timestamp('When the notice was made.'),
    attempt_count: Type.Integer({ minimum: 0, description: 'How often it was sent.' }),
    last_ts: Type.Optional(Timestamp('When it was last sent. Absent: never.')),
    status: Type.Optional(
      Type.Integer({ minimum: 0, description: 'HTTP status of the last response. Absent when there was none.' }),
    ),
    response: Type.Optional(
      Type.String({ description: 'Beginning of the last response, or why there was none. Example: `no_service`.' }),
    ),
  },
  'A notice on its way to one target.',
)

const defaults = { service: 'api', auth: ['admin', 'user', 'cloud'], rate_limit: 'cloud' } as const
const path = '/cloud/notices/targets'

export const listNoticeTargets = operation({
  ...defaults,
  id: 'notices.listTargets',
  method: 'GET',
  path,
  summary:
    'Lists the targets of a group, of a game, or of the platform, by name. Those of the platform are for administrators.',
  role: 'viewer',
  query: object({ group_id: OfGroup, game_id: OfGame }),
  response: object({ targets: Type.Array(NoticeTarget, { description: 'The targets.' }) }),
  errors: ['GROUP_NOT_FOUND', 'GAME_NOT_FOUND', 'API_FORBIDDEN'],
})

export const putNoticeTarget = operation({
  ...defaults,
  id: 'notices.putTarget',
  method: 'PUT',
  path,
  summary:
    'Makes a target, or replaces the one with this name. Secrets that are left out stay as they were when the kind is the same.',
  role: 'developer',
  body: object({
    group_id: OfGroup,
    game_id: OfGame,
    name: TargetName,
    kind: Kind,
    url: Type.Optional(
      Secret(
        'Address of the webhook, for `discord`, `slack` and `webhook`; the server, for `ntfy` (default `https://ntfy.sh`) and `telegram` (default `https://api.telegram.org`). It is stored encrypted.',
      ),
    ),
    token: Type.Optional(Secret('Token of the bot, for `telegram`; access token, for `ntfy`. It is stored encrypted.')),
    topic: Type.Optional(
      Type.String({
        maxLength: 64,
        pattern: '^[A-Za-z0-9_-]+$',
        description: 'Topic of a ntfy target. Choose one that nobody can guess: it is stored encrypted.',
      }),
    ),
    ...settings,
    is_paused: Type.Optional(
      Type.Boolean({ description: 'Whether the target gets nothing for now. Default: false, which ends a pause.' }),
    ),
    new_signing_key: Type.Optional(
      Type.Boolean({
        description: 'Whether a `webhook` gets another key to sign with. Default: only a new target does.',
      }),
    ),
  }),
  response: object({
    target_id: TargetId,
    signing_key: Type.Optional(
      Type.String({
        description: 'New key that the notices of a `webhook` are signed with. Keep it: no operation returns it again.',
      }),
    ),
  }),
  errors: ['GROUP_NOT_FOUND', 'GAME_NOT_FOUND', 'API_FORBIDDEN'],
})

const of_target = { params: object({ target_id: TargetId }), errors: ['NOTICE_TARGET_NOT_FOUND'] } as const

export const deleteNoticeTarget = operation({
  ...defaults,
  ...of_target,
  id: 'notices.deleteTarget',
  method: 'DELETE',
  path: `${path}/{target_id}`,
  summary: 'Deletes a target with its notices. Those that wait are not sent.',
  role: 'developer',
  response: Empty,
})

export const testNoticeTarget = operation({
  ...defaults,
  ...of_target,
  id: 'notices.testTarget',
  method: 'POST',
  path: `${path}/{target_id}/test`,
  summary: 'Sends a test notice now, also to a paused target, and returns what became of it. It is not tried again.',
  role: 'developer',
  response: object({ delivery: NoticeDelivery }),
})

export const listNoticeDeliveries = operation({
  ...defaults,
  ...of_target,
  id: 'notices.listDeliveries',
  method: 'GET',
  path: `${path}/{target_id}/deliveries`,
  summary: 'Lists the last notices of a target and what became of them, newest first.',
  role: 'viewer',
  query: object({
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: NOTICE_DELIVERIES_MAX,
        description: 'Notices of the response. Default: 50.',
      }),
    ),
  }),
  response: object({
    deliveries: Type.Array(NoticeDelivery, { description: 'Notices, newest first.' }),
    is_cut: IsCut('Older ones are kept for some days.'),
  }),
})

export const resendNotice = operation({
  ...defaults,
  params: object({ target_id: TargetId, notice_id: Id('Id of the notice.') }),
  id: 'notices.resend',
  method: 'POST',
  path: `${path}/{target_id}/deliveries/{notice_id}/resend`,
  summary: 'Sends a notice again, after those that wait. Its id stays the same.',
  role: 'developer',
  response: Empty,
  errors: ['NOTICE_TARGET_NOT_FOUND', 'NOTICE_NOT_FOUND'],
})
