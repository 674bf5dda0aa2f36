// The edge's part of a ray. What it answers itself is a ray of its own; what it forwards to api or matchmaker has its
// part kept where they keep theirs (observe/forwarded-ray.ts). What goes to a lobby has none: the answers are the game's.
import type { Context } from '../../context.ts'
import { newRayId } from '../../ids.ts'
import { phase } from '../../observe/ray.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Place } from './router.ts'

/** It is known where the request goes. */
export function openRay(ctx: Context, exchange: Exchange, place: Place): void {
  const is_forwarded = place.kind === 'upstream'
  if (is_forwarded && place.lobby !== null) return
  exchange.ray_id = newRayId()
  exchange.ray = ctx.recorder.open('edge', exchange.ray_id, exchange.came_at)
  if (exchange.ray !== null) exchange.ray.operation = is_forwarded ? 'forward' : place.kind
  phase(exchange.ray, is_forwarded ? 'forward' : 'answer')
}
