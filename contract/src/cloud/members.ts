// Members of groups: users, each with a role. Only the owner changes roles and removes members.
import Type from 'typebox'
import { GroupId, Id, IdentityId } from '../ids.ts'
import { operation } from '../operation.ts'
import { Empty, object, Timestamp, Watch, WatchIndex } from '../records.ts'
import { Role } from './groups.ts'

/** Members of a group. */
export const GROUP_MEMBERS_MAX = 256

export const Member = object(
  {
    identity: object(
      {
        identity_id: IdentityId,
        display_name: Type.String({ description: 'Name for people.' }),
        email: Type.Optional(
          Type.String({ description: 'E-mail address. Absent for a user who logs in by access token.' }),
        ),
      },
      'The user.',
    ),
    role: Role,
    join_ts: Timestamp('When the person joined the group.'),
  },
  'A member of a group.',
)

const group = object({ group_id: GroupId })
const member = object({ group_id: GroupId, identity_id: IdentityId })
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
  response: object({
    members: Type.Array(Member, { description: 'The members, in the order in which they joined; at most 256.' }),
    watch: Watch,
  }),
  errors: ['GROUP_NOT_FOUND'],
})

export const setGroupMemberRole = operation({
  ...defaults,
  id: 'groups.setMemberRole',
  method: 'PUT',
  path: '/group/groups/{group_id}/members/{identity_id}/role',
  summary: 'Changes the role of a member. To change the owner, transfer the group.',
  role: 'owner',
  params: member,
  body: object({ role: Type.Enum(['developer', 'viewer'], { description: 'New role of the member.' }) }),
  response: Empty,
  errors: ['GROUP_NOT_FOUND', 'GROUP_NOT_MEMBER', 'GROUP_OWNER_REQUIRED'],
})

export const kickGroupMember = operation({
  ...defaults,
  id: 'groups.kickMember',
  method: 'POST',
  path: '/group/groups/{group_id}/kick/{identity_id}',
  summary: 'Removes a member. All invites of the group are revoked too, because the member may know their codes.',
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
  summary: 'Leaves a group. The owner must transfer the group first.',
  auth: ['user'],
  role: 'viewer',
  params: group,
  response: Empty,
  errors: ['GROUP_NOT_FOUND', 'GROUP_OWNER_REQUIRED'],
})

export const transferGroupOwnership = operation({
  ...defaults,
  id: 'groups.transferOwnership',
  confirm: true,
  method: 'POST',
  path: '/group/groups/{group_id}/transfer-owner',
  summary: 'Makes a member the owner. The previous owner becomes a developer.',
  role: 'owner',
  params: group,
  body: object({ new_owner_identity_id: Id('Id of the member who becomes the owner.') }),
  response: Empty,
  errors: ['GROUP_NOT_FOUND', 'GROUP_NOT_MEMBER'],
})
