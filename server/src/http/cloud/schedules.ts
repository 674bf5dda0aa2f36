import { deleteSchedule, listScheduleRuns, listSchedules, putSchedule, runSchedule } from '@musterhost/contract'
import * as calls from '../../cloud/schedules/schedules.ts'
import { implement } from '../implement.ts'

export const schedules = [
  implement(listSchedules, ({ ctx, caller, params, query }) =>
    calls.listSchedules(ctx, caller, params.game_id, query.namespace_id),
  ),
  implement(putSchedule, ({ ctx, caller, params, body }) => calls.putSchedule(ctx, caller, params.game_id, body)),
  implement(deleteSchedule, ({ ctx, caller, params }) => calls.deleteSchedule(ctx, caller, params)),
  implement(runSchedule, ({ ctx, caller, params }) => calls.runSchedule(ctx, caller, params)),
  implement(listScheduleRuns, ({ ctx, caller, params }) => calls.listRuns(ctx, caller, params)),
]
