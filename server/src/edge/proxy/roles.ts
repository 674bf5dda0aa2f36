// What the edge keeps for each role: pools that limit its requests, and the queues in which they take turns.
import type { Context } from '../../context.ts'
import { ROLE_CONCURRENT_MAX } from '../limits.ts'
import type { SharedCounts } from '../shared-counts.ts'
import { ClientQueue } from './client-queue.ts'
import type { RoleResources } from './forwarded-request.ts'
import { type RolePoolLimits, RolePools, registerPoolMetrics } from './pools.ts'
import type { RoleName } from './router.ts'

export function createRoles(
  ctx: Context,
  limits: RolePoolLimits,
  shared: SharedCounts | null,
): Readonly<Record<RoleName, RoleResources>> {
  const role = (name: RoleName): RoleResources => ({
    pools: new RolePools(limits, (pool) => shared?.of(`${name} ${pool}`) ?? null),
    queues: {
      seat: new ClientQueue(ROLE_CONCURRENT_MAX.seat),
      call: new ClientQueue(ROLE_CONCURRENT_MAX.call),
      wait: new ClientQueue(ROLE_CONCURRENT_MAX.wait),
    },
  })
  const roles = { api: role('api'), matchmaker: role('matchmaker') }
  registerPoolMetrics(ctx.metrics, { api: roles.api.pools, matchmaker: roles.matchmaker.pools })
  return roles
}
