// How many players one client may have in a namespace: the least of the namespace's limit and of those of all classes that
// the client's address is in. A client is an IPv4 address or an IPv6 /64 (net/client-ip.ts); 0 lets nobody in.
import { ADDRESS_CLASSES, type AddressClass, type AddressFacts } from '../net/ip-intelligence.ts'

export type ClientLimits = { max_players_per_client: number } & Record<`max_players_per_client_${AddressClass}`, number>

/** `address_class`: the class whose limit it is; null: the one for everybody. */
export type ClientLimit = { players_max: number; address_class: AddressClass | null }

export function clientLimit(limits: ClientLimits, { classes }: Pick<AddressFacts, 'classes'>): ClientLimit {
  let limit: ClientLimit = { players_max: limits.max_players_per_client, address_class: null }
  if (classes.size === 0) return limit
  for (const address_class of ADDRESS_CLASSES) {
    const players_max = limits[`max_players_per_client_${address_class}`]
    if (classes.has(address_class) && players_max < limit.players_max) limit = { players_max, address_class }
  }
  return limit
}
