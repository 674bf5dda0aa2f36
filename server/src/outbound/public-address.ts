// Which addresses the platform calls on behalf of others. Only what is routed in the public internet: not this machine,
// not its network, and no form in which such an address hides (IPv4 inside IPv6, tunnels, translators).
import { BlockList, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'

/** Global unicast; everything that is not in it (deprecated forms too) is of some other use. */
const GLOBAL_UNICAST = ipaddr.IPv6.parse('2000::')
const GLOBAL_UNICAST_BITS = 3

/** An address literal as node:net knows one, without a zone. False for whatever is not a public address. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0 || address.includes('%')) return false
  const parsed = ipaddr.process(address)
  if (parsed.range() !== 'unicast') return false
  return parsed.kind() === 'ipv4' || (parsed as ipaddr.IPv6).match(GLOBAL_UNICAST, GLOBAL_UNICAST_BITS)
}

/** The blocks that an operator allows though they are not public. Throws an Error that names one that is no block. */
export function parseNetworks(cidrs: readonly string[]): BlockList {
  const list = new BlockList()
  for (const cidr of cidrs) {
    try {
      const [address, bits] = ipaddr.parseCIDR(cidr)
      list.addSubnet(address.toString(), bits, address.kind())
    } catch {
      throw new Error(`${JSON.stringify(cidr)} is not a CIDR block.`)
    }
  }
  return list
}

/** Whether `address` may be called: what the operator allows, and what is public. */
export function mayReach(address: string, allowed: BlockList): boolean {
  return isAllowed(address, allowed) || isPublicAddress(address)
}

/**
 * Whether this is a public address of this very machine that the settings do not allow: what listens there is ours, and no
 * firewall protects it.
 */
export function isOwn(address: string, allowed: BlockList): boolean {
  if (isAllowed(address, allowed)) return false
  const text = ipaddr.process(address).toString()
  return Object.values(networkInterfaces()).some((items) => items?.some((item) => item.address === text))
}

function isAllowed(address: string, allowed: BlockList): boolean {
  if (isIP(address) === 0 || address.includes('%')) return false
  const parsed = ipaddr.process(address)
  return allowed.check(parsed.toString(), parsed.kind())
}
