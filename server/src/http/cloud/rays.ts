import { getRayPerfLogs } from '@muster/contract'
import { rayPerf } from '../../cloud/rays.ts'
import { type Implementation, implement } from '../implement.ts'

export const rays: Implementation[] = [
  implement(getRayPerfLogs, ({ ctx, caller, params }) => rayPerf(ctx, caller, params.ray_id)),
]
