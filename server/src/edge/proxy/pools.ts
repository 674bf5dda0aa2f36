// Pools that limit the requests at one role. A request takes a slot in the pool of its class before it gets a connection to
// the role, and gives it back with the connection. When the client has its share, the request is refused with 429. When all
// slots are taken, the client that holds most loses one (addresses/client-share.ts). So no client and no class of requests
// can exhaust what the others need.
import { ApiError } from '@musterhost/contract'
import { ClientShare, type ClientSlot, type SharedShare } from '../../addresses/client-share.ts'
import type { Metrics } from '../../observe/metrics.ts'
import type { PoolLimits, ROLE_POOLS } from '../limits.ts'

export type PoolName = keyof typeof ROLE_POOLS
export type RolePoolLimits = Readonly<Record<PoolName, PoolLimits>>

const RETRY_AFTER_S = 1

/** How a refusal names a full pool. */
const POOL_LABELS: Record<PoolName | 'arriving', string> = {
  seat: 'requests for seats',
  call: 'requests',
  wait: 'requests that wait',
  upload: 'large bodies',
  live: 'WebSockets',
  parked: 'requests that wait',
  arriving: 'requests whose body has not arrived',
}

export class RolePools {
  readonly #shares: Readonly<Record<PoolName, ClientShare>>

  /** `sharedOf`: the same pool of other edge processes. */
  constructor(limits: RolePoolLimits, sharedOf: (name: PoolName) => SharedShare | null = () => null) {
    const share = (name: PoolName): ClientShare => new ClientShare(limits[name], sharedOf(name))
    this.#shares = {
      ...{ seat: share('seat'), call: share('call'), wait: share('wait') },
      ...{ upload: share('upload'), live: share('live'), parked: share('parked') },
    }
  }

  /**
   * Takes a slot for a request of the client. `displace` is called when the slot is given to another client, and must end
   * the request. Throws API_RATE_LIMIT or API_NOT_AVAILABLE, which name the full pool.
   */
  enter(name: PoolName, client_key: string, displace: () => void): ClientSlot {
    return slotIn(this.#shares[name], name, client_key, displace)
  }

  counts(): [PoolName, number][] {
    return (Object.keys(this.#shares) as PoolName[]).map((name) => [name, this.#shares[name].count])
  }
}

export function slotIn(
  share: ClientShare,
  name: keyof typeof POOL_LABELS,
  client_key: string,
  displace: () => void,
): ClientSlot {
  const slot = share.enter(client_key, displace)
  if (slot === 'client_full') {
    const message = `Too many ${POOL_LABELS[name]} of this client are under way.`
    throw new ApiError('API_RATE_LIMIT', { full: name }, { message, retry_after_s: RETRY_AFTER_S })
  }
  if (slot === 'full') throw poolFull(name)
  return slot
}

/** All slots are taken, or the slot of this request was given to another client. */
export function poolFull(name: keyof typeof POOL_LABELS): ApiError {
  const message = `Too many ${POOL_LABELS[name]} are under way.`
  return new ApiError('API_NOT_AVAILABLE', { full: name }, { message, retry_after_s: RETRY_AFTER_S })
}

/** Reports how many slots of each role's pools are taken. */
export function registerPoolMetrics(metrics: Metrics, roles: Readonly<Record<string, RolePools>>): void {
  const help = 'Requests that hold a place at a role, by pool.'
  metrics.gauge('edge_role_requests', help, ['role', 'pool'], (report) => {
    for (const [role, pools] of Object.entries(roles))
      for (const [name, count] of pools.counts()) report(count, role, name)
  })
}
