// The ports on which lobbies listen for the edge: 20000 to 25999 of 127.0.0.1, one for each port of a lobby's game mode.
// A port belongs to a live run, or is free; that nobody else has it is tried by binding it, for TCP and for UDP. It is
// handed out again only after all others, so that a late packet for one lobby does not reach the next.
//
// The network is the host's (drivers/bubblewrap.ts), so between the trial and the lobby's own bind somebody else may
// take the port. The lobby then fails to listen and ends.
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { LOBBY_PORTS } from '../config.ts'

export const PORT_FIRST = LOBBY_PORTS.min
export const PORT_COUNT = LOBBY_PORTS.max - LOBBY_PORTS.min + 1
/** Of ports that others have taken; beyond it the machine is not ours to serve on. */
const TRIES_MAX = 200

export type Ports = {
  /** As many different ports as asked for; null when they are not to be had, and then none is taken. */
  take(count: number): Promise<number[] | null>
  /** Of a run that was found again. */
  hold(port: number): void
  release(port: number): void
}

/** `start` is where the search begins: any number, so that two platforms on one machine seldom meet. */
export function createPorts(start: number, host = '127.0.0.1'): Ports {
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

  /** What is taken by others stays out of the search for as long as it lasts: it is marked used only while it is tried. */
  async function takeOne(): Promise<number | null> {
    for (let tried = 0; tried < TRIES_MAX; tried++) {
      const port = takeNext()
      if (port === null) return null
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
    hold: (port) => void used.add(port),
    release: (port) => void used.delete(port),
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
