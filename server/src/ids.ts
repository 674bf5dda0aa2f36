// The one file that makes ids (RFC 9562): version 7 for new rows, which sort by time, so that new rows are neighbours
// in an index; version 5 where an id must follow from a name.
import { hash, randomFillSync } from 'node:crypto'

/** Random bytes are drawn for 512 ids at once: one call of the generator costs more than an id. */
const BYTES_PER_ID = 10
const pool = Buffer.alloc(BYTES_PER_ID * 512)
let used = pool.length

/** A new UUIDv7. `now_ms` is the platform's clock, ms since the epoch. */
export function newId(now_ms: number): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const time = Math.trunc(now_ms).toString(16).padStart(12, '0')
  const random = pool.toString('hex', used, used + BYTES_PER_ID)
  used += BYTES_PER_ID
  const variant = '89ab'.charAt(Number.parseInt(random.charAt(0), 16) & 3)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(1, 4)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`
}

/** RFC 9562 section 6.6: the namespace of fully qualified domain names. */
const DNS_NAMESPACE = Buffer.from('6ba7b8109dad11d180b400c04fd430c8', 'hex')

/** The UUIDv5 of a name: cloud answers name a region by id, matchmaker answers by name. */
export function idOfName(name: string): string {
  const bytes = hash('sha1', Buffer.concat([DNS_NAMESPACE, Buffer.from(name)]), 'buffer').subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
