import { consumeGroupInvite, createGroupInvite, getGroupInvite } from '@musterhost/contract'
import * as cloud from '../../cloud/groups/invites.ts'
import { implement } from '../implement.ts'

export const invites = [
  implement(createGroupInvite, ({ ctx, caller, params, body }) =>
    cloud.createInvite(ctx, caller, params.group_id, body),
  ),
  implement(getGroupInvite, async ({ ctx, params }) => ({
    group: await cloud.findInvite(ctx, params.group_invite_code),
  })),
  implement(consumeGroupInvite, {
    user: ({ ctx, caller, params }) => cloud.consumeInvite(ctx, caller, params.group_invite_code),
  }),
]
