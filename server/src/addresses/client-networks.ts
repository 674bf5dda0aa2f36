// The networks that limits count a client by. An IPv4 address is one network. For IPv6 the network of one subscriber is a
// /64, but a subscriber can be given a /56 or a /48, which hold 256 and 65,536 of them: those are counted too, with larger
// limits.
import ipaddr from 'ipaddr.js'

export type ClientNetwork = {
  key: string
  /** How many times the limit of one client the network has. */
  factor: (typeof NETWORK_FACTORS)[number]
}

const FACTOR_56 = 4
const FACTOR_48 = 16
export const NETWORK_FACTORS = [1, FACTOR_56, FACTOR_48] as const
/** How clientKey() ends the key of an IPv6 client. */
const SUFFIX_64 = '/64'

/** From the smallest to the largest. `client_key` is what clientKey() returns; any other text is a network of its own. */
export function clientNetworks(client_key: string): ClientNetwork[] {
  const own: ClientNetwork = { key: client_key, factor: 1 }
  const text = client_key.endsWith(SUFFIX_64) ? client_key.slice(0, -SUFFIX_64.length) : ''
  if (!ipaddr.IPv6.isValid(text)) return [own]
  const [first = 0, second = 0, third = 0, fourth = 0] = ipaddr.IPv6.parse(text).parts
  const site = [first, second, third].map((part) => part.toString(16)).join(':')
  return [
    own,
    { key: `${site}:${(fourth & 0xff00).toString(16)}::/56`, factor: FACTOR_56 },
    { key: `${site}::/48`, factor: FACTOR_48 },
  ]
}
