// Ids that follow from a name (RFC 9562, version 5): the same name has the same id everywhere.
import { createHash } from 'node:crypto'

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
  const bytes = createHash('sha1').update(space).update(name).digest().subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
