import {
  ApiError,
  consumeGroupInvite,
  createGroupInvite,
  getGroupInvite,
  getGroupMembers,
  kickGroupMember,
  leaveGroup,
  setGroupMemberRole,
  transferGroupOwnership,
} from '@muster/contract'
import type { Caller, CallerOf } from '../../caller.ts'
import * as invites from '../../cloud/groups/invites.ts'
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
  implement(leaveGroup, async ({ ctx, caller, params }) => {
    await cloud.leaveGroup(ctx, requireUser(caller), params.group_id)
    return {}
  }),
  implement(transferGroupOwnership, async ({ ctx, caller, params, body }) => {
    await cloud.transferOwnership(ctx, caller, params.group_id, body.new_owner_identity_id)
    return {}
  }),
  implement(createGroupInvite, ({ ctx, caller, params, body }) =>
    invites.createInvite(ctx, caller, params.group_id, body),
  ),
  implement(getGroupInvite, async ({ ctx, params }) => ({
    group: await invites.findInvite(ctx, params.group_invite_code),
  })),
  implement(consumeGroupInvite, ({ ctx, caller, params }) =>
    invites.consumeInvite(ctx, requireUser(caller), params.group_invite_code),
  ),
]

/** The contract lets nobody else through; the types do not know it. */
function requireUser(caller: Caller): CallerOf<'user'> {
  if (caller.kind !== 'user') throw new ApiError('API_FORBIDDEN')
  return caller
}
