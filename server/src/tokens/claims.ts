// The claims of a token, and their encoding. A token belongs to exactly one subject. KINDS is the one table of the kinds,
// so a new kind is a member of Subject and a row there. The encoding is protobuf in this layout.
//
//   `message Claims { optional int64 expire_ms = 1; int64 issue_ms = 2; Uuid token_id = 3; Entitlement entitlement = 4 }`
//   `message Uuid { bytes bytes = 1 }`
//   `message Port { string name = 1; optional uint32 port = 2; optional Range port_range = 3; uint32 protocol = 4 }`
//   `message Range { uint32 min = 1; uint32 max = 2 }`
//   `message Entitlement { oneof kind { one message for each row of KINDS, at the number of its `entitlement` } }`
//
// Claims have one encoding only. Bytes that differ when they are encoded again (unknown or repeated members, trailing
// bytes, over-long numbers) are refused, even with a valid signature.
import assert from 'node:assert'
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { PortProtocol } from '@musterhost/contract'

export type Subject =
  | { kind: 'access'; name: string }
  | { kind: 'user'; user_id: string; session_id: string }
  | { kind: 'device'; device_link_id: string; name?: string; client_ip?: string }
  | { kind: 'cloud'; game_id: string }
  | { kind: 'public'; namespace_id: string }
  | { kind: 'lobby'; lobby_id: string; namespace_id: string }
  /** `role`: `spectator`; absent: a player. */
  | { kind: 'player'; player_id: string; lobby_id: string; namespace_id: string; role?: string }
  | { kind: 'development'; namespace_id: string; hostname: string; ports: readonly ClaimedPort[] }
  | { kind: 'dev_player'; namespace_id: string; player_id: string; role?: string }
  | { kind: 'game_user'; identity_id: string; namespace_id: string }

/** A port of a developer's own server: `port`, or a range. */
export type ClaimedPort = {
  name: string
  protocol: PortProtocol
  port: number | null
  port_range: { min: number; max: number } | null
}

/** A token contains the index in this list, so new protocols are appended. */
const PORT_PROTOCOLS: readonly PortProtocol[] = ['http', 'https', 'tcp', 'tcp_tls', 'udp']

export type Kind = Subject['kind']

/** A verified token. `expire_ms` null: it does not expire. Times are ms since the epoch. */
export type Token = Subject & { token_id: string; issue_ms: number; expire_ms: number | null }

/** Player tokens are issued for every seat and verified by the platform only, so they use a MAC, which is cheap. */
export type TokenAlgorithm = 'ed25519' | 'hmac-sha256'

/**
 * `ports` is repeated, and so the last member of its kind. `length_max`: characters of a text. Default: 128. `is_optional`:
 * a token may lack it.
 */
type Member = { field: number; type: 'id' | 'text' | 'ports'; length_max?: number; is_optional?: true }

type KindShape<K extends Kind> = {
  /** The visible beginning of the token. With `named`, `_` and a name follow. */
  label: string
  named: boolean
  algorithm: TokenAlgorithm
  /** Field number within Entitlement. Numbers of members (`field`) from 100 on are the platform's own. */
  entitlement: number
  members: Record<Exclude<keyof Extract<Subject, { kind: K }>, 'kind'>, Member>
}

export const KINDS: { readonly [K in Kind]: KindShape<K> } = {
  access: {
    label: 'access',
    named: false,
    algorithm: 'ed25519',
    entitlement: 16,
    members: { name: { field: 1, type: 'text' } },
  },
  user: {
    label: 'usr',
    named: false,
    algorithm: 'ed25519',
    entitlement: 2,
    members: { user_id: { field: 1, type: 'id' }, session_id: { field: 100, type: 'id' } },
  },
  device: {
    label: 'device',
    named: false,
    algorithm: 'ed25519',
    entitlement: 14,
    members: {
      device_link_id: { field: 1, type: 'id' },
      name: { field: 100, type: 'text', is_optional: true },
      client_ip: { field: 101, type: 'text', is_optional: true },
    },
  },
  cloud: {
    label: 'cloud',
    named: false,
    algorithm: 'ed25519',
    entitlement: 7,
    members: { game_id: { field: 1, type: 'id' } },
  },
  public: {
    label: 'pub',
    named: true,
    algorithm: 'ed25519',
    entitlement: 3,
    members: { namespace_id: { field: 1, type: 'id' } },
  },
  lobby: {
    label: 'lobby',
    named: false,
    algorithm: 'ed25519',
    entitlement: 4,
    members: { lobby_id: { field: 1, type: 'id' }, namespace_id: { field: 100, type: 'id' } },
  },
  player: {
    label: 'player',
    named: false,
    algorithm: 'hmac-sha256',
    entitlement: 5,
    members: {
      player_id: { field: 1, type: 'id' },
      lobby_id: { field: 100, type: 'id' },
      namespace_id: { field: 101, type: 'id' },
      role: { field: 102, type: 'text', is_optional: true },
    },
  },
  development: {
    label: 'dev',
    named: true,
    algorithm: 'ed25519',
    entitlement: 8,
    members: {
      namespace_id: { field: 1, type: 'id' },
      hostname: { field: 3, type: 'text', length_max: 253 },
      ports: { field: 4, type: 'ports' },
    },
  },
  dev_player: {
    label: 'dev_player',
    named: false,
    algorithm: 'hmac-sha256',
    entitlement: 9,
    members: {
      namespace_id: { field: 1, type: 'id' },
      player_id: { field: 2, type: 'id' },
      role: { field: 100, type: 'text', is_optional: true },
    },
  },
  game_user: {
    label: 'game_user',
    named: false,
    algorithm: 'ed25519',
    entitlement: 10,
    members: { identity_id: { field: 1, type: 'id' }, namespace_id: { field: 100, type: 'id' } },
  },
}

/** The same table as lists. */
const LAYOUTS = Object.entries(KINDS).map(([kind, shape]) => ({
  kind,
  entitlement: shape.entitlement,
  members: Object.entries<Member>(shape.members).map(([name, member]) => ({ name, ...member })),
}))
const LAYOUT_BY_KIND = new Map(LAYOUTS.map((layout) => [layout.kind, layout]))
const LAYOUT_BY_ENTITLEMENT = new Map(LAYOUTS.map((layout) => [layout.entitlement, layout]))

const EXPIRE_FIELD = 1
const ISSUE_FIELD = 2
const TOKEN_ID_FIELD = 3
const ENTITLEMENT_FIELD = 4
const UUID_BYTES_FIELD = 1

/** The last time of a Date, in ms since the epoch. */
const TIME_MS_MAX = 8_640_000_000_000_000
/** Characters of a text in a token, which clients send with every request. */
const TEXT_LENGTH_MAX = 128
const ID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Asserts that the token can be encoded: ids are lower-case UUIDs, times whole ms, texts 1 to 128 characters. */
export function encodeClaims(token: Token): Buffer {
  const layout = LAYOUT_BY_KIND.get(token.kind)
  assert(layout !== undefined && isTime(token.issue_ms) && (token.expire_ms === null || isTime(token.expire_ms)))
  const values: Record<string, unknown> = token
  const writer = new BinaryWriter()
  if (token.expire_ms !== null) writer.tag(EXPIRE_FIELD, WireType.Varint).int64(token.expire_ms)
  writer.tag(ISSUE_FIELD, WireType.Varint).int64(token.issue_ms)
  writeId(writer, TOKEN_ID_FIELD, token.token_id)
  writer.tag(ENTITLEMENT_FIELD, WireType.LengthDelimited).fork()
  writer.tag(layout.entitlement, WireType.LengthDelimited).fork()
  for (const member of layout.members) {
    const value = values[member.name]
    if (member.type === 'ports') {
      for (const port of value as readonly ClaimedPort[]) writePort(writer, member.field, port)
      continue
    }
    if (value === undefined && member.is_optional) continue
    assert(typeof value === 'string', `${member.name} is missing.`)
    if (member.type === 'id') {
      writeId(writer, member.field, value)
    } else {
      assert(isText(value, member.length_max), `${member.name} is not a text that a token can contain.`)
      writer.tag(member.field, WireType.LengthDelimited).string(value)
    }
  }
  const bytes = writer.join().join().finish()
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Null for all bytes that encodeClaims does not make. */
export function decodeClaims(bytes: Uint8Array): Token | null {
  const token = readClaims(bytes)
  return token !== null && encodeClaims(token).equals(bytes) ? token : null
}

function readClaims(bytes: Uint8Array): Token | null {
  try {
    const reader = new BinaryReader(bytes)
    const times = { issue_ms: Number.NaN, expire_ms: null as number | null }
    let token_id = ''
    let subject: Record<string, unknown> | null = null
    while (reader.pos < reader.len) {
      const [field, wire_type] = reader.tag()
      if (field === EXPIRE_FIELD && wire_type === WireType.Varint) times.expire_ms = Number(reader.int64())
      else if (field === ISSUE_FIELD && wire_type === WireType.Varint) times.issue_ms = Number(reader.int64())
      else if (field === TOKEN_ID_FIELD && wire_type === WireType.LengthDelimited) token_id = readId(reader.bytes())
      else if (field === ENTITLEMENT_FIELD && wire_type === WireType.LengthDelimited)
        subject = readSubject(reader.bytes())
      else return null
    }
    if (subject === null || token_id === '' || !isTime(times.issue_ms)) return null
    if (times.expire_ms !== null && !isTime(times.expire_ms)) return null
    // readSubject uses KINDS, which the compiler compares with the members of Subject.
    return { ...(subject as Subject), token_id, ...times }
  } catch {
    // The reader throws on bytes that are not protobuf.
    return null
  }
}

/** Null unless all members of exactly one kind are there. */
function readSubject(bytes: Uint8Array): Record<string, unknown> | null {
  const outer = new BinaryReader(bytes)
  const [entitlement, outerType] = outer.tag()
  const layout = LAYOUT_BY_ENTITLEMENT.get(entitlement)
  if (layout === undefined || outerType !== WireType.LengthDelimited) return null
  const reader = new BinaryReader(outer.bytes())
  const subject: Record<string, unknown> = { kind: layout.kind }
  for (const member of layout.members) {
    if (member.type === 'ports') {
      subject[member.name] = readPorts(reader, member.field)
      continue
    }
    if (member.is_optional && nextField(reader) !== member.field) continue
    const [field, wire_type] = reader.tag()
    if (field !== member.field || wire_type !== WireType.LengthDelimited) return null
    const value = member.type === 'id' ? readId(reader.bytes()) : reader.string(true)
    if (member.type === 'id' ? value === '' : !isText(value, member.length_max)) return null
    subject[member.name] = value
  }
  return subject
}

/** Null at the end. The reader stays where it is. */
function nextField(reader: BinaryReader): number | null {
  if (reader.pos >= reader.len) return null
  const { pos } = reader
  const [field] = reader.tag()
  reader.pos = pos
  return field
}

function writePort(writer: BinaryWriter, at: number, { name, protocol, port, port_range }: ClaimedPort): void {
  writer.tag(at, WireType.LengthDelimited).fork()
  writer.tag(1, WireType.LengthDelimited).string(name)
  if (port !== null) writer.tag(2, WireType.Varint).uint32(port)
  if (port_range !== null) {
    writer.tag(3, WireType.LengthDelimited).fork()
    writer.tag(1, WireType.Varint).uint32(port_range.min).tag(2, WireType.Varint).uint32(port_range.max).join()
  }
  writer.tag(4, WireType.Varint).uint32(PORT_PROTOCOLS.indexOf(protocol)).join()
}

/** Reads to the end of the message. Another form than that of writePort differs when it is encoded again. */
function readPorts(outer: BinaryReader, at: number): ClaimedPort[] {
  const ports: ClaimedPort[] = []
  while (outer.pos < outer.len) {
    const [outer_field] = outer.tag()
    assert(outer_field === at)
    const reader = new BinaryReader(outer.bytes())
    const read: ClaimedPort = { name: '', protocol: 'http', port: null, port_range: null }
    while (reader.pos < reader.len) {
      const [field] = reader.tag()
      if (field === 1) read.name = reader.string(true)
      else if (field === 2) read.port = reader.uint32()
      else if (field === 3) read.port_range = readRange(reader.bytes())
      else read.protocol = PORT_PROTOCOLS[reader.uint32()] ?? 'http'
    }
    ports.push(Object.freeze(read))
  }
  return ports
}

function readRange(bytes: Uint8Array): { min: number; max: number } {
  const reader = new BinaryReader(bytes)
  reader.tag()
  const min = reader.uint32()
  reader.tag()
  return { min, max: reader.uint32() }
}

function writeId(writer: BinaryWriter, field: number, id: string): void {
  assert(ID_PATTERN.test(id), 'A token contains lower-case UUIDs only.')
  const bytes = Buffer.from(id.replaceAll('-', ''), 'hex')
  writer.tag(field, WireType.LengthDelimited).fork().tag(UUID_BYTES_FIELD, WireType.LengthDelimited).bytes(bytes).join()
}

/** The id of a Uuid message; '' when the message is invalid. */
function readId(bytes: Uint8Array): string {
  const reader = new BinaryReader(bytes)
  const [field, wire_type] = reader.tag()
  if (field !== UUID_BYTES_FIELD || wire_type !== WireType.LengthDelimited) return ''
  const id = reader.bytes()
  if (id.length !== 16) return ''
  const hex = Buffer.from(id.buffer, id.byteOffset, id.length).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

function isTime(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= TIME_MS_MAX
}

function isText(value: string, length_max = TEXT_LENGTH_MAX): boolean {
  return value.length > 0 && value.length <= length_max && value.isWellFormed() && !value.includes('\0')
}
