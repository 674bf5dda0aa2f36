// A limited number of places, shared among clients: connections, waiting requests, whatever is held for a while. Each
// client has a limit of its own, a /56 and a /48 of IPv6 a larger one. When all places are taken, a client that holds
// fewer than another is given a place of the one that holds most. So a few clients can use every place that nobody else
// wants, and cannot keep anybody out.
import assert from 'node:assert'
import { type ClientNetwork, clientNetworks } from './client-networks.ts'

/** `leave` gives the place back; only its first call counts. */
export type ClientPlace = { leave: () => void }
/** Why there is no place: the client (or its /56 or /48) has as many as it may have, or everything is taken. */
export type NoPlace = 'client_full' | 'full'

type HeldPlace = { networks: readonly Network[]; displace: (() => void) | null; isBusy: () => boolean }
type Network = {
  key: string
  factor: number
  count: number
  /** Places that may be given to another client: the longest held first, places that were found busy last. */
  displaceable: Set<HeldPlace>
}

/** Busy places that are passed over for one that is not, each time. */
const BUSY_PASSED_MAX = 16
const neverBusy = (): boolean => false

export class ClientShare {
  readonly #places_max: number
  readonly #client_max: number
  readonly #networks = new Map<string, Network>()
  /** By factor: the networks by how many displaceable places they hold, so that the largest is found without a search. */
  readonly #ranks = new Map<number, Ranks>()
  #count = 0
  #displaced_count = 0

  /** `client_max`: places of one IPv4 address or /64. A /56 has four times, a /48 sixteen times that number. */
  constructor({ places_max, client_max }: { places_max: number; client_max: number }) {
    assert(places_max >= 1 && client_max >= 1)
    this.#places_max = places_max
    this.#client_max = client_max
  }

  /** Places that are taken. */
  get count(): number {
    return this.#count
  }

  /** Places that were given to another client. */
  get displaced_count(): number {
    return this.#displaced_count
  }

  /**
   * Takes a place. `displace` is called when the place is given to a client that holds fewer, and must end what the place
   * was for; without it the place is kept until it is left. A place that is busy is given away after those that are not.
   */
  enter(
    client_key: string,
    displace: (() => void) | null = null,
    isBusy: () => boolean = neverBusy,
  ): ClientPlace | NoPlace {
    const networks = clientNetworks(client_key)
    if (networks.some((network) => this.#countOf(network.key) >= this.#client_max * network.factor)) {
      return 'client_full'
    }
    if (this.#count >= this.#places_max && !this.#makeRoom(networks)) return 'full'
    const place: HeldPlace = { networks: networks.map((network) => this.#network(network)), displace, isBusy }
    this.#add(place)
    let is_left = false
    return {
      leave: () => {
        // After it was displaced there is nothing to give back.
        if (!is_left && this.#holds(place)) this.#remove(place)
        is_left = true
      },
    }
  }

  #countOf(key: string): number {
    return this.#networks.get(key)?.count ?? 0
  }

  #holds(place: HeldPlace): boolean {
    return place.displace === null || place.networks[0]!.displaceable.has(place)
  }

  /** Takes a place from the network that holds most, if it holds more than the newcomer will. */
  #makeRoom(newcomer: readonly ClientNetwork[]): boolean {
    let largest: { network: Network; load: number } | null = null
    for (const [factor, ranks] of this.#ranks) {
      const network = ranks.largest()
      if (network === null) continue
      const load = network.displaceable.size / factor
      if (largest === null || load > largest.load) largest = { network, load }
    }
    if (largest === null) return false
    const load_then = Math.max(...newcomer.map(({ key, factor }) => (this.#countOf(key) + 1) / factor))
    if (load_then >= largest.load) return false
    const place = displaceableOf(largest.network)
    this.#remove(place)
    this.#displaced_count++
    place.displace!()
    return true
  }

  #network({ key, factor }: ClientNetwork): Network {
    const network = this.#networks.get(key) ?? { key, factor, count: 0, displaceable: new Set() }
    this.#networks.set(key, network)
    return network
  }

  #add(place: HeldPlace): void {
    this.#count++
    for (const network of place.networks) {
      network.count++
      if (place.displace === null) continue
      network.displaceable.add(place)
      this.#ranksOf(network).moved(network, network.displaceable.size - 1)
    }
  }

  #remove(place: HeldPlace): void {
    this.#count--
    for (const network of place.networks) {
      network.count--
      if (network.displaceable.delete(place)) this.#ranksOf(network).moved(network, network.displaceable.size + 1)
      if (network.count === 0) this.#networks.delete(network.key)
    }
  }

  #ranksOf({ factor }: Network): Ranks {
    const ranks = this.#ranks.get(factor) ?? new Ranks()
    this.#ranks.set(factor, ranks)
    return ranks
  }
}

/** The longest held place that is not busy, as far as BUSY_PASSED_MAX are busy; else the longest held. */
function displaceableOf({ displaceable }: Network): HeldPlace {
  const [oldest] = displaceable
  for (let passed = 0; passed < BUSY_PASSED_MAX; passed++) {
    const [place] = displaceable
    if (!place!.isBusy()) return place!
    // The next search does not begin with it again.
    displaceable.delete(place!)
    displaceable.add(place!)
  }
  return oldest!
}

/** Networks by how many displaceable places they hold. Every step takes the same time, however many there are. */
class Ranks {
  readonly #by_count = new Map<number, Set<Network>>()
  #highest = 0

  largest(): Network | null {
    const [network] = this.#by_count.get(this.#highest) ?? []
    return network ?? null
  }

  /** The network holds one place more, or one fewer, than `before`. */
  moved(network: Network, before: number): void {
    const count = network.displaceable.size
    if (count > 0) this.#by_count.set(count, (this.#by_count.get(count) ?? new Set()).add(network))
    const left = this.#by_count.get(before)
    left?.delete(network)
    if (left?.size === 0) this.#by_count.delete(before)
    if (count > this.#highest || (before === this.#highest && !this.#by_count.has(before))) this.#highest = count
  }
}
