// What the edge keeps for each role: pools that limit its requests, and the channels over which its processes announce
// responses to parked requests.
import { randomUUID } from 'node:crypto'
import type { Context } from '../../context.ts'
import { edgeProof } from '../../tokens/edge-proof.ts'
import { ROLE_CONCURRENT_MAX } from '../limits.ts'
import type { Address } from '../routes/routes.ts'
import { ClientQueue } from './client-queue.ts'
import type { Forwarder } from './forward.ts'
import type { ForwardedRequest, RoleResources } from './forwarded-request.ts'
import type { Matchmakers } from './matchmakers.ts'
import { ParkingChannel } from './parking.ts'
import { type RolePoolLimits, RolePools, registerPoolMetrics } from './pools.ts'
import { type RoleName, roleAddresses } from './router.ts'

/** Channels that are kept. Beyond it those of processes that are gone are closed. */
const CHANNELS_MAX = 66

export type Roles = { by_name: Readonly<Record<RoleName, RoleResources>>; close: () => void }

export function createRoles(
  ctx: Context,
  forwarder: Forwarder,
  { limits, matchmakers }: { limits: RolePoolLimits; matchmakers: Matchmakers },
): Roles {
  const proof = edgeProof(ctx.keys)
  const edge_id = randomUUID()
  /** By keyOf() their address. A process replaces the channel of an edge by a later one, so there is one to each address. */
  const channels = new Map<string, ParkingChannel<ForwardedRequest>>()
  /** Closes the channels to matchmakers that are gone: their requests are lost with their processes. */
  const closeOld = (current: readonly Address[]): void => {
    const keys = new Set(current.map(keyOf))
    for (const [key, channel] of channels) {
      if (keys.has(key)) continue
      channel.close()
      channels.delete(key)
    }
  }
  const channelAt = (address: Address): ParkingChannel<ForwardedRequest> => {
    const key = keyOf(address)
    const known = channels.get(key)
    if (known !== undefined) return known
    if (channels.size >= CHANNELS_MAX) closeOld([address, api_address, ...matchmakers.addresses()])
    const channel = new ParkingChannel<ForwardedRequest>({
      ...{ address, proof, edge_id },
      onDone: (request) => forwarder.claim(request),
      onLost: (request) => forwarder.lose(request),
    })
    channels.set(key, channel)
    return channel
  }
  const api_address = roleAddresses(ctx.config).api
  const role = (): RoleResources => ({
    pools: new RolePools(limits),
    queues: {
      seat: new ClientQueue(ROLE_CONCURRENT_MAX.seat),
      call: new ClientQueue(ROLE_CONCURRENT_MAX.call),
      wait: new ClientQueue(ROLE_CONCURRENT_MAX.wait),
    },
    channelAt,
  })
  matchmakers.onUnreachable = (address) => {
    channels.get(keyOf(address))?.drop()
    forwarder.drop(address)
  }
  const by_name = { api: role(), matchmaker: role() }
  registerPoolMetrics(ctx.metrics, { api: by_name.api.pools, matchmaker: by_name.matchmaker.pools })
  return {
    by_name,
    close() {
      for (const channel of channels.values()) channel.close()
    },
  }
}

function keyOf({ hostname, port, path }: Address): string {
  return path ?? `${hostname}:${port}`
}
