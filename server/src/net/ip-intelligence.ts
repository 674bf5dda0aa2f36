// What is known of an address: whether it is a hosting provider's, a proxy's, a Tor exit's or a VPN's, and where it is.
// Told by the operator's own lists and mmdb files, which are read again when they change; a source that says nothing of an
// address leaves it to the next. Known addresses are remembered until the data change.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { clientBucket } from './client-ip.ts'
import type { AddressClass } from './ip-data/classes.ts'
import { type AddressFile, createAddressFolder } from './ip-data/folder.ts'
import { type AddressKey, addressKey, valueIn } from './ip-data/ranges.ts'

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
  /** Who said so, for people: names of files. */
  sources: readonly string[]
}

export type IpIntelligence = {
  /** As of now. `address` is in canonical form, as a request has it. */
  factsOf: (address: string) => AddressFacts
  /** Until the data have been read for the first time, what to wait for (some seconds at most); then null. */
  opening: () => Promise<void> | null
  close: () => Promise<void>
}

const LOOK_MS = 1_000
/** Without data people play; who comes in the first moments of a process waits for them this long. */
const OPENING_MS_MAX = 5_000
/** Addresses whose facts are remembered. */
const KNOWN_MAX = 50_000

export function openIpIntelligence(options: { folder: string; log: Logger }): IpIntelligence {
  const { log } = options
  const folder = createAddressFolder(options.folder, log)
  const known = new Map<string, AddressFacts>()
  const broken = new Set<string>()
  let is_closed = false

  async function look(): Promise<void> {
    if (await folder.look()) known.clear()
  }

  async function lookAgain(): Promise<void> {
    while (!is_closed) {
      await Promise.race([sleep(LOOK_MS, undefined, { ref: false }), closing.promise])
      if (!is_closed) await look()
    }
  }

  const closing = Promise.withResolvers<void>()
  let opening: Promise<void> | null = null
  const first = look().then(() => {
    opening = null
  })
  const looking = first.then(lookAgain)
  opening = Promise.race([first, sleep(OPENING_MS_MAX, undefined, { ref: false })]).then(() => {})

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
    const files = folder.files()
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
      is_closed = true
      closing.resolve()
      await looking
    },
  }
}

function isIn({ list }: AddressFile & { kind: 'list' }, key: AddressKey, as_number: number | null): boolean {
  return valueIn(list.ranges, key) !== null || (as_number !== null && list.as_numbers.has(as_number))
}
