import assert from 'node:assert/strict'
import { isIP, SocketAddress } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { clientIp, clientKey, parseTrustedProxies } from './client-ip.ts'

const PROXY = '10.1.2.3'
const trusted = parseTrustedProxies(['10.0.0.0/8', '2001:db8:aa::/48', '192.0.2.1'])
const behindProxy = (forwarded_for: string | undefined) => clientIp({ peer: PROXY, forwarded_for }, trusted)

test('an untrusted peer is the client, whatever it forwards', () => {
  for (const forwarded_for of [undefined, '', '1.2.3.4', '10.0.0.1', 'x, 1.2.3.4']) {
    assert.equal(clientIp({ peer: '203.0.113.9', forwarded_for }, trusted), '203.0.113.9')
    assert.equal(clientIp({ peer: PROXY, forwarded_for }, parseTrustedProxies([])), PROXY)
  }
})

test('the client is the first untrusted address from the right', () => {
  assert.equal(behindProxy('203.0.113.9'), '203.0.113.9')
  assert.equal(behindProxy('6.6.6.6, 203.0.113.9'), '203.0.113.9')
  assert.equal(behindProxy('6.6.6.6,203.0.113.9 ,\t10.9.9.9'), '203.0.113.9')
  assert.equal(behindProxy('6.6.6.6, 203.0.113.9, 192.0.2.1, 2001:db8:aa::1'), '203.0.113.9')
  assert.equal(behindProxy('garbage, 203.0.113.9'), '203.0.113.9')
  assert.equal(behindProxy(`${'6.6.6.6, '.repeat(200)}203.0.113.9`), '203.0.113.9')
  assert.equal(clientIp({ peer: '::ffff:10.1.2.3', forwarded_for: '203.0.113.9' }, trusted), '203.0.113.9')
  assert.equal(clientIp({ peer: '2001:DB8:AA::7', forwarded_for: '203.0.113.9' }, trusted), '203.0.113.9')
})

test('when every hop is trusted, the client is the furthest of them', () => {
  assert.equal(behindProxy('10.0.0.7, 10.0.0.8'), '10.0.0.7')
})

test('ports, brackets and upper case are read; the answer is canonical', () => {
  assert.equal(behindProxy('203.0.113.9:4711'), '203.0.113.9')
  assert.equal(behindProxy('[2001:DB8::0:A]:4711'), '2001:db8::a')
  assert.equal(behindProxy('[2001:db8::a]'), '2001:db8::a')
  assert.equal(behindProxy('2001:0db8:0:0::A'), '2001:db8::a')
  assert.equal(behindProxy('::FFFF:cb00:7109'), '203.0.113.9')
})

const MALFORMED = [
  '',
  ' ',
  'unknown',
  '203.0.113',
  '203.0.113.9.1',
  '203.0.113.256',
  '010.0.0.1',
  '0x7f.0.0.1',
  '2130706433',
  '203.0.113.9:',
  '203.0.113.9:123456',
  '[203.0.113.9]',
  '[2001:db8::1',
  '2001:db8::1]',
  'fe80::1%eth0',
  '[fe80::1%1]:80',
  '::ffff:010.0.0.1',
  // IPv4-compatible, long out of use: one parser takes it for IPv4-mapped.
  '::1.2.3.4',
  '1::2::3',
  ':::',
  '2001:db8::1/64',
  '"203.0.113.9"',
  'for=203.0.113.9',
  '1'.repeat(5000),
]

test('a hop that cannot be read leaves the peer, never what stands left of it', () => {
  for (const hop of MALFORMED) {
    assert.equal(behindProxy(hop), PROXY, hop)
    assert.equal(behindProxy(`6.6.6.6, ${hop}`), PROXY, hop)
    assert.equal(behindProxy(`6.6.6.6, ${hop}, 10.0.0.8`), PROXY, hop)
  }
  assert.equal(behindProxy(`6.6.6.6, ${'10.0.0.8, '.repeat(200)}10.0.0.9`), PROXY)
  assert.equal(behindProxy(`6.6.6.6,${' '.repeat(16_000)}x`), PROXY)
})

test('what a client writes never changes what a proxy appended to it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii' }), (written) => {
      assert.equal(behindProxy(`${written}, 203.0.113.9`), '203.0.113.9')
    }),
  )
})

test('the zone of a peer is not part of the address', () => {
  assert.equal(clientIp({ peer: 'fe80::1%eth0', forwarded_for: undefined }, trusted), 'fe80::1')
})

test('blocks of trusted proxies: single addresses, mapped ones, and no block of everybody', () => {
  const mapped = parseTrustedProxies(['::ffff:10.0.0.0/104'])
  assert.equal(clientIp({ peer: '10.9.9.9', forwarded_for: '203.0.113.9' }, mapped), '203.0.113.9')
  assert.equal(clientIp({ peer: '11.9.9.9', forwarded_for: '203.0.113.9' }, mapped), '11.9.9.9')
  const single = parseTrustedProxies(['::1'])
  assert.equal(clientIp({ peer: '::1', forwarded_for: '203.0.113.9' }, single), '203.0.113.9')
  assert.equal(clientIp({ peer: '::2', forwarded_for: '203.0.113.9' }, single), '::2')
  for (const wrong of [
    '',
    '10.0.0.0/',
    '10.0.0.0/33',
    '0.0.0.0/0',
    '::/0',
    '10/8',
    '10.0.0.0/8/8',
    '10.0.0.0/+8',
    '::/129',
    'all',
  ]) {
    assert.throws(() => parseTrustedProxies(['127.0.0.1', wrong]), /not (a CIDR|possible)/, wrong)
  }
})

test('IPv4 is one client an address, in each spelling of it', () => {
  for (const spelling of [
    '1.2.3.4',
    '::ffff:1.2.3.4',
    '::ffff:102:304',
    '::FFFF:0102:0304',
    '0:0:0:0:0:ffff:1.2.3.4',
  ]) {
    assert.equal(clientKey(spelling), '1.2.3.4', spelling)
  }
  assert.notEqual(clientKey('1.2.3.5'), clientKey('1.2.3.4'))
})

test('IPv6 is one client a /64, in each spelling of it', () => {
  assert.equal(clientKey('2001:db8:0:1::1'), '2001:db8:0:1::/64')
  assert.equal(clientKey('2001:DB8:0:1:ffff:FFFF:ffff:ffff'), '2001:db8:0:1::/64')
  assert.equal(clientKey('2001:db8::1.2.3.4'), '2001:db8::/64')
  assert.notEqual(clientKey('2001:db8:0:2::1'), clientKey('2001:db8:0:1::1'))
})

test('prefixes that everybody shares are counted by the IPv4 address inside', () => {
  assert.equal(clientKey('64:ff9b::1.2.3.4'), '1.2.3.4')
  assert.equal(clientKey('::ffff:0:1.2.3.4'), '1.2.3.4')
  assert.equal(clientKey('2002:102:304:ffff::9'), '1.2.3.4')
  // Teredo, the example of RFC 4380: client 192.0.2.45 behind server 65.54.227.120; here with a public client.
  assert.equal(clientKey('2001:0:4136:e378:8000:63bf:fefd:fcfb'), '1.2.3.4')
})

test('an address that only claims to carry IPv4 never becomes loopback, private, or one key for everybody', () => {
  for (const address of [
    '64:ff9b::127.0.0.1',
    '2002:7f00:1::1',
    '::ffff:0:10.0.0.1',
    '2001:0:4136:e378:8000:63bf:80ff:fffe',
  ]) {
    assert.equal(clientKey(address), clientIp({ peer: address, forwarded_for: undefined }, []))
  }
  const shared = [
    '::1',
    '::2',
    '::1.2.3.4',
    'fe80::1',
    'fe80::2',
    '64:ff9b:1::1',
    '64:ff9b:1::2',
    '127.0.0.1',
    '127.0.0.2',
  ]
  assert.equal(new Set(shared.map(clientKey)).size, shared.length)
})

test('what is not an address is a short key of its own', () => {
  assert.equal(clientKey(''), '')
  assert.equal(clientKey('x'.repeat(1000)).length, 45)
})

test('whatever is accepted was read alike by both parsers, and its bucket does not depend on the spelling', () => {
  const hextet = fc.stringMatching(/^[0-9a-fA-F]{0,5}$/)
  const colons = fc.array(hextet, { minLength: 2, maxLength: 9 }).map((groups) => groups.join(':'))
  const octets = fc
    .array(fc.stringMatching(/^[0-9x]{1,3}$/), { minLength: 3, maxLength: 5 })
    .map((items) => items.join('.'))
  const mixed = fc.tuple(colons, octets).map((pair) => pair.join(':'))
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), colons, octets, mixed), (text) => {
      const answer = clientIp({ peer: PROXY, forwarded_for: text }, trusted)
      const family = isIP(text)
      if (family === 0) return assert.equal(answer, PROXY)
      const { address } = new SocketAddress({ address: text, family: family === 4 ? 'ipv4' : 'ipv6' })
      if (answer === PROXY) return assert.match(`${text} ${address}`, /^[0:]+:\d+(\.\d+){3} ::[0-9a-f.]*$/)
      if (address.startsWith('::ffff:') && isIP(address.slice(7)) === 4) assert.equal(answer, address.slice(7))
      else assert.equal(new SocketAddress({ address: answer, family: family === 4 ? 'ipv4' : 'ipv6' }).address, address)
      assert.equal(clientKey(text), clientKey(answer))
    }),
    { numRuns: 2000 },
  )
})
