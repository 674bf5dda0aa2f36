import {
  deleteNoticeTarget,
  listNoticeDeliveries,
  listNoticeTargets,
  putNoticeTarget,
  resendNotice,
  testNoticeTarget,
} from '@musterhost/contract'
import * as deliveries from '../../cloud/notices/deliveries.ts'
import * as targets from '../../cloud/notices/targets.ts'
import { implement } from '../implement.ts'

export const notices = [
  implement(listNoticeTargets, ({ ctx, caller, query }) => targets.listTargets(ctx, caller, query)),
  implement(putNoticeTarget, ({ ctx, caller, body }) => targets.putTarget(ctx, caller, body)),
  implement(deleteNoticeTarget, ({ ctx, caller, params }) => targets.deleteTarget(ctx, caller, params.target_id)),
  implement(testNoticeTarget, ({ ctx, caller, params }) => deliveries.testTarget(ctx, caller, params.target_id)),
  implement(listNoticeDeliveries, ({ ctx, caller, params, query }) =>
    deliveries.listDeliveries(ctx, caller, params.target_id, query),
  ),
  implement(resendNotice, ({ ctx, caller, params }) => deliveries.resend(ctx, caller, params)),
]
