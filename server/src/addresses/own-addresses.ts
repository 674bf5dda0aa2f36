// The addresses of this machine's interfaces. Lobbies share its network, so a connection from one of them may come from
// any lobby: it is never a trusted proxy, whatever MUSTER_TRUSTED_PROXIES says. Loopback addresses are not among them:
// config.ts refuses those in the setting.
import { networkInterfaces } from 'node:os'

/** Age of the list of this machine's addresses; a new network interface is known after this time. */
const AGE_MS_MAX = 10_000
const MAPPED_PREFIX = '::ffff:'
const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/

/** `peer`: the address of a socket's other side, as the socket gives it. */
export const isLoopback = (peer: string): boolean => LOOPBACK.test(peer)

export class OwnAddresses {
  readonly #elapsed: () => number
  #addresses: ReadonlySet<string> = new Set()
  #read_ms = Number.NEGATIVE_INFINITY

  /** `elapsed`: a monotonic clock, in milliseconds. */
  constructor(elapsed: () => number) {
    this.#elapsed = elapsed
  }

  /** `peer`: the address of a socket's other side, as the socket gives it. */
  has(peer: string): boolean {
    const now_ms = this.#elapsed()
    if (now_ms - this.#read_ms >= AGE_MS_MAX) {
      this.#addresses = readAddresses()
      this.#read_ms = now_ms
    }
    const [address = ''] = peer.split('%')
    return this.#addresses.has(address.startsWith(MAPPED_PREFIX) ? address.slice(MAPPED_PREFIX.length) : address)
  }
}

function readAddresses(): Set<string> {
  const items = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return new Set(items.filter(({ internal }) => !internal).map(({ address }) => address))
}
