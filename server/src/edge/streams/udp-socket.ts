// Binds the edge's udp sockets.
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import type { Logger } from 'pino'

/** Replaces the DNS look-up of a socket: only addresses are used here, and nothing waits for a look-up. */
export const lookupNothing = (address: string, ...rest: unknown[]): void => {
  const callback = rest.at(-1) as (error: null, address: string, family: number) => void
  callback(null, address, isIPv6(address) ? 6 : 4)
}

/** Returns a bound socket; null: another program has the port. `host`: null for every address of the machine. */
export async function bindUdp(log: Logger, port: number, host: string | null): Promise<Socket | null> {
  const types = host === null ? (['udp6', 'udp4'] as const) : [isIPv6(host) ? ('udp6' as const) : ('udp4' as const)]
  for (const type of types) {
    const socket = createSocket({ type, lookup: lookupNothing })
    const listening = once(socket, 'listening')
    socket.bind({ port, exclusive: true, ...(host !== null && { address: host }) })
    try {
      await listening
      // A datagram that cannot be sent is lost, as datagrams are.
      socket.on('error', () => {})
      return socket
    } catch (error) {
      socket.close()
      const { code } = error as NodeJS.ErrnoException
      if (host === null && type === 'udp6' && (code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL')) continue
      if (code !== 'EADDRINUSE') log.warn({ err: error, port }, 'udp port cannot be bound')
      return null
    }
  }
  return null
}
