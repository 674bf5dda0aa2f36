import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { decodeClaims, encodeClaims, KINDS, type Kind, type Token } from './claims.ts'

const id = fc.uuid().map((text) => text.toLowerCase())
const time = fc.integer({ min: 0, max: 8_640_000_000_000_000 })
const stamp = fc.record({ token_id: id, issue_ms: time, expire_ms: fc.option(time) })
const name = fc.string({ minLength: 1, maxLength: 64, unit: 'grapheme' }).filter((text) => !text.includes('\0'))
const subject = fc.oneof(
  fc.record({ kind: fc.constant('access' as const), name }),
  fc.record({ kind: fc.constant('user' as const), user_id: id, session_id: id }),
  fc.record({ kind: fc.constant('device' as const), device_link_id: id }),
  fc.record({ kind: fc.constant('cloud' as const), game_id: id }),
  fc.record({ kind: fc.constant('public' as const), namespace_id: id }),
  fc.record({ kind: fc.constant('lobby' as const), lobby_id: id, namespace_id: id }),
  fc.record({ kind: fc.constant('player' as const), player_id: id, lobby_id: id, namespace_id: id }),
  fc.record({
    ...{ kind: fc.constant('player' as const), player_id: id, lobby_id: id, namespace_id: id },
    role: fc.constant('spectator'),
  }),
  fc.record({
    kind: fc.constant('development' as const),
    namespace_id: id,
    hostname: fc.domain(),
    ports: fc.array(
      fc.constant(null).chain(() => claimedPort),
      { maxLength: 16 },
    ),
  }),
  fc.record({ kind: fc.constant('dev_player' as const), namespace_id: id, player_id: id }),
  fc.record({ kind: fc.constant('game_user' as const), identity_id: id, namespace_id: id }),
)
const port = fc.integer({ min: 1, max: 65_535 })
const claimedPort = fc.record(
  {
    name: fc.stringMatching(/^[a-z0-9]{1,16}$/),
    protocol: fc.constantFrom('http' as const, 'https' as const, 'tcp' as const, 'tcp_tls' as const, 'udp' as const),
    port: fc.option(port),
    port_range: fc.option(fc.record({ min: port, max: port }, { noNullPrototype: true })),
  },
  { noNullPrototype: true },
)
const token: fc.Arbitrary<Token> = fc.tuple(subject, stamp).map(([what, when]) => ({ ...what, ...when }))

const LOBBY: Token = {
  kind: 'lobby',
  lobby_id: '0190a0b0-1234-7abc-8def-0123456789ab',
  namespace_id: '0190a0b0-1234-7abc-8def-0123456789ac',
  token_id: '0190a0b0-1234-7abc-8def-0123456789ad',
  issue_ms: 1_790_000_000_000,
  expire_ms: 1_790_000_060_000,
}

test('encoded claims of every kind are decoded', () => {
  fc.assert(
    fc.property(token, (said) => assert.deepEqual(decodeClaims(encodeClaims(said)), said)),
    { numRuns: 1000 },
  )
})

test('no two kinds share a field number, and every kind is in the table', () => {
  const numbers = Object.values(KINDS).map((shape) => shape.entitlement)
  assert.equal(new Set(numbers).size, numbers.length)
  const kinds = new Set<Kind>(fc.sample(subject, 500).map((what) => what.kind))
  assert.deepEqual([...kinds].sort(), Object.keys(KINDS).sort())
})

test('arbitrary bytes are no claims, or exactly the encoding of some', () => {
  const mutated = fc
    .tuple(token, fc.nat(), fc.uint8Array({ maxLength: 4 }), fc.nat(3))
    .map(([said, at, bytes, removed]) => {
      const valid = encodeClaims(said)
      const index = at % (valid.length + 1)
      return Buffer.concat([valid.subarray(0, index), bytes, valid.subarray(index + removed)])
    })
  fc.assert(
    fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 300 })), (bytes) => {
      const said = decodeClaims(bytes)
      if (said !== null) assert.deepEqual(encodeClaims(said), Buffer.from(bytes))
    }),
    { numRuns: 5000 },
  )
})

/** A message of the same layout as LOBBY's, with the members changed. */
function craft(change: {
  head?: (writer: BinaryWriter) => void
  expire?: bigint
  entitlement?: number
  inside?: (writer: BinaryWriter) => void
  tail?: (writer: BinaryWriter) => void
}): Buffer {
  const writeId = (writer: BinaryWriter, field: number, last: string): void => {
    const bytes = Buffer.from(`0190a0b012347abc8def0123456789${last}`, 'hex')
    writer.tag(field, WireType.LengthDelimited).fork().tag(1, WireType.LengthDelimited).bytes(bytes).join()
  }
  const writer = new BinaryWriter()
  change.head?.(writer)
  writer.tag(1, WireType.Varint).int64(change.expire ?? 1_790_000_060_000n)
  writer.tag(2, WireType.Varint).int64(1_790_000_000_000n)
  writeId(writer, 3, 'ad')
  writer
    .tag(4, WireType.LengthDelimited)
    .fork()
    .tag(change.entitlement ?? 4, WireType.LengthDelimited)
    .fork()
  writeId(writer, 1, 'ab')
  writeId(writer, 100, 'ac')
  change.inside?.(writer)
  writer.join().join()
  change.tail?.(writer)
  return Buffer.from(writer.finish())
}

test('a message with unknown, repeated, out-of-range or over-long members is refused', () => {
  assert.deepEqual(decodeClaims(craft({})), LOBBY, 'the crafted message itself must be a claim')
  const wrong: Record<string, Buffer> = {
    'unknown varint': craft({ tail: (writer) => writer.tag(99, WireType.Varint).uint32(1) }),
    'unknown member of the kind': craft({ inside: (writer) => writer.tag(101, WireType.Varint).uint32(1) }),
    'unknown kind': craft({ entitlement: 98 }),
    'kind of other members': craft({ entitlement: 5 }),
    'kind of fewer members': craft({ entitlement: 3 }),
    'repeated time': craft({ tail: (writer) => writer.tag(2, WireType.Varint).int64(1_790_000_000_000n) }),
    'earlier time first': craft({ head: (writer) => writer.tag(1, WireType.Varint).int64(1n) }),
    'second entitlement': craft({
      head: (writer) => writer.tag(4, WireType.LengthDelimited).bytes(encodeClaims(LOBBY).subarray(-24)),
    }),
    'negative expiry': craft({ expire: -1n }),
    'expiry 2^63 - 1': craft({ expire: 2n ** 63n - 1n }),
    'expiry after the last date': craft({ expire: 8_640_000_000_000_001n }),
    'a group': craft({ head: (writer) => writer.tag(50, WireType.StartGroup).tag(50, WireType.EndGroup) }),
    'deep groups': Buffer.alloc(1500, 0x0b),
    'endless varint': Buffer.alloc(1500, 0xff),
    'length beyond the end': Buffer.from([0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
    'trailing byte': Buffer.concat([craft({}), Buffer.from([0])]),
    'field number zero': Buffer.concat([craft({}), Buffer.from([0x00, 0x00])]),
    'over-long tag': Buffer.concat([Buffer.from([0x88, 0x00]), craft({}).subarray(1)]),
    nothing: Buffer.alloc(0),
  }
  for (const [what, bytes] of Object.entries(wrong)) assert.equal(decodeClaims(bytes), null, what)
})

test('a value that a token cannot contain is not encoded', () => {
  const wrong: Partial<Record<string, string | number>>[] = [
    { lobby_id: LOBBY.token_id.toUpperCase() },
    { namespace_id: 'x' },
    { token_id: '' },
    { issue_ms: -1 },
    { issue_ms: 0.5 },
    { expire_ms: Number.NaN },
    { expire_ms: 2 ** 63 },
  ]
  for (const change of wrong)
    assert.throws(() => encodeClaims({ ...LOBBY, ...change } as Token), JSON.stringify(change))
  const { token_id, issue_ms, expire_ms } = LOBBY
  for (const text of ['', 'a\0b', '\ud800', 'x'.repeat(129)]) {
    assert.throws(() => encodeClaims({ kind: 'access', name: text, token_id, issue_ms, expire_ms }))
  }
})
