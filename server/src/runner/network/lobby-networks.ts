// The networks of lobbies. Each lobby has a network namespace of its own, connected by a pair of interfaces. Making one
// takes some tens of milliseconds, so as many are kept ready as have been taken at once, and at least one. The kernel holds
// all of it: networks outlive the runner, and the next one removes those that no living lobby uses.
import { randomInt } from 'node:crypto'
import type { Logger } from 'pino'
import type { AddressBlock } from '../../config/lobby-network.ts'
import { type Block, NETWORKS_MAX, type NetworkNames, namesOf, tableOf } from './addresses.ts'
import { type BlockClaim, claimBlock } from './claim.ts'
import { Forwarding } from './forwarding.ts'
import { limitRate, listNetworks, makeNamespaces, removeNamespaces } from './namespace.ts'
import { redirectPorts } from './redirect.ts'
import { readResolver } from './resolver.ts'
import {
  admitText,
  connectText,
  dismissText,
  isolateText,
  redirectedText,
  removeTableText,
  tableText,
} from './rules.ts'
import { listTables, run } from './system-command.ts'

/** Networks kept ready. As many lobbies start at once without waiting for theirs. */
const SPARE_MAX = 4
const REFILL_DELAY_MS = 250
/** Networks of runs that end within this time are removed at once. */
const REMOVE_DELAY_MS = 250
/** Networks that one start makes when the pool is empty. Another start may take each of them. */
const TAKE_TRIES_MAX = 16
/** Removed networks whose elements are still in the table. The next refill removes them with the command that admits others. */
const DISMISSED_LATER_MAX = 64
/** Pause after a failed refill. A start that finds no network makes one itself. */
const REFILL_FAILED_MS = 5_000

/** A lobby's own network. Plain JSON, stored with the run. */
export type RunNetwork = {
  index: number
  namespace: string
  /** Where the machine reaches the lobby's ports. */
  address: string
  /** Where the lobby reaches the platform and DNS. */
  services: string
  /** From where the machine's connections may come, beside its own address. */
  players: string
  has_internet: boolean
}

export type NetworkWish = { has_internet: boolean; bytes_per_second: number }

export type NetworkOptions = {
  range: AddressBlock
  /** Where the platform listens for lobbies on this machine. */
  platform: { address: string; port: number }
}

type OpenOptions = NetworkOptions & {
  data_dir: string
  own_folder: string
  log: Logger
  /** Throws where the driver cannot start a lobby in this namespace. */
  tryNamespace?: (namespace: string) => Promise<void>
}

/** `made_for`: null where no start has shown yet what is wanted. It then has access to the internet. */
type SpareNetwork = NetworkNames & { made_for: NetworkWish | null }

export class LobbyNetworks {
  readonly #options: OpenOptions
  readonly #block: Block
  readonly #leaveBlock: () => Promise<void>
  readonly #table: string
  readonly #forwarding: Forwarding
  readonly #spare: SpareNetwork[] = []
  /** Indexes that are being made, or belong to a start under way, with their access to the internet. */
  readonly #taken = new Map<number, boolean>()
  readonly #work = new Set<Promise<void>>()
  #next = randomInt(NETWORKS_MAX)
  /** The last request: most lobbies of a platform want the same. */
  #wish: NetworkWish | null = null
  /** Networks that are kept ready. */
  #wanted = 1
  /** Networks taken since the last refill, and how many of these were not ready. */
  #taken_count = 0
  #missed_count = 0
  #resolver = readResolver()
  #refilling: NodeJS.Timeout | null = null
  /** Spare networks that refills under way make. A start during a slow refill begins another one. */
  #refill_count = 0
  /** Ports at the platform's address, beside its own, to which lobbies are redirected. */
  readonly #redirected = new Set<number>()
  /** Networks of runs that have ended. */
  #leaving: NetworkNames[] = []
  #removing: NodeJS.Timeout | null = null
  /** Networks that are gone, by index. An element for an interface that does not exist admits nothing. */
  readonly #dismissed_later = new Map<number, NetworkNames>()
  #is_closed = false

  /** Throws an Error with the reason where this machine cannot give lobbies networks. */
  static async open(options: OpenOptions): Promise<LobbyNetworks> {
    if (process.getuid?.() !== 0) throw new Error('the platform does not run as root')
    const networks = new LobbyNetworks(options, await claimBlock(options.range, options.data_dir))
    try {
      networks.#forwarding.open()
      await networks.#writeTable()
      // The first one shows whether the machine can do it at all.
      await networks.#addSpare(1)
      await options.tryNamespace?.(networks.#spare[0]!.namespace)
    } catch (error) {
      await networks.close()
      throw error
    }
    return networks
  }

  private constructor(options: OpenOptions, { block, leave }: BlockClaim) {
    this.#options = options
    this.#block = block
    this.#leaveBlock = leave
    this.#table = tableOf(options.data_dir)
    this.#forwarding = new Forwarding(options.own_folder)
  }

  /** Where lobbies reach the platform and DNS. */
  get services(): string {
    return this.#block.services
  }

  /** A network of the caller's own, until `release`. */
  async take({ has_internet, bytes_per_second }: NetworkWish): Promise<RunNetwork> {
    if (this.#is_closed) throw new Error('The driver is closed.')
    this.#wish = { has_internet, bytes_per_second }
    this.#taken_count++
    this.#refillAfter(REFILL_DELAY_MS)
    const network = await this.#takeSpare()
    this.#taken.set(network.index, has_internet)
    const { made_for } = network
    try {
      await Promise.all([
        made_for?.bytes_per_second === bytes_per_second ? undefined : limitRate(network, bytes_per_second),
        (made_for?.has_internet ?? true) === has_internet ? undefined : this.#setInternet(network, has_internet),
      ])
    } catch (error) {
      this.#removeSoon(network)
      throw error
    }
    const { index, namespace, address } = network
    const { services, players } = this.#block
    return { index, namespace, address, services, players, has_internet }
  }

  #setInternet(network: NetworkNames, has_internet: boolean): Promise<void> {
    return this.#nft((has_internet ? connectText : isolateText)(this.#table, [network]))
  }

  /** Removes the network of a run that has ended, or did not begin. Returns at once. */
  release({ index }: RunNetwork): void {
    this.#removeSoon(namesOf(this.#block, index))
  }

  /** Leads the lobby's connections to these ports of its loopback interface to a port at the platform's address. */
  async redirect(network: RunNetwork, ports: readonly number[], to_port: number): Promise<void> {
    if (!this.#redirected.has(to_port)) {
      await this.#nft(redirectedText(this.#table, [to_port]))
      this.#redirected.add(to_port)
    }
    await redirectPorts(network, ports, to_port)
  }

  /** The run is recorded: from now on only `used` of `sweep` keeps its network. */
  recorded({ index }: RunNetwork): void {
    this.#taken.delete(index)
  }

  /** Removes the networks that no living run uses, and restores rules that another program removed. */
  async sweep(used: readonly RunNetwork[]): Promise<void> {
    const kept = new Set([
      ...used.map(({ index }) => index),
      ...this.#spare.map(({ index }) => index),
      ...this.#taken.keys(),
    ])
    await this.#remove(listNetworks(this.#block).filter(({ index }) => !kept.has(index)))
    const resolver = readResolver()
    const is_changed = this.#forwarding.open() || resolver !== this.#resolver
    this.#resolver = resolver
    if (!(await this.#hasTable())) {
      this.#options.log.warn({ table: this.#table }, 'the nftables table of lobbies was removed; restoring it')
      await this.#restoreTable(used)
    } else if (is_changed) await this.#writeTable()
  }

  /** Removes the networks that are not in use. Those of lobbies stay; without any, nothing stays on the machine. */
  async close(): Promise<void> {
    await this.#endWork()
    const unused = new Set([...this.#spare.splice(0), ...this.#leaving.splice(0)].map(({ index }) => index))
    const networks = listNetworks(this.#block)
    if (networks.every(({ index }) => unused.has(index))) await this.#removeAll()
    else await this.#remove(networks.filter(({ index }) => unused.has(index)))
    await this.#leaveBlock()
  }

  /** After the last lobby: removes everything from the machine. */
  async remove(): Promise<void> {
    await this.#endWork()
    await this.#removeAll()
    await this.#leaveBlock()
  }

  async #endWork(): Promise<void> {
    this.#is_closed = true
    for (const timer of [this.#refilling, this.#removing]) if (timer !== null) clearTimeout(timer)
    // A refill under way may add spare networks.
    while (this.#work.size > 0) await Promise.all(this.#work)
  }

  /** The table goes first: a crash leaves networks, which the next runner finds. */
  async #removeAll(): Promise<void> {
    await this.#nft(removeTableText(this.#table)).catch(() => undefined)
    this.#forwarding.close()
    await removeNamespaces(listNetworks(this.#block), [this.#block.interface])
  }

  async #takeSpare(): Promise<SpareNetwork> {
    for (let tried = 0; tried < TAKE_TRIES_MAX; tried++) {
      const network = this.#spare.shift()
      if (network !== undefined) return network
      this.#missed_count++
      await this.#addSpare(1)
    }
    throw new Error('Other starts took every network that was made for this one.')
  }

  async #restoreTable(used: readonly RunNetwork[]): Promise<void> {
    const namesAt = (index: number): NetworkNames => namesOf(this.#block, index)
    const running = used.map(({ index, has_internet }) => ({ index, has_internet }))
    for (const { index, made_for } of this.#spare) running.push({ index, has_internet: made_for?.has_internet ?? true })
    for (const [index, has_internet] of this.#taken) running.push({ index, has_internet })
    const isolated = running.filter(({ has_internet }) => !has_internet).map(({ index }) => namesAt(index))
    await this.#writeTable()
    const admitted = running.map(({ index }) => namesAt(index))
    await this.#nft(admitText(this.#table, admitted) + isolateText(this.#table, isolated))
  }

  /** A start may take one while they are made, so there may be none afterwards. */
  async #addSpare(count: number): Promise<void> {
    const made_for = this.#wish
    const has_internet = made_for?.has_internet ?? true
    const networks = this.#freeIndexes(count).map((index) => namesOf(this.#block, index))
    for (const { index } of networks) this.#taken.set(index, has_internet)
    try {
      await makeNamespaces(this.#block, networks, made_for?.bytes_per_second ?? null)
      const isolated = has_internet ? [] : networks
      await this.#nft(this.#dismissGone() + admitText(this.#table, networks) + isolateText(this.#table, isolated))
      this.#spare.push(...networks.map((network) => ({ ...network, made_for })))
    } catch (error) {
      await this.#remove(networks).catch(() => undefined)
      throw error
    } finally {
      for (const { index } of networks) this.#taken.delete(index)
    }
  }

  /** An index is used again only after all others, so that a late packet does not reach the next lobby. */
  #freeIndexes(count: number): number[] {
    const existing = new Set([...listNetworks(this.#block).map(({ index }) => index), ...this.#taken.keys()])
    const free: number[] = []
    for (let seen = 0; seen < NETWORKS_MAX && free.length < count; seen++) {
      if (!existing.has(this.#next)) free.push(this.#next)
      this.#next = (this.#next + 1) % NETWORKS_MAX
    }
    if (free.length < count) throw new Error('All networks of lobbies are in use.')
    return free
  }

  async #remove(networks: readonly NetworkNames[]): Promise<void> {
    if (networks.length === 0) return
    await removeNamespaces(networks)
    for (const network of networks) this.#dismissed_later.set(network.index, network)
    if (this.#dismissed_later.size <= DISMISSED_LATER_MAX && !this.#is_closed) return
    await this.#nft(this.#dismissGone()).catch(() => undefined)
  }

  #dismissGone(): string {
    const gone = [...this.#dismissed_later.values()]
    this.#dismissed_later.clear()
    return dismissText(this.#table, gone)
  }

  #removeSoon(network: NetworkNames): void {
    this.#taken.delete(network.index)
    this.#leaving.push(network)
    if (this.#is_closed) return
    this.#removing ??= setTimeout(() => {
      this.#removing = null
      this.#track(this.#remove(this.#leaving.splice(0)))
    }, REMOVE_DELAY_MS).unref()
  }

  #refillAfter(delay_ms: number): void {
    if (this.#is_closed) return
    this.#refilling ??= setTimeout(() => {
      this.#refilling = null
      this.#track(this.#refill())
    }, delay_ms).unref()
  }

  async #refill(): Promise<void> {
    this.#wanted = Math.min(SPARE_MAX, Math.max(this.#wanted + this.#missed_count, this.#taken_count))
    this.#taken_count = 0
    this.#missed_count = 0
    const missing = this.#wanted - this.#spare.length - this.#refill_count
    if (missing <= 0 || this.#is_closed) return
    this.#refill_count += missing
    try {
      await this.#addSpare(missing)
    } catch (error) {
      this.#options.log.error({ err: error }, 'networks for lobbies could not be prepared; retrying')
      this.#refillAfter(REFILL_FAILED_MS)
    } finally {
      this.#refill_count -= missing
    }
  }

  /** Work that `close` waits for. What fails is found by the next sweep. */
  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => this.#options.log.warn({ err: error }, 'network of a lobby could not be removed'))
      .finally(() => this.#work.delete(tracked))
    this.#work.add(tracked)
  }

  async #hasTable(): Promise<boolean> {
    return (await listTables()).includes(this.#table)
  }

  async #writeTable(): Promise<void> {
    const { platform } = this.#options
    const [block, table, resolver] = [this.#block, this.#table, this.#resolver]
    const text = tableText({ table, block, platform, resolver, opened: this.#forwarding.opened })
    await this.#nft(text + redirectedText(table, [...this.#redirected]))
  }

  async #nft(text: string): Promise<void> {
    if (text !== '') await run(['nft', '-f', '-'], text)
  }
}
