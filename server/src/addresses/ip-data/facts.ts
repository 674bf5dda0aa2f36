// What all sources together know of an address. Classes add up, unless a list says that the address has none. The place and
// the AS number come from the first file that has them, in the order of file names, and last from the platform's own data.
import { clientKey } from '../client-ip.ts'
import type { AddressClass } from './classes.ts'
import type { AddressFile } from './folder.ts'
import { HOSTING_AS_NUMBERS } from './hosting-as-numbers.ts'
import type { MmdbFacts } from './mmdb.ts'
import { type AddressKey, addressKey, type RangeTable, valueIn } from './ranges.ts'

/** Degrees; both are known, or neither is. */
export type Coordinates = { latitude: number; longitude: number }

export type AddressFacts = {
  /** All that it is in; none for an address of which nothing is known. */
  classes: ReadonlySet<AddressClass>
  /** Null: unknown, as for a private address. Precise enough to choose a region, not to refuse a client. */
  coordinates: Coordinates | null
  /** ISO 3166, two capital letters. */
  country: string | null
  as_number: number | null
  /** Who said so, for people: names of files, or SEED. */
  sources: readonly string[]
}

/** `seed`: AS numbers by address; null: they are not read, or not yet. */
export type AddressSources = { files: readonly AddressFile[]; seed: RangeTable | null }

/** In `sources`: the AS numbers that come with the platform. */
const SEED = 'hosting AS numbers'
/** Shared by all addresses without a class. */
const NO_CLASSES: ReadonlySet<AddressClass> = new Set()
const NO_SOURCES: readonly string[] = []

/** `onBroken` hears of an mmdb file that cannot be read at this address: it knows nothing there. */
export function factsFrom(
  { files, seed }: AddressSources,
  address: string,
  onBroken: (name: string, error: unknown) => void,
): AddressFacts {
  const client = clientKey(address)
  // A /64 is one client; an address that carries an IPv4 address is that one.
  const subject = client.endsWith('/64') ? address : client
  const key = addressKey(subject)
  const place: Pick<AddressFacts, 'coordinates' | 'country'> = { coordinates: null, country: null }
  if (key === null) return { ...place, as_number: null, classes: NO_CLASSES, sources: NO_SOURCES }
  let as_number: number | null = null
  const sources = new Set<string>()
  const classes = new Set<AddressClass>()
  for (const file of files) {
    if (file.kind !== 'mmdb') continue
    const said = askMmdb(file, subject, onBroken)
    if (said === null) continue
    sources.add(file.name)
    const { latitude, longitude } = said
    if (latitude !== null && longitude !== null) place.coordinates ??= { latitude, longitude }
    place.country ??= said.country
    as_number ??= said.as_number
    for (const name of said.classes) classes.add(name)
  }
  if (seed !== null) as_number ??= valueIn(seed, key)
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
  return {
    ...place,
    as_number,
    classes: is_exempt || classes.size === 0 ? NO_CLASSES : classes,
    sources: sources.size === 0 ? NO_SOURCES : [...sources],
  }
}

function askMmdb(
  file: AddressFile & { kind: 'mmdb' },
  address: string,
  onBroken: (name: string, error: unknown) => void,
): MmdbFacts | null {
  try {
    return file.mmdb.factsOf(address)
  } catch (error) {
    onBroken(file.name, error)
    return null
  }
}

function isIn({ list }: AddressFile & { kind: 'list' }, key: AddressKey, as_number: number | null): boolean {
  return valueIn(list.ranges, key) !== null || (as_number !== null && list.as_numbers.has(as_number))
}
