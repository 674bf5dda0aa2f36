// The edge's part of a ray. A request that the edge itself responds to has a ray of its own. The part of a request to api or
// matchmaker is kept where the role keeps its own (observe/forwarded-ray.ts). A request to a lobby, for a status page or for a ping, has none.
import type { Context } from '../../context.ts'
import { newRayId } from '../../ids.ts'
import { phase } from '../../observe/ray.ts'
import type { Exchange } from '../http/exchange.ts'
import type { RouteTarget } from './router.ts'

/** Called once the request's target is known. */
export function openRay(ctx: Context, exchange: Exchange, target: RouteTarget): void {
  const is_forwarded = target.kind === 'backend'
  if (target.kind === 'ping' || target.kind === 'status' || (is_forwarded && target.lobby !== null)) return
  exchange.ray_id = newRayId()
  exchange.ray = ctx.recorder.open('edge', exchange.ray_id, exchange.came_at)
  if (exchange.ray !== null) exchange.ray.operation = is_forwarded ? 'forward' : target.kind
  phase(exchange.ray, is_forwarded ? 'forward' : 'answer')
}
