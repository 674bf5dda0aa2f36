// What the edge keeps for each role: the pools of places for requests, and the channel over which the role announces the
// responses to parked requests.
import { randomUUID } from 'node:crypto'
import type { Context } from '../../context.ts'
import { edgeProof } from '../../tokens/edge-proof.ts'
import type { RoleUpstream } from '../http/exchange.ts'
import { ROLE_TURNS } from '../limits.ts'
import { Turns } from './client-queue.ts'
import type { Forward } from './forward.ts'
import { ParkingChannel } from './parking.ts'
import { type RolePoolLimits, RolePools, tellPools } from './pools.ts'
import { type RoleName, roleAddresses } from './router.ts'

export type Roles = { by_name: Readonly<Record<RoleName, RoleUpstream>>; close: () => void }

export function createRoles(ctx: Context, forward: Forward, limits: RolePoolLimits): Roles {
  const addresses = roleAddresses(ctx.config)
  const proof = edgeProof(ctx.keys)
  const edge_id = randomUUID()
  const role = (name: RoleName): RoleUpstream => ({
    pools: new RolePools(limits),
    turns: {
      seat: new Turns(ROLE_TURNS.seat),
      call: new Turns(ROLE_TURNS.call),
      wait: new Turns(ROLE_TURNS.wait),
    },
    channel: new ParkingChannel({
      ...{ address: addresses[name], proof, edge_id },
      onDone: (exchange) => forward.claim(exchange),
      onLost: (exchange) => forward.lose(exchange),
    }),
  })
  const by_name = { api: role('api'), matchmaker: role('matchmaker') }
  tellPools(ctx.metrics, { api: by_name.api.pools, matchmaker: by_name.matchmaker.pools })
  return {
    by_name,
    close() {
      for (const { channel } of Object.values(by_name)) channel.close()
    },
  }
}
