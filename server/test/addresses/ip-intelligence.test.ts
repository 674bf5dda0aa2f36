import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rename, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { type AddressFeed, openFeeds } from '../../src/addresses/ip-data/feeds.ts'
import { readSeed } from '../../src/addresses/ip-data/read.ts'
import { type IpIntelligenceOptions, openIpIntelligence } from '../../src/addresses/ip-intelligence.ts'
import { createDns } from '../../src/outbound/dns.ts'
import { parseNetworks } from '../../src/outbound/public-address.ts'
import { until } from '../support/until.ts'
import { mmdbFile } from './mmdb-file.ts'

type Line = { level: number; name?: string; built?: string; msg: string }
const WARN = 40
const HOUR_MS = 3_600_000
const LOOPBACK = parseNetworks(['127.0.0.1/32'])

type Options = Partial<Omit<IpIntelligenceOptions, 'feeds'>> & { feeds?: Partial<IpIntelligenceOptions['feeds']> }

/** With these files in its folder. */
async function open(t: TestContext, files: Record<string, string | Buffer>, options: Options = {}) {
  const { feeds, ...more } = options
  const folder = await mkdtemp(join(tmpdir(), 'muster-ip-'))
  const lines: Line[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as Line) })
  /** At once and whole, as an operator should. */
  const put = async (name: string, content: string | Buffer) => {
    await writeFile(join(folder, `${name}.new`), content)
    await rename(join(folder, `${name}.new`), join(folder, name))
  }
  for (const [name, content] of Object.entries(files)) await put(name, content)
  const rules = { schemes: ['http'] as const, names: createDns([]), private_networks: LOOPBACK, own_ports: [] }
  const published = { feeds: [], folder: `${folder}-feeds`, interval_ms: HOUR_MS, rules, ...feeds }
  const data = openIpIntelligence({
    folder,
    has_seed: false,
    feeds: published,
    now: Date.now,
    elapsed: () => performance.now(),
    log,
    ...more,
  })
  t.after(async () => {
    await data.close()
    await rm(folder, { recursive: true, force: true })
    await rm(`${folder}-feeds`, { recursive: true, force: true })
  })
  await data.opening()
  assert.equal(data.opening(), null)
  return {
    folder,
    put,
    data,
    classesOf: (address: string) => [...data.factsOf(address).classes].sort(),
    lines,
    warnings: () => lines.filter(({ level }) => level === WARN),
  }
}

test('without any data nothing is known of an address, and no warning is logged', async (t) => {
  const { data, warnings } = await open(t, {})
  const nothing = { classes: new Set(), coordinates: null, country: null, as_number: null, sources: [] }
  for (const address of ['1.1.1.1', '127.0.0.1', '10.0.0.1', '2001:db8::1', '::1', '/run/socket']) {
    assert.deepEqual(data.factsOf(address), nothing)
  }
  assert.deepEqual(warnings(), [])
})

test('lists of addresses, blocks, ranges and AS numbers say what an address is', async (t) => {
  const { classesOf, data } = await open(t, {
    'tor.txt': '# exits\n192.0.2.1\n192.0.2.2 # another\n2001:db8:1::7\n9.9.9.9\n',
    'vpn.txt': '198.51.100.0/24\n192.0.2.1\n',
    'vpn-second.txt': '2001:db8:2::/48\r\n203.0.113.5-203.0.113.9\r\n',
    'hosting.txt': 'AS64500\n',
    'none.txt': '198.51.100.99\n',
    'as.mmdb': mmdbFile({ '192.0.2.128/25': { autonomous_system_number: 64500 } }),
    'notes.txt': '192.0.2.200\n',
  })
  assert.deepEqual(classesOf('192.0.2.1'), ['tor', 'vpn'])
  assert.deepEqual(classesOf('192.0.2.2'), ['tor'])
  assert.deepEqual(classesOf('192.0.2.3'), [])
  assert.deepEqual(classesOf('198.51.100.0'), ['vpn'])
  assert.deepEqual(classesOf('198.51.100.99'), [])
  assert.deepEqual(classesOf('203.0.113.5'), ['vpn'])
  assert.deepEqual(classesOf('203.0.113.10'), [])
  assert.deepEqual(classesOf('192.0.2.200'), ['hosting'])
  assert.deepEqual(data.factsOf('192.0.2.1').sources, ['tor.txt', 'vpn.txt'])
  // A /64 is one client: another address of it is no way out.
  assert.deepEqual(classesOf('2001:db8:1::ffff'), ['tor'])
  assert.deepEqual(classesOf('2001:db8:1:1::7'), [])
  assert.deepEqual(classesOf('2001:db8:2:ff::1'), ['vpn'])
  // NAT64 and 6to4 carry the client's IPv4 address.
  assert.deepEqual(classesOf('64:ff9b::909:909'), ['tor'])
  assert.deepEqual(classesOf('2002:909:909::1'), ['tor'])
})

test('mmdb files say it too, and where an address is', async (t) => {
  const { data, classesOf, lines } = await open(t, {
    'a-anonymous.mmdb': mmdbFile({
      '192.0.2.0/25': { is_anonymous: true, is_anonymous_vpn: true, is_hosting_provider: true },
      '192.0.2.128/25': { is_tor_exit_node: true, is_public_proxy: false },
      '2001:db8::/32': { is_residential_proxy: true },
    }),
    'b-city.mmdb': mmdbFile({
      '192.0.2.0/24': { country: { iso_code: 'DE' }, location: { latitude: 50.5, longitude: -8.25 } },
      '198.51.100.0/24': { country_code: 'US', latitude: '40.75', longitude: '-74.0' },
      '203.0.113.0/24': { location: { latitude: 500.5, longitude: 1.5 } },
    }),
  })
  assert.deepEqual(classesOf('192.0.2.1'), ['hosting', 'vpn'])
  assert.deepEqual(classesOf('192.0.2.200'), ['tor'])
  assert.deepEqual(classesOf('2001:db8::1'), ['proxy'])
  const { coordinates, country, sources } = data.factsOf('192.0.2.1')
  assert.deepEqual({ coordinates, country }, { coordinates: { latitude: 50.5, longitude: -8.25 }, country: 'DE' })
  assert.deepEqual(sources, ['a-anonymous.mmdb', 'b-city.mmdb'])
  assert.deepEqual(data.factsOf('198.51.100.1').coordinates, { latitude: 40.75, longitude: -74 })
  assert.equal(data.factsOf('203.0.113.1').coordinates, null)
  assert.deepEqual(
    lines.map(({ built }) => built),
    ['2026-09-21', '2026-09-21'],
  )
  assert.equal(data.factsOf('1.1.1.1').coordinates, null)
})

test('a changed file is read again; a broken or removed one is reported once, and its data stay', async (t) => {
  const city = (latitude: number) => mmdbFile({ '192.0.2.0/24': { location: { latitude, longitude: 1.5 } } })
  const { folder, put, data, classesOf, warnings } = await open(t, { 'city.mmdb': city(1.5), 'tor.txt': '192.0.2.1\n' })
  const latitude = () => data.factsOf('192.0.2.1').coordinates?.latitude
  assert.equal(latitude(), 1.5)
  await put('city.mmdb', city(2.5))
  await put('tor.txt', '192.0.2.2\n')
  await until('the files to be read', () => latitude() === 2.5 && classesOf('192.0.2.2').length === 1)
  assert.deepEqual(classesOf('192.0.2.1'), [])
  assert.deepEqual(warnings(), [])

  await truncate(join(folder, 'city.mmdb'), 60)
  await put('tor.txt', '<!doctype html>\n<p>Not now\n')
  await until('the warnings', () => warnings().length === 2)
  await put('vpn.txt', '192.0.2.3\n')
  await until('another look', () => classesOf('192.0.2.3').length === 1)
  assert.equal(latitude(), 2.5)
  assert.deepEqual(classesOf('192.0.2.2'), ['tor'])
  await rm(join(folder, 'tor.txt'))
  await until('the third warning', () => warnings().length === 3)
  assert.deepEqual(classesOf('192.0.2.2'), ['tor'])
  await put('tor.txt', '192.0.2.4\n')
  await until('it to be back', () => classesOf('192.0.2.4').length === 1)
  assert.deepEqual(
    warnings().map(({ name }) => name),
    ['city.mmdb', 'tor.txt', 'tor.txt'].sort((a, b) => a.localeCompare(b)),
  )
})

test('a database that is missing, cut off or of another format gives no data, and is reported once', async (t) => {
  const whole = mmdbFile({ '192.0.2.0/24': { latitude: 1.5, longitude: 2.5 } })
  const { data, warnings } = await open(t, {
    'cut.mmdb': whole.subarray(0, whole.length - 20),
    'empty.mmdb': Buffer.alloc(0),
    'headless.mmdb': whole.subarray(whole.length - 160),
    'text.mmdb': 'this is no database'.repeat(1000),
  })
  assert.equal(data.factsOf('192.0.2.1').coordinates, null)
  assert.deepEqual(
    warnings().map(({ name }) => name),
    ['cut.mmdb', 'empty.mmdb', 'headless.mmdb', 'text.mmdb'],
  )
})

const SEED_PACKAGE = '@ip-location-db/asn'
const has_seed_package = (() => {
  try {
    return import.meta.resolve(`${SEED_PACKAGE}/asn-ipv4-num.csv`) !== ''
  } catch {
    return false
  }
})()

test('what comes with the platform knows the large hosting providers, and takes no home for one', {
  skip: has_seed_package ? false : `${SEED_PACKAGE} is not installed`,
}, async (t) => {
  const { data, classesOf } = await open(
    t,
    { 'none.txt': 'AS14061\n', 'hosting-mine.txt': 'AS3320\n' },
    { has_seed: true },
  )
  assert.deepEqual(classesOf('95.216.1.1'), ['hosting'])
  assert.equal(data.factsOf('95.216.1.1').as_number, 24940)
  assert.deepEqual(classesOf('2a01:4f8:1::1'), ['hosting'])
  assert.deepEqual(classesOf('3.5.140.1'), ['hosting'])
  // People are behind content networks: relays of their phones.
  assert.deepEqual(classesOf('1.1.1.1'), [])
  assert.equal(data.factsOf('1.1.1.1').as_number, 13335)
  assert.deepEqual(classesOf('73.1.1.1'), [])
  assert.deepEqual(classesOf('10.0.0.1'), [])
  // The operator's word is above it.
  assert.equal(data.factsOf('159.89.1.1').as_number, 14061)
  assert.deepEqual(classesOf('159.89.1.1'), [])
  assert.deepEqual(classesOf('80.128.0.1'), ['hosting'])
  assert.equal(data.factsOf('95.216.1.1').coordinates, null)
})

test('a checkout reads the AS numbers as the first start has kept them, and makes a damaged or outdated file again', {
  skip: has_seed_package ? false : `${SEED_PACKAGE} is not installed`,
}, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-seed-'))
  t.after(() => rm(folder, { recursive: true }))
  const kept = join(folder, 'as-numbers.bin')
  const readWhole = async () => {
    const { ipv4, ipv6 } = (await readSeed(kept))!
    return [ipv4.values.length, ipv6.values.length]
  }
  /** Changes the file, and waits until it has been made again. */
  const madeAgainAfter = async (change: () => Promise<unknown>) => {
    await change()
    const { ino } = await stat(kept)
    assert.deepEqual(await readWhole(), lengths)
    await until('the file to be made again', async () => (await stat(kept)).ino !== ino)
    assert.deepEqual(await readFile(kept), bytes)
  }
  const lengths = await readWhole()
  const bytes = await until('the file to be made', () => readFile(kept).catch(() => null))
  assert.deepEqual(await readdir(folder), ['as-numbers.bin'])
  assert.deepEqual(await readWhole(), lengths)
  await madeAgainAfter(() => truncate(kept, 1_000))
  // The package was installed after it.
  await madeAgainAfter(() => utimes(kept, 0, 0))
})

/** Sends the response of the test; `asked` counts the requests. */
async function publish(t: TestContext, answer: { status: number; body: string }) {
  const served = { answer, asked: 0, url: '' }
  const server = createServer((_req, res) => {
    served.asked++
    res.writeHead(served.answer.status).end(served.answer.body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  served.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/exits`
  return served
}

test('published lists are fetched and used beside the others', async (t) => {
  const { url } = await publish(t, { status: 200, body: '# exits\n192.0.2.1\n' })
  const { data, classesOf, warnings } = await open(
    t,
    { 'vpn.txt': '192.0.2.1\n' },
    { feeds: { feeds: [{ list_class: 'tor', url }] } },
  )
  await until('the list', () => classesOf('192.0.2.1').length === 2)
  assert.deepEqual(classesOf('192.0.2.1'), ['tor', 'vpn'])
  assert.match(data.factsOf('192.0.2.1').sources.join(), /^vpn\.txt,tor-[0-9a-f]{16}\.txt$/)
  assert.deepEqual(warnings(), [])
})

test('a published list is kept when what comes instead is none, and asked for again after ever longer times', async (t) => {
  const published = await publish(t, { status: 200, body: '192.0.2.1\n' })
  const folder = await mkdtemp(join(tmpdir(), 'muster-feeds-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  let moved_ms = 0
  const feed = { list_class: 'tor', url: published.url } as const
  const openThese = (feeds: AddressFeed[], networks = LOOPBACK) =>
    openFeeds({
      feeds,
      folder,
      interval_ms: 6 * HOUR_MS,
      rules: { schemes: ['http'], names: createDns([]), private_networks: networks, own_ports: [] },
      now: () => Date.now() + moved_ms,
      elapsed: () => performance.now() + moved_ms,
      log: pino({ level: 'silent' }),
    })
  const held = async () => {
    const [name] = (await readdir(folder)).filter((item) => item.endsWith('.txt'))
    return name === undefined ? null : readFile(join(folder, name), 'utf8')
  }
  const { signal } = new AbortController()
  let { refresh } = await openThese([feed])
  /** Whether it was asked after this time. */
  const isAskedAfter = async (minutes: number) => {
    const before = published.asked
    moved_ms += minutes * 60_000
    await refresh(signal)
    return published.asked > before
  }
  assert.equal(await isAskedAfter(0), true)
  assert.equal(await isAskedAfter(6 * 60 - 1), false)
  // A restart does not ask again before it is time.
  refresh = (await openThese([feed])).refresh
  assert.equal(await isAskedAfter(0), false)
  assert.equal(await isAskedAfter(2), true)
  const bad = ['<html>\n<p>Busy', '# nothing\n', '', '\u0000\u0001\u0002'].map((body) => ({ status: 200, body }))
  const answers = [{ status: 503, body: '192.0.2.9\n' }, { status: 302, body: '' }, ...bad]
  moved_ms += 6 * 60 * 60_000
  for (const [failures, answer] of answers.entries()) {
    published.answer = answer
    const wait = failures === 0 ? 0 : 2 ** (failures - 1)
    if (failures > 0) assert.equal(await isAskedAfter(wait - 0.5), false, `${failures}`)
    assert.equal(await isAskedAfter(0.6), true, `${failures}`)
    assert.equal(await held(), '192.0.2.1\n')
  }
  published.answer = { status: 200, body: '192.0.2.2\n' }
  assert.equal(await isAskedAfter(6 * 60), true)
  assert.equal(await held(), '192.0.2.2\n')

  // A host that is not allowed gets no request, and the data of a removed feed are deleted.
  const others = await openThese([{ ...feed, list_class: 'vpn' }], parseNetworks([]))
  assert.equal(await held(), null)
  const before = published.asked
  await others.refresh(signal)
  assert.equal(published.asked, before)
})
