import { createGroup, getGroupSummary, listGroups, validateGroup } from '@muster/contract'
import * as cloud from '../../cloud/groups.ts'
import { implement } from '../implement.ts'

export const groups = [
  implement(createGroup, ({ ctx, body }) => cloud.createGroup(ctx, body)),
  implement(listGroups, ({ ctx }) => cloud.listGroups(ctx)),
  implement(getGroupSummary, async ({ ctx, params }) => ({ group: await cloud.findGroup(ctx, params.group_id) })),
  implement(validateGroup, ({ body }) => ({ errors: cloud.checkGroup(body) })),
]
