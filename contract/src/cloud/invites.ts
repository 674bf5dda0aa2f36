// Invites: every user who has the code may join the group. A code is returned once, when it is created.
import Type from 'typebox'
import { GroupId } from '../ids.ts'
import { operation } from '../operation.ts'
import { object } from '../records.ts'
import { GroupHandle } from './groups.ts'

/** Lifetime of an invite. */
export const INVITE_TTL_MS_MAX = 365 * 24 * 60 * 60_000
/** Uses of an invite. */
export const INVITE_USE_COUNT_MAX = 256

const params = object({
  group_invite_code: Type.String({
    pattern: '^[A-NP-Z1-9]{12}$',
    description: 'Code of the invite: 12 letters and digits.',
  }),
})
const defaults = { service: 'api', auth: ['admin', 'user'], rate_limit: 'cloud' } as const

export const createGroupInvite = operation({
  ...defaults,
  id: 'groups.invites.createInvite',
  method: 'POST',
  path: '/group/groups/{group_id}/invites',
  summary: 'Creates an invite to the group.',
  role: 'owner',
  params: object({ group_id: GroupId }),
  body: object({
    ttl: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: INVITE_TTL_MS_MAX,
        description: 'How long the invite is valid, in milliseconds. Default: 365 days.',
      }),
    ),
    use_count: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: INVITE_USE_COUNT_MAX,
        description: 'How many users may join with the invite. Default 1.',
      }),
    ),
    role: Type.Optional(
      Type.Enum(['developer', 'viewer'], {
        description: 'Role of users who join with the invite. Default `developer`.',
      }),
    ),
  }),
  response: object({
    code: Type.String({ description: 'Code of the invite, 12 letters and digits. It is returned only once.' }),
  }),
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
  summary: 'Gets the group that an invite leads to.',
  params,
  response: object({ group: GroupHandle }),
  errors: INVITE_ERRORS,
})

export const consumeGroupInvite = operation({
  ...defaults,
  id: 'groups.invites.consumeInvite',
  method: 'POST',
  path: '/group/invites/{group_invite_code}/consume',
  summary: 'Joins the group that an invite leads to.',
  auth: ['user'],
  params,
  response: object({ group_id: GroupId }),
  errors: [...INVITE_ERRORS, 'GROUP_ALREADY_MEMBER', 'QUOTA_REACHED'],
})
