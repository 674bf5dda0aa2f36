// One port of the lobby of `muster dev`, and the pairs of sockets that join clients to the server.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PortConfig } from '@musterhost/contract'
import type { DevSeats } from './seats.ts'

/** Where the server listens. */
export const SERVER_HOST = '127.0.0.1'
/** A connection waits for a server that does not listen yet: attempts, and milliseconds between two of them. */
const CONNECT_ATTEMPTS_MAX = 100
const CONNECT_PAUSE_MS = 100

/**
 * `listening`: the number at which the server listens. `public`: the number to which players connect. `bind`: the address of
 * this machine at which players connect; undefined: every address. `player_network`: of which players get addresses.
 */
export type DevPort = Omit<PortConfig, 'port' | 'port_range' | 'same_number_as'> & {
  listening: number
  public: number
  bind: string | undefined
  player_network: string | null
  lobby_id: string
  seats: DevSeats
  pairs: SocketPairs
}

export type OpenDevPort = { close(): Promise<void> | void }

/** By which players of one client are known. All addresses of this machine are one: the page is always opened at `localhost`. */
export function clientKeyOf(address: string | undefined): string {
  const client = clientOf(address)
  const own = Object.values(networkInterfaces()).flatMap((items) => items ?? [])
  return own.some((item) => item.address === client) ? SERVER_HOST : client
}

/** IPv4 addresses of sockets that serve IPv6 too are written as IPv4. */
export function clientOf(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:/, '')
}

/** Retries while the server does not listen, for example because it starts again. */
export async function connectToServer(port: number, local_address: string | null, client: Socket): Promise<Socket> {
  for (let attempt = 1; ; attempt++) {
    const localAddress = local_address === null ? {} : { localAddress: local_address }
    const upstream = connect({ host: SERVER_HOST, port, allowHalfOpen: true, ...localAddress })
    try {
      await once(upstream, 'connect')
      return upstream
    } catch (error) {
      const is_refused = (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
      if (!is_refused || attempt >= CONNECT_ATTEMPTS_MAX || client.destroyed) throw error
      await sleep(CONNECT_PAUSE_MS)
    }
  }
}

/** Joined sockets. Those of a player to one port are known by a key. */
export class SocketPairs {
  readonly #by_key = new Map<string, Set<Socket>>()

  /** Joins two sockets until both have ended. A key that is null belongs to no player. */
  join(client: Socket, upstream: Socket, key: string | null): void {
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      socket.on('error', () => {})
      // A socket that closed before its end was read has broken.
      socket.once('close', (had_error: boolean) => {
        if (had_error || !socket.readableEnded) other.destroy()
      })
      socket.pipe(other)
    }
    if (key === null) return
    const known = this.#by_key.get(key) ?? new Set()
    this.#by_key.set(key, known.add(upstream))
    upstream.once('close', () => {
      known.delete(upstream)
      if (known.size === 0 && this.#by_key.get(key) === known) this.#by_key.delete(key)
    })
  }

  /** Ends the pairs of a key, for one that takes their place. Resolves when they are closed towards the server. */
  async endOf(key: string): Promise<void> {
    const ends = [...(this.#by_key.get(key) ?? [])].map(async (upstream) => {
      const closed = once(upstream, 'close')
      upstream.destroy()
      await closed
    })
    await Promise.all(ends)
  }
}
