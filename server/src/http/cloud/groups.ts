import {
  createGroup,
  getGroupQuotas,
  getGroupSummary,
  listGroups,
  updateGroupProfile,
  validateGroup,
  validateGroupProfile,
} from '@musterhost/contract'
import * as cloud from '../../cloud/groups/groups.ts'
import { type Implementation, implement } from '../implement.ts'
import type { WatchedRecords } from '../watched-records.ts'

export const groups = (records: WatchedRecords): Implementation[] => [
  implement(createGroup, ({ ctx, caller, body }) => cloud.createGroup(ctx, caller, body)),
  implement(listGroups, (request) => records.respond(request, () => cloud.listGroups(request.ctx, request.caller))),
  implement(getGroupSummary, async ({ ctx, caller, params }) => ({
    group: await cloud.findGroup(ctx, caller, params.group_id),
  })),
  implement(validateGroup, ({ body }) => ({ errors: cloud.checkGroup(body) })),
  implement(updateGroupProfile, ({ ctx, caller, params, body }) =>
    cloud.renameGroup(ctx, caller, params.group_id, body.display_name),
  ),
  implement(getGroupQuotas, ({ ctx, caller, params }) => cloud.findQuotas(ctx, caller, params.group_id)),
  implement(validateGroupProfile, ({ body }) => ({ errors: cloud.checkGroup(body) })),
]
