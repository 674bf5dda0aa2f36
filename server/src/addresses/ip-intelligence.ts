// What is known of an address: whether it belongs to a hosting provider, a proxy, a Tor exit or a VPN, and where it is. The
// sources are the operator's own lists and mmdb files, published lists, and last the AS numbers that come with the platform.
// A file is read again when it changes. A source without data on an address leaves it to the others. Facts are cached by
// address until the data change.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { BoundedMap } from '../flow/bounded-map.ts'
import { type AddressFacts, factsFrom } from './ip-data/facts.ts'
import { type AddressFeeds, type FeedsOptions, openFeeds } from './ip-data/feeds.ts'
import { createAddressFolder } from './ip-data/folder.ts'
import type { RangeTable } from './ip-data/ranges.ts'
import { readSeed } from './ip-data/read.ts'

export type { AddressClass } from './ip-data/classes.ts'
export { ADDRESS_CLASSES } from './ip-data/classes.ts'
export type { AddressFacts, Coordinates } from './ip-data/facts.ts'

export type IpIntelligence = {
  /** As of now. `address` is in canonical form, as a request has it. */
  factsOf: (address: string) => AddressFacts
  /** Returns what to wait for (some seconds at most) until the data have been read for the first time; then null. */
  opening: () => Promise<void> | null
  close: () => Promise<void>
}

/** How often the files are read, and feeds that are due. */
const POLL_MS = 2_000
/** The first finds of a process wait for the data this long, and continue without. */
const OPENING_MS_MAX = 5_000
/** Addresses whose facts are remembered. */
const KNOWN_MAX = 50_000

export type IpIntelligenceOptions = {
  /** Folder with the operator's own address data. It may be missing. */
  folder: string
  /** Whether the AS numbers that come with the platform are read. */
  has_seed: boolean
  feeds: Omit<FeedsOptions, 'now' | 'elapsed' | 'log'>
  now: () => number
  elapsed: () => number
  log: Logger
}

export function openIpIntelligence(options: IpIntelligenceOptions): IpIntelligence {
  const { log } = options
  const folders = [options.folder, options.feeds.folder].map((folder) => createAddressFolder(folder, log))
  let seed: RangeTable | null = null
  const known = new BoundedMap<string, AddressFacts>(KNOWN_MAX)
  const broken = new Set<string>()
  const closing = new AbortController()

  async function read(): Promise<void> {
    for (const folder of folders) if (await folder.refresh()) known.clear()
  }

  async function openSeed(): Promise<void> {
    if (!options.has_seed) return
    try {
      seed = await readSeed()
      known.clear()
      if (seed === null) log.info('the AS numbers that come with the platform are not installed')
    } catch (error) {
      log.warn({ err: error }, 'the AS numbers that come with the platform cannot be read')
    }
  }

  const pause = (ms: number): Promise<void> =>
    sleep(ms, undefined, { ref: false, signal: closing.signal }).catch(() => {})

  /** A feed may take a minute: files are read meanwhile. */
  async function keepLooking(): Promise<void> {
    while (!closing.signal.aborted) {
      await read()
      await pause(POLL_MS)
    }
  }

  async function keepRefreshing(feeds: AddressFeeds | null): Promise<void> {
    while (feeds !== null && !closing.signal.aborted) {
      await feeds.refresh(closing.signal)
      await pause(POLL_MS)
    }
  }

  const feeds = openFeeds({ ...options.feeds, now: options.now, elapsed: options.elapsed, log }).catch(
    (error: unknown) => {
      log.error({ err: error }, 'published lists of addresses cannot be kept, and are not fetched')
      return null
    },
  )
  // Files of feeds that are no longer configured have been removed before the folder is read.
  const first = Promise.all([feeds.then(read), openSeed()])
  const working = Promise.all([first.then(keepLooking), feeds.then(keepRefreshing)])
  let opening: Promise<void> | null = Promise.race([first, pause(OPENING_MS_MAX)]).then(() => {
    opening = null
  })

  function warnOfBroken(name: string, error: unknown): void {
    if (!broken.has(name)) log.warn({ err: error, name }, 'a file of address data is broken inside')
    broken.add(name)
  }

  return {
    factsOf(address) {
      const remembered = known.get(address)
      if (remembered !== undefined) return remembered
      const files = folders.flatMap((folder) => folder.files())
      const facts = factsFrom({ files, seed }, address, warnOfBroken)
      known.set(address, facts)
      return facts
    },
    opening: () => opening,
    async close() {
      closing.abort()
      await working
    },
  }
}
