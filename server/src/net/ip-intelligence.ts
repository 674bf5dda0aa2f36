// What is known of an address: whether it is a hosting provider's, a proxy's, a Tor exit's or a VPN's, and where it is.
// Told by the operator's own lists and mmdb files, by lists that others publish, and last by AS numbers that come with the
// platform; files are read again when they change, and what says nothing of an address leaves it to the others. Facts are
// remembered by address until the data change.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { clientBucket } from './client-ip.ts'
import type { AddressClass } from './ip-data/classes.ts'
import { type Feeds, type FeedsOptions, openFeeds } from './ip-data/feeds.ts'
import { type AddressFile, createAddressFolder } from './ip-data/folder.ts'
import { HOSTING_AS_NUMBERS } from './ip-data/hosting-as-numbers.ts'
import { type AddressKey, addressKey, type RangeTable, valueIn } from './ip-data/ranges.ts'
import { readSeed } from './ip-data/read.ts'

export type { AddressClass } from './ip-data/classes.ts'
export { ADDRESS_CLASSES } from './ip-data/classes.ts'

/** Degrees; both are known, or neither is. */
export type Coordinates = { latitude: number; longitude: number }

export type AddressFacts = {
  /** All that it is in; none for an address of which nothing is known. */
  classes: ReadonlySet<AddressClass>
  /** Null: nobody knows where it is (a private address, say). Good for a region, not for a door. */
  coordinates: Coordinates | null
  /** ISO 3166, two capital letters. */
  country: string | null
  as_number: number | null
  /** Who said so, for people: names of files, or SEED. */
  sources: readonly string[]
}

export type IpIntelligence = {
  /** As of now. `address` is in canonical form, as a request has it. */
  factsOf: (address: string) => AddressFacts
  /** Until the data have been read for the first time, what to wait for (some seconds at most); then null. */
  opening: () => Promise<void> | null
  close: () => Promise<void>
}

/** In `sources`: the AS numbers that come with the platform. */
const SEED = 'hosting AS numbers'
const LOOK_MS = 1_000
/** Without data people play; who comes in the first moments of a process waits for them this long. */
const OPENING_MS_MAX = 5_000
/** Addresses whose facts are remembered. */
const KNOWN_MAX = 50_000

export type IpIntelligenceOptions = {
  /** Of the operator. It need not be there. */
  folder: string
  /** Whether the AS numbers that come with the platform are read. */
  has_seed: boolean
  feeds: Omit<FeedsOptions, 'now' | 'log'>
  now: () => number
  log: Logger
}

export function openIpIntelligence(options: IpIntelligenceOptions): IpIntelligence {
  const { log } = options
  const folders = [options.folder, options.feeds.folder].map((folder) => createAddressFolder(folder, log))
  let seed: RangeTable | null = null
  const known = new Map<string, AddressFacts>()
  const broken = new Set<string>()
  const closing = new AbortController()

  async function look(): Promise<void> {
    for (const folder of folders) if (await folder.look()) known.clear()
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

  /** A feed may take a minute: files are looked at meanwhile. */
  async function keepLooking(): Promise<void> {
    while (!closing.signal.aborted) {
      await look()
      await pause(LOOK_MS)
    }
  }

  async function keepRefreshing(feeds: Feeds | null): Promise<void> {
    while (feeds !== null && !closing.signal.aborted) {
      await feeds.refresh(closing.signal)
      await pause(LOOK_MS)
    }
  }

  const feeds = openFeeds({ ...options.feeds, now: options.now, log }).catch((error: unknown) => {
    log.error({ err: error }, 'published lists of addresses cannot be kept, and are not fetched')
    return null
  })
  // What is not wanted any more has been forgotten when the files are looked at.
  const first = Promise.all([feeds.then(look), openSeed()])
  const working = Promise.all([first.then(keepLooking), feeds.then(keepRefreshing)])
  let opening: Promise<void> | null = Promise.race([first, pause(OPENING_MS_MAX)]).then(() => {
    opening = null
  })

  /** A database that is broken in the middle knows nothing there. */
  function factsIn(file: AddressFile & { kind: 'mmdb' }, address: string) {
    try {
      return file.mmdb.factsOf(address)
    } catch (error) {
      if (!broken.has(file.name)) log.warn({ err: error, name: file.name }, 'a file of address data is broken inside')
      broken.add(file.name)
      return null
    }
  }

  function lookUp(address: string): AddressFacts {
    const client = clientBucket(address)
    // A /64 is one client; an address that carries an IPv4 address is that one.
    const subject = client.endsWith('/64') ? address : client
    const key = addressKey(subject)
    const facts = { coordinates: null as Coordinates | null, country: null as string | null }
    let as_number: number | null = null
    const sources = new Set<string>()
    const classes = new Set<AddressClass>()
    if (key === null) return { ...facts, as_number, classes, sources: [] }
    const files = folders.flatMap((folder) => folder.files())
    for (const file of files) {
      if (file.kind !== 'mmdb') continue
      const said = factsIn(file, subject)
      if (said === null) continue
      sources.add(file.name)
      const { latitude, longitude } = said
      if (latitude !== null && longitude !== null) facts.coordinates ??= { latitude, longitude }
      facts.country ??= said.country
      as_number ??= said.as_number
      for (const name of said.classes) classes.add(name)
    }
    as_number ??= seed === null ? null : valueIn(seed, key)
    if (seed !== null && as_number !== null && HOSTING_AS_NUMBERS.has(as_number)) {
      sources.add(SEED)
      classes.add('hosting')
    }
    let is_exempt = false
    for (const file of files) {
      if (file.kind !== 'list' || !isIn(file, key, as_number)) continue
      sources.add(file.name)
      if (file.list_class === 'none') is_exempt = true
      else classes.add(file.list_class)
    }
    if (is_exempt) classes.clear()
    return { ...facts, as_number, classes, sources: [...sources] }
  }

  return {
    factsOf(address) {
      const remembered = known.get(address)
      if (remembered !== undefined) return remembered
      const facts = lookUp(address)
      if (known.size >= KNOWN_MAX) known.delete(known.keys().next().value!)
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

function isIn({ list }: AddressFile & { kind: 'list' }, key: AddressKey, as_number: number | null): boolean {
  return valueIn(list.ranges, key) !== null || (as_number !== null && list.as_numbers.has(as_number))
}
