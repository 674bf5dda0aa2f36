// Creates ids (RFC 9562); those that follow from a name are the contract's. Version 7 is for new rows: these ids sort by time, so new rows are neighbours in
// an index. Version 5 is for an id that follows from a name, version 4 for an id that nobody may guess.
import { randomFillSync, randomUUID } from 'node:crypto'

/** The form of an id, for a regular expression. */
export const ID_FORM = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
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

export { gameModeId, idOfName } from '@musterhost/contract/name-ids'
