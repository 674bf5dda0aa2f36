// What the operations of a role share: limits, who is trusted, and what follows callers.
import type { RateLimit } from '@musterhost/contract'
import type { TrustedProxies } from '../addresses/client-ip.ts'
import type { ClientShare } from '../addresses/client-share.ts'
import type { OwnAddresses } from '../addresses/own-addresses.ts'
import type { RateLimiter } from '../addresses/rate-limit.ts'
import type { Refusals } from '../audit/refusals.ts'
import type { Context } from '../context.ts'
import type { OriginLookup } from './auth.ts'
import type { CallerWatch } from './caller-watch.ts'
import type { PeerPort } from './peer-port.ts'
import type { RayIds } from './ray.ts'

/** By kind of long poll. */
export type WatchShares = ReadonlyMap<string, ClientShare>

export type MountOptions = {
  ctx: Context
  trusted: TrustedProxies
  own_addresses: OwnAddresses
  edge_proof: string
  rayIdOf: RayIds
  peers: PeerPort
  /** Refusals for the audit log. */
  refusals: Refusals
  /** Slots for requests that did not come through the edge. */
  direct: ClientShare
  limiters: Record<Exclude<RateLimit, 'none'>, RateLimiter>
  namespaceOfOrigin: OriginLookup
  /** Limits of long polls, and notifications when the rights of their callers change. */
  watches: WatchShares
  callers: CallerWatch
}
