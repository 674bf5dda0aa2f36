// Binds the edge's udp sockets.
//
// The replies of a socket that is bound to every address leave from the address that the kernel chooses for their way. On a
// machine with several addresses that may be another one than the client asked, and the client drops them. So there each
// address has a socket of its own, and the kernel gives a datagram to the socket of the address that it was sent to.
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import type { NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { numberOfAddress } from '@musterhost/contract/edge'
import type { Logger } from 'pino'
import type { AddressBlock } from '../../config/lobby-network.ts'
import { UDP_ADDRESSES_MAX } from '../limits.ts'

/**
 * A socket of a port. `local`: the address of this machine that has this socket of its own; null for the socket of the
 * configured address, or of every other address.
 */
export type UdpSocket = { readonly local: string | null; readonly socket: Socket }

const MAPPED_PREFIX = '::ffff:'
const LINK_LOCAL = /^(?:fe[89ab]|169\.254\.)/i
/**
 * The sockets of one port share it by SO_REUSEPORT, which requires the same user. Other systems have no such option, or
 * give datagrams to any of these sockets.
 */
const IS_SHARED = process.platform === 'linux'

/** Replaces the DNS look-up of a socket: only addresses are used here, and nothing waits for a look-up. */
export const lookupNothing = (address: string, ...rest: unknown[]): void => {
  const callback = rest.at(-1) as (error: null, address: string, family: number) => void
  callback(null, address, isIPv6(address) ? 6 : 4)
}

/** Returns a bound socket; null: another program has the port. `host`: null for every address of the machine. */
export async function bindUdp(log: Logger, port: number, host: string | null): Promise<Socket | null> {
  const types = host === null ? (['udp6', 'udp4'] as const) : [isIPv6(host) ? ('udp6' as const) : ('udp4' as const)]
  for (const type of types) {
    try {
      const socket = await bind(type, port, host, false)
      if (host !== null || !IS_SHARED) return socket
      // The first bind has found out that no other program has the port. Only this one allows sockets of single addresses.
      socket.close()
      return await bind(type, port, null, true)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (host === null && type === 'udp6' && (code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL')) continue
      if (code !== 'EADDRINUSE') log.warn({ err: error, port }, 'udp port cannot be bound')
      return null
    }
  }
  return null
}

/**
 * Returns a socket of one address, beside `main`, which is bound to every address. It has the type of `main`, so a source
 * is written in the same way at both.
 */
export function bindBeside(main: Socket, local: string): Promise<Socket> {
  const { family, port } = main.address()
  if (family !== 'IPv6') return bind('udp4', port, local, true)
  return bind('udp6', port, isIPv6(local) ? local : `${MAPPED_PREFIX}${local}`, true)
}

async function bind(type: 'udp4' | 'udp6', port: number, address: string | null, is_shared: boolean): Promise<Socket> {
  const socket = createSocket({ type, lookup: lookupNothing, reusePort: is_shared })
  const listening = once(socket, 'listening')
  socket.bind({ port, exclusive: true, ...(address !== null && { address }) })
  try {
    await listening
  } catch (error) {
    socket.close()
    throw error
  }
  // A datagram that cannot be sent is lost, as datagrams are.
  socket.on('error', () => {})
  return socket
}

/**
 * Returns the addresses that need sockets of their own: those of each family of which the machine has several. With one
 * address the kernel has no choice. Players reach no loopback address from outside, and no address of `lobby_network`.
 * `is_cut`: the machine has more than UDP_ADDRESSES_MAX.
 */
export function addressesWithSockets(
  interfaces: ReturnType<typeof networkInterfaces>,
  lobby_network: AddressBlock | null,
): { addresses: ReadonlySet<string>; is_cut: boolean } {
  if (!IS_SHARED) return { addresses: new Set(), is_cut: false }
  const isReached = ({ internal, address, family }: NetworkInterfaceInfo): boolean =>
    !internal && !LINK_LOCAL.test(address) && !(family === 'IPv4' && isWithin(lobby_network, address))
  const reached = Object.values(interfaces).flatMap((items) => items?.filter(isReached) ?? [])
  const addresses = new Set<string>()
  for (const family of ['IPv4', 'IPv6']) {
    const of_family = new Set(reached.filter((item) => item.family === family).map(({ address }) => address))
    if (of_family.size > 1) for (const address of of_family) addresses.add(address)
  }
  const is_cut = addresses.size > UDP_ADDRESSES_MAX
  return { addresses: new Set([...addresses].slice(0, UDP_ADDRESSES_MAX)), is_cut }
}

function isWithin(range: AddressBlock | null, address: string): boolean {
  if (range === null) return false
  const size = 2 ** (32 - range.bits)
  return Math.floor(numberOfAddress(address) / size) * size === range.first
}
