import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { packAsNumbers, parseAsNumbers, unpackAsNumbers } from './as-numbers.ts'
import { parseList } from './list.ts'
import { addressKey, createRangeTable, valueIn } from './ranges.ts'

test('an address is in a table exactly when it is in one of the ranges', () => {
  const bounds = fc.tuple(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 20 }))
  fc.assert(
    fc.property(fc.array(bounds, { maxLength: 30 }), fc.boolean(), (pairs, is_ipv6) => {
      // Near the end of the numbers too.
      const offset = is_ipv6 ? (1n << 64n) - 321n : 2 ** 32 - 321
      const key = (at: number) => (typeof offset === 'bigint' ? offset + BigInt(at) : offset + at)
      const table = createRangeTable(pairs.map(([at, size]) => ({ start: key(at), end: key(at + size), value: 1 })))
      for (let at = 0; at <= 320; at++) {
        const expected = pairs.some(([start, size]) => at >= start && at <= start + size) ? 1 : null
        assert.equal(valueIn(table, key(at)), expected)
      }
      assert.equal(valueIn(table, is_ipv6 ? 0 : 0n), null)
    }),
  )
})

test('a block of a list holds the addresses that share its prefix, and no other', () => {
  const ipv4 = fc.tuple(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.integer({ min: 8, max: 32 }), fc.nat(2 ** 32 - 1))
  const text = (value: number) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.')
  fc.assert(
    fc.property(ipv4, ([network, bits, other]) => {
      const { list } = parseList(`${text(network)}/${bits}`)
      const isInside = (value: number) => (value ^ network) >>> (32 - bits) === 0 || bits === 0
      for (const value of [network, other, (network ^ (1 << (32 - bits))) >>> 0]) {
        const expected = bits === 32 ? value === network : isInside(value)
        assert.equal(
          valueIn(list.ranges, addressKey(text(value))!) !== null,
          expected,
          `${text(value)} in ${text(network)}/${bits}`,
        )
      }
    }),
  )
})

test('a list says which lines it does not understand, and a text that is none is refused', () => {
  const good = '192.0.2.1\nAS64500\n2001:db8::/32 # ours\n\n; nothing\n10.0.0.1 - 10.0.0.9\n'
  const { list, bad_lines } = parseList(`${good}nonsense\n0.0.0.0/0\n::/0\n192.0.2.300\n`)
  assert.deepEqual([list.entry_count, bad_lines], [4, 4])
  assert.deepEqual([...list.as_numbers], [64500])
  for (const line of [
    '1.2.3.4/33',
    '010.0.0.1',
    '1.2.3.4/-1',
    'AS0',
    'AS4294967296',
    '10.0.0.9-10.0.0.1',
    '1.1.1.1-2001::',
    '1.2.3.4/8/8',
    '0.0.0.0-255.255.255.255',
  ]) {
    assert.throws(() => parseList(line), /most of its lines/, line)
  }
  assert.equal(parseList('').list.entry_count, 0)
})

test('AS numbers come from two files in order; anything else is refused', () => {
  const ipv6 = `${0x2001_0db8n << 96n},${(0x2001_0db9n << 96n) - 1n},64501,"Some, Inc."`
  const table = parseAsNumbers('256,511,64500,A\n512,1023,64500,A\n1024,1024,64502,"B, C"\n', ipv6)
  const of = (address: string) => valueIn(table, addressKey(address)!)
  assert.deepEqual(['0.0.0.255', '0.0.1.0', '0.0.3.255', '0.0.4.0', '0.0.4.1'].map(of), [
    null,
    64500,
    64500,
    64502,
    null,
  ])
  assert.deepEqual(['2001:db8::1', '2001:db8:ffff:ffff::1', '2001:db9::'].map(of), [64501, 64501, null])
  for (const text of ['512,1023,1,A\n0,255,1,A', '5,1,1,A', '1,2,x,A', '1,2,0,A', 'a,b,c', '<html>']) {
    assert.throws(() => parseAsNumbers(text, ''), /not in order/, text)
  }
})

test('a packed table of AS numbers is the same after unpacking; other bytes are refused', () => {
  const ipv6 = `${0x2001_0db8n << 96n},${(0x2001_0db9n << 96n) - 1n},64501,"Some, Inc."`
  const table = parseAsNumbers('256,511,64500,A\n1024,1024,64502,B\n2048,2048,64500,A\n', ipv6)
  const bytes = packAsNumbers(table)
  // As a file of another length is read: not at the start of its memory.
  for (const copy of [bytes, Buffer.concat([Buffer.from('abc'), bytes]).subarray(3)]) {
    assert.deepEqual(unpackAsNumbers(copy), table)
  }
  const empty = parseAsNumbers('', '')
  assert.deepEqual(unpackAsNumbers(packAsNumbers(empty)), empty)
  for (const length of [0, 3, 7, bytes.length - 1]) {
    assert.throws(() => unpackAsNumbers(bytes.subarray(0, length)), /length/)
  }
  assert.throws(() => unpackAsNumbers(Buffer.concat([bytes, Buffer.from('a')])), /length/)
})
