// How many players one client may have in a namespace: the least of the namespace's limit and of those of all classes that
// the client's address is in. A client is an IPv4 address or an IPv6 /64 (addresses/client-ip.ts); 0 lets nobody in.
import { ADDRESS_CLASSES, type AddressClass, type AddressFacts } from '../../addresses/ip-intelligence.ts'

type LimitName = 'max_players_per_client' | `max_players_per_client_${AddressClass}`
export type ClientLimits = Record<LimitName, number>
/** The limit that decides, and its number. */
export type ClientLimit = { limit: LimitName; players_max: number }

export function clientLimit(limits: ClientLimits, { classes }: Pick<AddressFacts, 'classes'>): ClientLimit {
  let strictest: ClientLimit = { limit: 'max_players_per_client', players_max: limits.max_players_per_client }
  if (classes.size === 0) return strictest
  for (const address_class of ADDRESS_CLASSES) {
    const limit = `max_players_per_client_${address_class}` as const
    if (classes.has(address_class) && limits[limit] < strictest.players_max) {
      strictest = { limit, players_max: limits[limit] }
    }
  }
  return strictest
}
