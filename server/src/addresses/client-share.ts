// A limited number of slots, shared among clients: connections, waiting requests, whatever is held for a while. Each
// client has a limit of its own, a /56 and a /48 of IPv6 a larger one. When all slots are taken, a client that holds
// fewer than another is given a slot of the one that holds most. So a few clients can use every slot that no other client
// wants, and cannot keep another client out.
import assert from 'node:assert'
import { type ClientNetwork, clientNetworks } from './client-networks.ts'

/** `leave` gives the slot back; only its first call counts. */
export type ClientSlot = { leave: () => void }
/** Why there is no slot: the client (or its /56 or /48) has as many as it may have, or everything is taken. */
export type NoSlot = 'client_full' | 'full'

type HeldSlot = { networks: readonly Network[]; displace: (() => void) | null; isBusy: () => boolean }
type Network = {
  key: string
  factor: number
  count: number
  /** Slots that may be given to another client: the longest held first, slots that were found busy last. */
  displaceable: Set<HeldSlot>
}

/**
 * The counts of other processes, for limits that hold over all of them. `count`: that this process has, or would have. `left` is called
 * after a count has gone down.
 */
export type SharedShare = {
  allows: (key: string, count: number, max: number) => boolean
  left: (key: string, count: number, max: number) => void
}

/** Busy slots that are passed over for one that is not, each time. */
const BUSY_PASSED_MAX = 16
const neverBusy = (): boolean => false

export class ClientShare {
  readonly #slots_max: number
  readonly #client_max: number
  readonly #shared: SharedShare | null
  readonly #networks = new Map<string, Network>()
  /** By factor: the networks by how many displaceable slots they hold, so that the largest is found without a search. */
  readonly #ranks = new Map<number, Ranks>()
  #count = 0
  #displaced_count = 0

  /**
   * `client_max`: slots of one IPv4 address or /64. A /56 has four times, a /48 sixteen times that number. `shared`: the same
   * share of other processes.
   */
  constructor({ slots_max, client_max }: { slots_max: number; client_max: number }, shared: SharedShare | null = null) {
    assert(slots_max >= 1 && client_max >= 1)
    this.#slots_max = slots_max
    this.#client_max = client_max
    this.#shared = shared
  }

  /** Slots that are taken. */
  get count(): number {
    return this.#count
  }

  /** Slots that were given to another client. */
  get displaced_count(): number {
    return this.#displaced_count
  }

  /**
   * Takes a slot. `displace` is called when the slot is given to a client that holds fewer, and must end what the slot
   * was for; without it the slot is kept until it is left. A slot that is busy is given away after those that are not.
   */
  enter(
    client_key: string,
    displace: (() => void) | null = null,
    isBusy: () => boolean = neverBusy,
  ): ClientSlot | NoSlot {
    const networks = clientNetworks(client_key)
    if (networks.some((network) => this.#countOf(network.key) >= this.#client_max * network.factor)) {
      return 'client_full'
    }
    if (this.#shared !== null && !this.#areAllowed(networks, this.#shared)) return 'client_full'
    if (this.#count >= this.#slots_max && !this.#makeRoom(networks)) {
      this.#tellLeft(networks)
      return 'full'
    }
    const slot: HeldSlot = { networks: networks.map((network) => this.#network(network)), displace, isBusy }
    this.#add(slot)
    let is_left = false
    return {
      leave: () => {
        // After it was displaced there is nothing to give back.
        if (!is_left && this.#holds(slot)) this.#remove(slot)
        is_left = true
      },
    }
  }

  #areAllowed(networks: readonly ClientNetwork[], shared: SharedShare): boolean {
    const areAll = networks.every(({ key, factor }) =>
      shared.allows(key, this.#countOf(key) + 1, this.#client_max * factor),
    )
    if (!areAll) this.#tellLeft(networks)
    return areAll
  }

  #tellLeft(networks: readonly Pick<Network, 'key' | 'factor'>[]): void {
    for (const { key, factor } of networks) this.#shared?.left(key, this.#countOf(key), this.#client_max * factor)
  }

  #countOf(key: string): number {
    return this.#networks.get(key)?.count ?? 0
  }

  #holds(slot: HeldSlot): boolean {
    return slot.displace === null || slot.networks[0]!.displaceable.has(slot)
  }

  /** Takes a slot from the network that holds most, if it holds more than the newcomer will. */
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
    const slot = displaceableOf(largest.network)
    this.#remove(slot)
    this.#displaced_count++
    slot.displace!()
    return true
  }

  #network({ key, factor }: ClientNetwork): Network {
    const network = this.#networks.get(key) ?? { key, factor, count: 0, displaceable: new Set() }
    this.#networks.set(key, network)
    return network
  }

  #add(slot: HeldSlot): void {
    this.#count++
    for (const network of slot.networks) {
      network.count++
      if (slot.displace === null) continue
      network.displaceable.add(slot)
      this.#ranksOf(network).moved(network, network.displaceable.size - 1)
    }
  }

  #remove(slot: HeldSlot): void {
    this.#count--
    for (const network of slot.networks) {
      network.count--
      if (network.displaceable.delete(slot)) this.#ranksOf(network).moved(network, network.displaceable.size + 1)
      if (network.count === 0) this.#networks.delete(network.key)
    }
    if (this.#shared !== null) this.#tellLeft(slot.networks)
  }

  #ranksOf({ factor }: Network): Ranks {
    const ranks = this.#ranks.get(factor) ?? new Ranks()
    this.#ranks.set(factor, ranks)
    return ranks
  }
}

/** The longest held slot that is not busy, as far as BUSY_PASSED_MAX are busy; else the longest held. */
function displaceableOf({ displaceable }: Network): HeldSlot {
  const [oldest] = displaceable
  for (let passed = 0; passed < BUSY_PASSED_MAX; passed++) {
    const [slot] = displaceable
    if (!slot!.isBusy()) return slot!
    // The next search does not begin with it again.
    displaceable.delete(slot!)
    displaceable.add(slot!)
  }
  return oldest!
}

/** Networks by how many displaceable slots they hold. Every step takes the same time, however many there are. */
class Ranks {
  readonly #by_count = new Map<number, Set<Network>>()
  #highest = 0

  largest(): Network | null {
    const [network] = this.#by_count.get(this.#highest) ?? []
    return network ?? null
  }

  /** The network holds one slot more, or one fewer, than `before`. */
  moved(network: Network, before: number): void {
    const count = network.displaceable.size
    if (count > 0) this.#by_count.set(count, (this.#by_count.get(count) ?? new Set()).add(network))
    const left = this.#by_count.get(before)
    left?.delete(network)
    if (left?.size === 0) this.#by_count.delete(before)
    if (count > this.#highest || (before === this.#highest && !this.#by_count.has(before))) this.#highest = count
  }
}
