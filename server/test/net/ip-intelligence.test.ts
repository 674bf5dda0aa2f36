import assert from 'node:assert/strict'
import { mkdtemp, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { openIpIntelligence } from '../../src/net/ip-intelligence.ts'
import { until } from '../runner/until.ts'
import { mmdbFile } from './mmdb-file.ts'

type Line = { level: number; name?: string; msg: string }
const WARN = 40

/** With these files in its folder. */
async function open(t: TestContext, files: Record<string, string | Buffer>) {
  const folder = await mkdtemp(join(tmpdir(), 'muster-ip-'))
  const lines: Line[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as Line) })
  /** At once and whole, as an operator should. */
  const put = async (name: string, content: string | Buffer) => {
    await writeFile(join(folder, `${name}.new`), content)
    await rename(join(folder, `${name}.new`), join(folder, name))
  }
  for (const [name, content] of Object.entries(files)) await put(name, content)
  const data = openIpIntelligence({ folder, log })
  t.after(async () => {
    await data.close()
    await rm(folder, { recursive: true, force: true })
  })
  await data.opening()
  assert.equal(data.opening(), null)
  return {
    folder,
    put,
    data,
    classesOf: (address: string) => [...data.factsOf(address).classes].sort(),
    warnings: () => lines.filter(({ level }) => level === WARN),
  }
}

test('without any data nothing is known of an address, and nobody is warned', async (t) => {
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
  const { data, classesOf } = await open(t, {
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
  assert.equal(data.factsOf('1.1.1.1').coordinates, null)
})

test('a file that changes is read again; one that breaks or goes is told of once, and what it said stays', async (t) => {
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

test('a database that is missing, cut off or made of anything else says nothing, and is told of once', async (t) => {
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
