// Members of groups: people who have logged in, each with a role. Only the owner changes who they are.
import Type from 'typebox'
import { operation } from '../operation.ts'
import { Empty, Id, object, Timestamp, Watch, WatchIndex } from '../records.ts'
import { Role } from './groups.ts'

export const GROUP_MEMBERS_MAX = 256

export const Member = object(
  {
    identity: object({
      identity_id: Id,
      display_name: Type.String(),
      email: Type.Optional(Type.String({ description: 'Absent for who logs in by access token.' })),
    }),
    role: Role,
    join_ts: Timestamp,
  },
  'A person in a group.',
)

const group = object({ group_id: Id })
const member = object({ group_id: Id, identity_id: Id })
const defaults = { service: 'api', auth: ['admin', 'user'], rate_limit: 'cloud' } as const

export const getGroupMembers = operation({
  ...defaults,
  id: 'groups.getMembers',
  method: 'GET',
  path: '/group/groups/{group_id}/members',
  summary: 'Lists the members of a group, in the order in which they joined.',
  role: 'viewer',
  params: group,
  query: object({ watch_index: WatchIndex }),
  response: object({ members: Type.Array(Member), watch: Watch }),
  errors: ['GROUP_NOT_FOUND'],
})

export const setGroupMemberRole = operation({
  ...defaults,
  id: 'groups.setMemberRole',
  method: 'PUT',
  path: '/group/groups/{group_id}/members/{identity_id}/role',
  summary: 'Changes what a member may do. Who owns the group is changed by transferring it.',
  role: 'owner',
  params: member,
  body: object({ role: Type.Enum(['developer', 'viewer']) }),
  response: Empty,
  errors: ['GROUP_NOT_FOUND', 'GROUP_NOT_MEMBER', 'GROUP_OWNER_REQUIRED'],
})

export const kickGroupMember = operation({
  ...defaults,
  id: 'groups.kickMember',
  method: 'POST',
  path: '/group/groups/{group_id}/kick/{identity_id}',
  summary: "Removes a member. The group's invites are revoked with it: he may know them.",
  role: 'owner',
  params: member,
  response: Empty,
  errors: ['GROUP_NOT_FOUND', 'GROUP_NOT_MEMBER', 'GROUP_OWNER_REQUIRED'],
})

export const leaveGroup = operation({
  ...defaults,
  id: 'groups.leave',
  method: 'POST',
  path: '/group/groups/{group_id}/leave',
  summary: 'Leaves a group. Its owner transfers it first.',
  auth: ['user'],
  role: 'viewer',
  params: group,
  response: Empty,
  errors: ['GROUP_NOT_FOUND', 'GROUP_OWNER_REQUIRED'],
})

export const transferGroupOwnership = operation({
  ...defaults,
  id: 'groups.transferOwnership',
  method: 'POST',
  path: '/group/groups/{group_id}/transfer-owner',
  summary: 'Makes a member the owner; who was it becomes a developer.',
  role: 'owner',
  params: group,
  body: object({ new_owner_identity_id: Id }),
  response: Empty,
  errors: ['GROUP_NOT_FOUND', 'GROUP_NOT_MEMBER'],
})
