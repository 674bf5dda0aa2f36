import {
  createStatusIncident,
  deleteStatusIncident,
  getStatusPage,
  listStatusIncidents,
  putStatusPage,
  updateStatusIncident,
} from '@musterhost/contract'
import * as incidents from '../../cloud/status/incidents.ts'
import * as pages from '../../cloud/status/pages.ts'
import { implement } from '../implement.ts'

export const statusPages = [
  implement(getStatusPage, ({ ctx, caller, params }) => pages.getPage(ctx, caller, params.game_id)),
  implement(putStatusPage, ({ ctx, caller, params, body }) => pages.putPage(ctx, caller, params.game_id, body)),
  implement(listStatusIncidents, ({ ctx, caller, params }) => incidents.listIncidents(ctx, caller, params.game_id)),
  implement(createStatusIncident, ({ ctx, caller, params, body }) =>
    incidents.createIncident(ctx, caller, params.game_id, body),
  ),
  implement(updateStatusIncident, ({ ctx, caller, params, body }) =>
    incidents.updateIncident(ctx, caller, params, body),
  ),
  implement(deleteStatusIncident, ({ ctx, caller, params }) => incidents.deleteIncident(ctx, caller, params)),
]
