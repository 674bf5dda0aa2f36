// Invites: whoever has the code may join the group. A code is shown once, when it is created.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Id, object } from '../records.ts'
import { GroupHandle } from './groups.ts'

export const INVITE_TTL_MS_MAX = 365 * 24 * 60 * 60_000
export const INVITE_USE_COUNT_MAX = 256

const params = object({
  group_invite_code: Type.String({ pattern: '^[A-NP-Z1-9]{12}$', description: 'As it was created.' }),
})
const defaults = { service: 'api', auth: ['admin', 'user'], rate_limit: 'cloud' } as const

export const createGroupInvite = operation({
  ...defaults,
  id: 'groups.invites.createInvite',
  method: 'POST',
  path: '/group/groups/{group_id}/invites',
  summary: 'Creates an invite to the group.',
  role: 'owner',
  params: object({ group_id: Id }),
  body: object({
    ttl: Type.Optional(
      Type.Integer({ minimum: 1, maximum: INVITE_TTL_MS_MAX, description: 'Milliseconds; without it, for a year.' }),
    ),
    use_count: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: INVITE_USE_COUNT_MAX,
        description: 'How many may join with it; 1 unless said.',
      }),
    ),
    role: Type.Optional(
      Type.Enum(['developer', 'viewer'], { description: 'What they may do then; developer unless said.' }),
    ),
  }),
  response: object({ code: Type.String() }),
  errors: ['GROUP_NOT_FOUND'],
})

const INVITE_ERRORS = [
  'GROUP_INVITE_CODE_INVALID',
  'GROUP_INVITE_CODE_EXPIRED',
  'GROUP_INVITE_CODE_REVOKED',
  'GROUP_INVITE_CODE_ALREADY_USED',
] as const

export const getGroupInvite = operation({
  ...defaults,
  id: 'groups.invites.getInvite',
  method: 'GET',
  path: '/group/invites/{group_invite_code}',
  summary: 'Gets the group that an invite is to.',
  params,
  response: object({ group: GroupHandle }),
  errors: INVITE_ERRORS,
})

export const consumeGroupInvite = operation({
  ...defaults,
  id: 'groups.invites.consumeInvite',
  method: 'POST',
  path: '/group/invites/{group_invite_code}/consume',
  summary: 'Joins the group that an invite is to.',
  auth: ['user'],
  params,
  response: object({ group_id: Id }),
  errors: [...INVITE_ERRORS, 'GROUP_ALREADY_MEMBER', 'QUOTA_REACHED'],
})
