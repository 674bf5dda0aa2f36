import { createNodeInvitation, listNodeInvitations, revokeNodeInvitation } from '@musterhost/contract'
import * as invitations from '../../cloud/admin/node-invitations.ts'
import { implement } from '../implement.ts'

export const nodeInvitations = [
  implement(createNodeInvitation, ({ ctx, body }) => invitations.createInvitation(ctx, body)),
  implement(listNodeInvitations, ({ ctx }) => invitations.listInvitations(ctx)),
  implement(revokeNodeInvitation, ({ ctx, params }) => invitations.revokeInvitation(ctx, params.invitation_id)),
]
