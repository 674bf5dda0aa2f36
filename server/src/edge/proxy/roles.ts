// What the edge keeps for each role: pools that limit its requests, and the channel over which the role announces responses
// to parked requests.
import { randomUUID } from 'node:crypto'
import type { Context } from '../../context.ts'
import { edgeProof } from '../../tokens/edge-proof.ts'
import { ROLE_CONCURRENT_MAX } from '../limits.ts'
import { ClientQueue } from './client-queue.ts'
import type { Forwarder } from './forward.ts'
import type { RoleResources } from './forwarded-request.ts'
import { ParkingChannel } from './parking.ts'
import { type RolePoolLimits, RolePools, registerPoolMetrics } from './pools.ts'
import { type RoleName, roleAddresses } from './router.ts'

export type Roles = { by_name: Readonly<Record<RoleName, RoleResources>>; close: () => void }

export function createRoles(ctx: Context, forwarder: Forwarder, limits: RolePoolLimits): Roles {
  const addresses = roleAddresses(ctx.config)
  const proof = edgeProof(ctx.keys)
  const edge_id = randomUUID()
  const role = (name: RoleName): RoleResources => ({
    pools: new RolePools(limits),
    queues: {
      seat: new ClientQueue(ROLE_CONCURRENT_MAX.seat),
      call: new ClientQueue(ROLE_CONCURRENT_MAX.call),
      wait: new ClientQueue(ROLE_CONCURRENT_MAX.wait),
    },
    channel: new ParkingChannel({
      ...{ address: addresses[name], proof, edge_id },
      onDone: (request) => forwarder.claim(request),
      onLost: (request) => forwarder.lose(request),
    }),
  })
  const by_name = { api: role('api'), matchmaker: role('matchmaker') }
  registerPoolMetrics(ctx.metrics, { api: by_name.api.pools, matchmaker: by_name.matchmaker.pools })
  return {
    by_name,
    close() {
      for (const { channel } of Object.values(by_name)) channel.close()
    },
  }
}
