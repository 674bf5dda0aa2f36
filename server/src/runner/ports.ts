// The ports of lobbies that share the network of this machine: 20000 to 25999 of 127.0.0.1, one for each port of a lobby's
// game mode. Lobbies with a network of their own (network/lobby-networks.ts) need none.
// A port belongs to a live run, or is free. Binding it, for TCP and for UDP, shows whether another program uses it. A
// released port is assigned again only after all others, so that a late packet for one lobby does not reach the next.
//
// Another program may take the port between this test and the
// lobby's own bind. The lobby then fails to listen and ends.
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { LOBBY_PORTS } from '../config/edge.ts'

/** Where lobbies listen that share the network of this machine. */
export const MACHINE_HOST = '127.0.0.1'
export const PORT_FIRST = LOBBY_PORTS.min
export const PORT_COUNT = LOBBY_PORTS.max - LOBBY_PORTS.min + 1
/** Ports tried for one request while other programs use them. Beyond it the start fails with `no_ports`. */
const TRIES_MAX = 200

export type Ports = {
  /** Returns `count` different ports; null when fewer are free, and then none is taken. */
  take(count: number): Promise<number[] | null>
  /** Marks the port of a run that was taken over as used. */
  reserve(port: number): void
  release(port: number): void
  /** Ports that no run of this runner has. */
  freeCount(): number
}

/**
 * `start`: where the search begins. Random, so that two platforms on one machine seldom try the same port. `host`: null: an
 * address of another machine, where a port cannot be tested.
 */
export function createPorts(start: number, host: string | null = MACHINE_HOST): Ports {
  const used = new Set<number>()
  let next = start % PORT_COUNT

  function takeNext(): number | null {
    for (let seen = 0; seen < PORT_COUNT; seen++) {
      const port = PORT_FIRST + next
      next = (next + 1) % PORT_COUNT
      if (used.has(port)) continue
      used.add(port)
      return port
    }
    return null
  }

  /** A port of another program is marked used only while it is tested, so a later search tests it again. */
  async function takeOne(): Promise<number | null> {
    for (let tried = 0; tried < TRIES_MAX; tried++) {
      const port = takeNext()
      if (port === null || host === null) return port
      if ((await canListen(port, host)) && (await canBind(port, host))) return port
      used.delete(port)
    }
    return null
  }

  return {
    async take(count) {
      const taken = await Promise.all(Array.from({ length: count }, takeOne))
      const ports = taken.filter((port) => port !== null)
      if (ports.length === count) return ports
      for (const port of ports) used.delete(port)
      return null
    },
    reserve: (port) => void used.add(port),
    release: (port) => void used.delete(port),
    freeCount: () => PORT_COUNT - used.size,
  }
}

function canListen(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)))
  })
}

function canBind(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4')
    socket.once('error', () => {
      socket.close()
      resolve(false)
    })
    socket.bind({ port, address: host, exclusive: true }, () => socket.close(() => resolve(true)))
  })
}
