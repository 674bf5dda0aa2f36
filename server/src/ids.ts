// The only file that creates ids (RFC 9562). Version 7 is for new rows: these ids sort by time, so new rows are neighbours in
// an index. Version 5 is for an id that follows from a name, version 4 for an id that nobody may guess.
import { hash, randomFillSync, randomUUID } from 'node:crypto'

/** Random bytes are drawn for 512 ids at once: one call of the generator costs more than an id. */
const BYTES_PER_ID = 10
const pool = Buffer.alloc(BYTES_PER_ID * 512)
let used = pool.length
/** The time of an id, as it is written: many ids have the same. */
let time = { ms: Number.NaN, text: '' }

/** A new UUIDv7. `now_ms` is the platform's clock, ms since the epoch. */
export function newId(now_ms: number): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const ms = Math.trunc(now_ms)
  if (ms !== time.ms) time = { ms, text: timeText(ms) }
  pool[used] = (pool[used]! & 0x0f) | 0x70
  pool[used + 2] = (pool[used + 2]! & 0x3f) | 0x80
  const rest = pool.toString('hex', used, used + BYTES_PER_ID)
  used += BYTES_PER_ID
  return `${time.text}-${rest.slice(0, 4)}-${rest.slice(4, 8)}-${rest.slice(8)}`
}

/** The id of a ray: a UUIDv4, whose 122 bits are all random. A client learns nothing from it about other requests. */
export function newRayId(): string {
  return randomUUID()
}

function timeText(ms: number): string {
  const digits = ms.toString(16).padStart(12, '0')
  return `${digits.slice(0, 8)}-${digits.slice(8)}`
}

/** RFC 9562 section 6.6: the namespace of fully qualified domain names. */
const DNS_NAMESPACE = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'

/** The id of a game mode: the same in every version of its game, and in every response, request and variable. */
export function gameModeId(game_id: string, name: string): string {
  return idOfName(name, game_id)
}

/**
 * The UUIDv5 of a name: cloud answers name a region by id, matchmaker answers by name. `within`: the id of what the name is
 * given in; else it means the same everywhere.
 */
export function idOfName(name: string, within: string = DNS_NAMESPACE): string {
  const space = Buffer.from(within.replaceAll('-', ''), 'hex')
  const bytes = hash('sha1', Buffer.concat([space, Buffer.from(name)]), 'buffer').subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
