// No packet leaves for an address that is not public, whichever way it is written, named or answered: counted by the
// kernel, in a network in which such packets would find a way out.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { createDns } from '../../src/outbound/dns.ts'
import { parseNetworks } from '../../src/outbound/public-address.ts'
import { FetchFailure, type FetchRules, safeFetch } from '../../src/outbound/safe-fetch.ts'
import { countConnects, inOwnNetwork, ip } from '../support/own-network.ts'
import { startPlatform } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { startNameServer, type Zone } from './name-server.ts'

const PORTS = [80, 443, 4444, 8443]
const URLS = 5_000
const QUESTIONS = 1_000

/** What is nobody's in the public internet. */
const INSIDE_4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4'],
]
const WELL_KNOWN_4 = ['127.0.0.1', '0.0.0.0', '169.254.169.254', '100.100.100.200', '255.255.255.255', '10.0.0.1']
const WELL_KNOWN_6 = ['::1', '::', 'fd00:ec2::254', 'fe80::1', 'ff02::1', 'fec0::1', '100::1', '2001:db8:1::2']

const inside4: fc.Arbitrary<number> = fc.oneof(
  ...INSIDE_4.map((block) => {
    const [network = '', bits] = block.split('/')
    return fc.nat({ max: 2 ** (32 - Number(bits)) - 1 }).map((host) => numberOf(network) + host)
  }),
  fc.constantFrom(...WELL_KNOWN_4).map(numberOf),
)
const hextet = fc.nat({ max: 0xffff }).map((part) => part.toString(16))
const tail = fc.array(hextet, { minLength: 4, maxLength: 4 }).map((parts) => parts.join(':'))
const inside6: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...WELL_KNOWN_6),
  tail.map((text) => `fd00:1:2:3:${text}`),
  tail.map((text) => `fe80::${text}`),
  inside4.map((value) => `::ffff:${dotted(value)}`),
  inside4.map((value) => `::${dotted(value)}`),
  inside4.map((value) => `64:ff9b::${dotted(value)}`),
  inside4.map((value) => `::ffff:0:${dotted(value)}`),
  inside4.map((value) => `2002:${hexPair(value)}::1`),
)

function numberOf(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}

function partsOf(value: number): number[] {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256)
}

function dotted(value: number): string {
  return partsOf(value).join('.')
}

function hexPair(value: number): string {
  const [a, b, c, d] = partsOf(value) as [number, number, number, number]
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

/** As inet_aton reads them, and a browser. */
const spellings: ((value: number) => string)[] = [
  dotted,
  (value) => `${dotted(value)}.`,
  (value) => String(value),
  (value) => `0x${value.toString(16)}`,
  (value) => `0${value.toString(8)}`,
  (value) =>
    partsOf(value)
      .map((part) => `0x${part.toString(16)}`)
      .join('.'),
  (value) =>
    partsOf(value)
      .map((part) => `0${part.toString(8)}`)
      .join('.'),
  (value) => `${partsOf(value)[0]}.${value % 2 ** 24}`,
  (value) =>
    [...dotted(value)]
      .map((char) => (char === '.' ? '。' : String.fromCodePoint(char.charCodeAt(0) + 0xfee0)))
      .join(''),
  (value) => `%${dotted(value).charCodeAt(0).toString(16)}${dotted(value).slice(1)}`,
]

const literal = fc.oneof(
  fc.tuple(inside4, fc.constantFrom(...spellings)).map(([value, spell]) => spell(value)),
  inside6.map((address) => `[${address}]`),
  fc.constantFrom('localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'gate.local', 'gate.internal'),
)

/** An answer with something inside in it: alone, among public ones, of either kind, behind an alias. */
const zone: fc.Arbitrary<Zone> = fc
  .record({
    hidden4: fc.array(inside4.map(dotted), { maxLength: 2 }),
    hidden6: fc.array(inside6, { maxLength: 2 }),
    public4: fc.array(fc.constantFrom('93.184.215.14', '8.8.8.8'), { maxLength: 2 }),
    public6: fc.array(fc.constantFrom('2606:4700::1111'), { maxLength: 1 }),
    CNAME: fc.option(fc.constant('inside.example.org'), { nil: undefined }),
  })
  .filter(({ hidden4, hidden6 }) => hidden4.length + hidden6.length > 0)
  .map(({ hidden4, hidden6, public4, public6, CNAME }) => ({
    A: [...public4, ...hidden4],
    AAAA: [...public6, ...hidden6],
    ...(CNAME !== undefined && { CNAME }),
  }))

inOwnNetwork(import.meta.filename, () => {
  ip('addr add 203.0.114.7/32 dev out')
  const connects = countConnects(PORTS)

  test('the counter counts: a public address is called', async (t) => {
    const names = await startNameServer(t)
    const before = connects()
    const call = safeFetch(wish('http://93.184.215.14:4444/'), rulesOf(names.address))
    await assert.rejects(call, { name: 'FetchFailure', reason: 'timeout' })
    assert.ok(connects() > before)
  })

  test(`${URLS} addresses that are not public, in all spellings: no packet`, async (t) => {
    const names = await startNameServer(t)
    const rules = rulesOf(names.address)
    const before = connects()
    const reasons: Record<string, number> = {}
    for (const [index, host] of fc.sample(literal, URLS).entries()) {
      const scheme = index % 2 === 0 ? 'http' : 'https'
      const outcome = await safeFetch(wish(`${scheme}://${host}:${PORTS[index % PORTS.length]}/`), rules).then(
        () => assert.fail(`${host} was called`),
        (error: unknown) => {
          if (error instanceof FetchFailure) return error.reason
          throw error
        },
      )
      reasons[outcome] = (reasons[outcome] ?? 0) + 1
    }
    assert.equal(connects(), before)
    assert.deepEqual(Object.keys(reasons).sort(), ['address_not_public'], JSON.stringify(reasons))
    assert.deepEqual(names.questions, [], 'an address is not asked for')
  })

  test(`${QUESTIONS} names that lead inside, each another answer: every find is refused, and no packet`, async (t) => {
    const names = await startNameServer(t)
    const zones = fc.sample(zone, QUESTIONS)
    const platform = await startPlatform(t, { env: { MUSTER_DNS_SERVERS: names.address } })
    const action = { enabled: true, verification_config: { url: 'http://gate.example.org:4444/' } }
    const game = await platform.game({ matchmaker: { game_modes: { default: { actions: { find: action } } } } })
    const before = connects()
    for (const zone of zones) {
      names.zones.set('gate.example.org', zone)
      const { code } = await failureOf(game.find())
      assert.equal(code, 'MATCHMAKER_VERIFICATION_REQUEST_FAILED', JSON.stringify(zone))
      // An endpoint that keeps failing is left alone for a while.
      platform.advance(PROBE_AFTER_MS)
    }
    assert.ok(names.questions.length >= 2 * QUESTIONS)
    assert.equal(connects(), before)
  })

  test('a name that is public at the first look-up, and private at the next, is looked up once', async (t) => {
    const names = await startNameServer(t)
    names.zones.set('gate.example.org', (asked) => ({ A: [asked === 1 ? '93.184.215.14' : '127.0.0.1'] }))
    let called = 0
    const canary = createServer(() => called++).listen(4444)
    await once(canary, 'listening')
    t.after(() => canary.close())
    const call = safeFetch(wish('http://gate.example.org:4444/'), rulesOf(names.address))
    await assert.rejects(call, { reason: 'timeout' })
    assert.equal(names.questions.filter((question) => question === 'A gate.example.org').length, 1)
    assert.equal(called, 0)
  })

  test('a public address that is this machine’s own is not called, unless the operator says so', async (t) => {
    const server = createServer((socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n')).listen(4444, '203.0.114.7')
    await once(server, 'listening')
    t.after(() => server.close())
    const names = await startNameServer(t)
    names.zones.set('own.example.org', { A: ['203.0.114.7'] })
    const before = connects()
    for (const host of ['203.0.114.7', 'own.example.org']) {
      const call = safeFetch(wish(`http://${host}:4444/`), rulesOf(names.address))
      await assert.rejects(call, { reason: 'address_not_public' }, host)
    }
    assert.equal(connects(), before)
    const allowing = rulesOf(names.address, ['203.0.114.7/32'])
    assert.equal((await safeFetch(wish('http://own.example.org:4444/'), allowing)).status, 204)
    assert.equal(connects(), before + 1)
  })
})

/** Longer than from one probe of a failing endpoint to the next. */
const PROBE_AFTER_MS = 3_000

const wish = (url: string) => ({ url, timeout_ms: 1_000, body_bytes_max: 0 })

function rulesOf(name_server: string, private_networks: string[] = []): FetchRules {
  return {
    schemes: ['http', 'https'],
    names: createDns([name_server]),
    private_networks: parseNetworks(private_networks),
    own_ports: [],
    own_addresses: 'refused',
  }
}
