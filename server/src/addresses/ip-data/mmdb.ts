// A file in MaxMind's DB format, of any provider. Known are the fields of MaxMind's Anonymous IP, City, Country and ASN
// databases and of their flat variants. A file with an inconsistent structure is refused before it replaces another. A file
// that turns out to be broken at one address knows nothing of that address.
import { isIPv6 } from 'node:net'
import { Reader } from 'mmdb-lib'
import type { AddressClass } from './classes.ts'

/** What one source says of an address; null and none where it says nothing. */
export type MmdbFacts = {
  classes: readonly AddressClass[]
  latitude: number | null
  longitude: number | null
  country: string | null
  as_number: number | null
}

export type Mmdb = {
  /** Null: the address is not in it. Throws when the file is broken at that place. */
  factsOf: (address: string) => MmdbFacts | null
  /** The day on which it was made, as it says; null when it does not. Old ones are wrong more often. */
  built: string | null
}

type Fields = Record<string, unknown>

/** By the field that says so. */
const CLASS_FIELDS: readonly (readonly [string, AddressClass])[] = [
  ['is_hosting_provider', 'hosting'],
  ['is_public_proxy', 'proxy'],
  ['is_residential_proxy', 'proxy'],
  ['is_tor_exit_node', 'tor'],
  ['is_anonymous_vpn', 'vpn'],
]
/** Looked up when a file is opened: a tree or a record that does not hang together mostly shows in one of them. */
const PROBES = [
  '1.1.1.1',
  '8.8.8.8',
  '81.2.69.142',
  '203.0.113.7',
  '223.255.255.254',
  '2001:4860:4860::8888',
  '2a02::1',
]

/** What stands before the metadata, which are in the last 128 KiB. */
const METADATA_MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')
/** The metadata of an mmdb file begin at most this far from its end. */
const METADATA_BYTES_MAX = 128 * 1024

/** Throws an Error with a sentence when the bytes are no such file, or not a whole one. */
export function openMmdb(bytes: Buffer): Mmdb {
  if (!bytes.subarray(-METADATA_BYTES_MAX).includes(METADATA_MARKER)) throw new Error('it has no metadata at its end')
  const reader = new Reader<never>(bytes)
  const { searchTreeSize, ipVersion, buildEpoch } = reader.metadata
  if (!(searchTreeSize > 0 && searchTreeSize < bytes.length)) throw new Error('its tree is larger than the file')
  const factsOf = (address: string): MmdbFacts | null => {
    // A tree of IPv4 would read the first bits of an IPv6 address as one.
    if (ipVersion === 4 && isIPv6(address)) return null
    const record: unknown = reader.get(address)
    return isFields(record) ? factsIn(record) : null
  }
  for (const address of PROBES) factsOf(address)
  return { factsOf, built: Number.isNaN(buildEpoch.getTime()) ? null : buildEpoch.toISOString().slice(0, 10) }
}

function factsIn(record: Fields): MmdbFacts {
  const traits = fieldsOf(record, 'traits')
  const location = fieldsOf(record, 'location')
  const latitude = numberOf(location.latitude ?? record.latitude)
  const longitude = numberOf(location.longitude ?? record.longitude)
  const is_place = latitude !== null && longitude !== null && Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180
  const classes = CLASS_FIELDS.filter(([field]) => (traits[field] ?? record[field]) === true).map(([, name]) => name)
  return {
    classes: [...new Set(classes)],
    latitude: is_place ? latitude : null,
    longitude: is_place ? longitude : null,
    country: countryOf(fieldsOf(record, 'country').iso_code ?? record.country_code),
    as_number: numberOf(traits.autonomous_system_number ?? record.autonomous_system_number),
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function fieldsOf(record: Fields, name: string): Fields {
  const value = record[name]
  return isFields(value) ? value : {}
}

/** Some files write numbers as text. */
function numberOf(value: unknown): number | null {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : null
}

function countryOf(value: unknown): string | null {
  return typeof value === 'string' && /^[A-Z]{2}$/.test(value) ? value : null
}
