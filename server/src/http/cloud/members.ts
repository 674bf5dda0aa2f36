import {
  getGroupMembers,
  kickGroupMember,
  leaveGroup,
  setGroupMemberRole,
  transferGroupOwnership,
} from '@musterhost/contract'
import * as cloud from '../../cloud/groups/members.ts'
import { type Implementation, implement } from '../implement.ts'
import type { WatchedRecords } from '../watched-records.ts'

export const members = (records: WatchedRecords): Implementation[] => [
  implement(getGroupMembers, (request) =>
    records.respond(request, () => cloud.listMembers(request.ctx, request.caller, request.params.group_id)),
  ),
  implement(setGroupMemberRole, ({ ctx, caller, params, body }) =>
    cloud.setMemberRole(ctx, caller, params.group_id, params.identity_id, body.role),
  ),
  implement(kickGroupMember, ({ ctx, caller, params }) =>
    cloud.kickMember(ctx, caller, params.group_id, params.identity_id),
  ),
  implement(leaveGroup, {
    user: ({ ctx, caller, params }) => cloud.leaveGroup(ctx, caller, params.group_id),
  }),
  implement(transferGroupOwnership, ({ ctx, caller, params, body }) =>
    cloud.transferOwnership(ctx, caller, params.group_id, body.new_owner_identity_id),
  ),
]
