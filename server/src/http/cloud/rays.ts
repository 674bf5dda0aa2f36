import { getRayPerfLogs, listGameRays } from '@musterhost/contract'
import { listRays } from '../../cloud/rays/ray-list.ts'
import { rayPerf } from '../../cloud/rays/rays.ts'
import { type Implementation, implement } from '../implement.ts'

export const rays: Implementation[] = [
  implement(getRayPerfLogs, ({ ctx, caller, params }) => rayPerf(ctx, caller, params.ray_id)),
  implement(listGameRays, ({ ctx, caller, params, query }) => listRays(ctx, caller, params.game_id, query)),
]
