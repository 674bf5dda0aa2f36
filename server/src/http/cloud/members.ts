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
  implement(setGroupMemberRole, async ({ ctx, caller, params, body }) => {
    await cloud.setMemberRole(ctx, caller, params.group_id, params.identity_id, body.role)
    return {}
  }),
  implement(kickGroupMember, async ({ ctx, caller, params }) => {
    await cloud.kickMember(ctx, caller, params.group_id, params.identity_id)
    return {}
  }),
  implement(leaveGroup, {
    user: async ({ ctx, caller, params }) => {
      await cloud.leaveGroup(ctx, caller, params.group_id)
      return {}
    },
  }),
  implement(transferGroupOwnership, async ({ ctx, caller, params, body }) => {
    await cloud.transferOwnership(ctx, caller, params.group_id, body.new_owner_identity_id)
    return {}
  }),
]
