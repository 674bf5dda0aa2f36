import { exportAuditEvents, exportGroupAuditEvents, listAuditEvents, listGroupAuditEvents } from '@musterhost/contract'
import * as cloud from '../../cloud/audit/events.ts'
import { implement } from '../implement.ts'

export const audit = [
  implement(listGroupAuditEvents, ({ ctx, caller, params, query }) =>
    cloud.listGroupEvents(ctx, caller, params.group_id, query),
  ),
  implement(exportGroupAuditEvents, ({ ctx, caller, params, body }) =>
    cloud.exportGroupEvents(ctx, caller, { ...params, ...body }),
  ),
  implement(listAuditEvents, ({ ctx, query: { group_id = null, ...filters } }) =>
    cloud.listEvents(ctx, group_id, filters),
  ),
  implement(exportAuditEvents, ({ ctx, body: { group_id = null, ...window } }) =>
    cloud.exportEvents(ctx, { group_id, ...window }),
  ),
]
