// What the edge keeps for each role: pools that limit its requests, and the queues in which they take turns.
import type { Context } from '../../context.ts'
import { ROLE_CONCURRENT_MAX } from '../limits.ts'
import { ClientQueue } from './client-queue.ts'
import type { RoleResources } from './forwarded-request.ts'
import { type RolePoolLimits, RolePools, registerPoolMetrics } from './pools.ts'
import type { RoleName } from './router.ts'

export function createRoles(ctx: Context, limits: RolePoolLimits): Readonly<Record<RoleName, RoleResources>> {
  const role = (): RoleResources => ({
    pools: new RolePools(limits),
    queues: {
      seat: new ClientQueue(ROLE_CONCURRENT_MAX.seat),
      call: new ClientQueue(ROLE_CONCURRENT_MAX.call),
      wait: new ClientQueue(ROLE_CONCURRENT_MAX.wait),
    },
  })
  const roles = { api: role(), matchmaker: role() }
  registerPoolMetrics(ctx.metrics, { api: roles.api.pools, matchmaker: roles.matchmaker.pools })
  return roles
}
