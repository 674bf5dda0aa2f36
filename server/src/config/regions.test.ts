import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { machineCapacity, readRegions } from './regions.ts'

const folder = mkdtempSync(join(tmpdir(), 'muster-regions-'))
after(() => rmSync(folder, { recursive: true }))

const NODE = { cores: 8, memory_mb: 16_384, cpu_mhz: 1_999 }

function read(text: string | null, machine = NODE) {
  const mistakes: string[] = []
  const path = text === null ? null : join(folder, 'muster.toml')
  if (path !== null) writeFileSync(path, text!)
  return { ...readRegions(path, 'spread', machine, mistakes), mistakes }
}

test('without a file there is one region, with tiers made of the machine, and no size of its own', () => {
  const { regions, tiers, mistakes } = read(null)
  assert.deepEqual(mistakes, [])
  assert.deepEqual(
    tiers.map((tier) => [tier.tier_name_id, tier.cpu, tier.memory]),
    [
      ['basic-4d1', 7_996, 7_372],
      ['basic-2d1', 3_998, 3_686],
      ['basic-1d1', 1_999, 1_843],
      ['basic-1d2', 999, 921],
      ['basic-1d4', 499, 460],
      ['basic-1d8', 249, 230],
      ['basic-1d16', 124, 115],
    ],
  )
  assert.deepEqual(regions.length, 1)
  const { name, default_tier, capacity } = regions[0]!
  assert.deepEqual(
    { name, default_tier, capacity },
    {
      name: 'local',
      default_tier: 'basic-1d1',
      capacity: { cpu_cores: null, memory_mb: null },
    },
  )
})

test('no tier is larger than the machine, and as many fit as it has cores', () => {
  for (const cores of [1, 2, 3, 4, 16]) {
    const machine = { ...NODE, cores }
    const { tiers } = read(null, machine)
    for (const tier of tiers) {
      const portion = tier.platform_cores_numerator / tier.platform_cores_denominator
      assert.ok(portion <= cores)
      const { cpu_cores, memory_mb } = machineCapacity(machine)
      const fit = Math.floor(cores / portion)
      assert.ok(fit * portion <= cpu_cores && fit * tier.memory <= memory_mb, tier.tier_name_id)
    }
    assert.equal(tiers.at(-1)!.tier_name_id, 'basic-1d16')
  }
})

test('a file says regions and tiers', () => {
  const { regions, tiers, mistakes } = read(`
    [[tiers]]
    tier_name_id = "big"
    platform_cores_numerator = 3
    platform_cores_denominator = 2
    memory = 2048
    [[tiers]]
    tier_name_id = "small"
    platform_cores_numerator = 1
    platform_cores_denominator = 3
    memory = 128
    cpu = 700
    disk = 5
    bandwidth = 6
    [[regions]]
    name = "fra"
    display_name = "Frankfurt"
    provider_display_name = "Our rack"
    latitude = 50.1
    longitude = 8.7
    default_tier = "small"
    cores = 2.5
    memory_mb = 0
    [[regions]]
    name = "syd"
    display_name = "Sydney"
    latitude = -33.9
    longitude = 151.2
    tiers = ["big"]`)
  assert.deepEqual(mistakes, [])
  assert.deepEqual(tiers[1], {
    tier_name_id: 'small',
    platform_cores_numerator: 1,
    platform_cores_denominator: 3,
    cpu: 700,
    memory: 128,
    disk: 5,
    bandwidth: 6,
  })
  const [fra, syd] = regions
  assert.deepEqual(fra?.capacity, { cpu_cores: 2.5, memory_mb: null })
  assert.equal(fra?.default_tier, 'small')
  assert.deepEqual(
    syd?.tiers.map((tier) => tier.tier_name_id),
    ['big'],
  )
  assert.equal(syd?.default_tier, 'big')
  assert.deepEqual(syd?.capacity, { cpu_cores: null, memory_mb: null })
  assert.deepEqual(
    [fra?.is_stated, syd?.is_stated].map((is_stated) => is_stated?.cpu_cores),
    [true, false],
  )
})

test('every mistake of a file is reported', () => {
  const region = 'name = "fra"\ndisplay_name = "F"\nlatitude = 1\nlongitude = 1\n'
  const wrong: [string, RegExp][] = [
    ['[[regions]\n', /cannot be read/],
    ['[[regions]]\nname = "fra"\n', /display_name/],
    [`[[regions]]\n${region}plan = 1\n`, /plan/],
    [`[[regions]]\n${region}[[regions]]\n${region}`, /same name/],
    [`[[regions]]\n${region}tiers = ["huge"]\n`, /huge/],
    [`[[regions]]\n${region}default_tier = "huge"\n`, /huge/],
    [`[[regions]]\n${region.replace('fra', 'Fra')}`, /name/],
    [`[[regions]]\n${region.replace('latitude = 1', 'latitude = 91')}`, /latitude/],
    [`[[regions]]\n${region}price_per_core_hour = 0.1\n`, /currency/],
    [`currency = "EUR"\n[[regions]]\n${region}price_per_core_hour = 0.0000001\n`, /decimals/],
    [`currency = "EUR"\n[[regions]]\n${region}price_per_core_hour = -1\n`, /price_per_core_hour/],
    ['regions = []\n', /regions/],
  ]
  for (const [text, expected] of wrong) assert.match(read(text).mistakes.join('\n'), expected, text)
  const mistakes: string[] = []
  readRegions(join(folder, 'absent.toml'), 'spread', NODE, mistakes)
  assert.match(mistakes.join(), /cannot be read/)
})

test('a mistake of a file is reported with its line and column, and with the member that was meant', () => {
  const told: [string, string][] = [
    [
      'currency = "EUR"\ncurrency = "USD"\n',
      'cannot be read: Defining a key multiple times is invalid (line 2, column 1).',
    ],
    ['[[regions]]\nname = = 1\n', 'cannot be read: Unexpected token (line 2, column 8).'],
    [
      '[[regions]]\nname = "a"\n\n  lattitude = 1\n',
      '(line 4, column 3): regions.0.lattitude is not a member here. Did you mean latitude?',
    ],
    ['[[regions]]\nname = "a"\n[[regions]]\nname = "b"\n', '(line 3, column 1): regions.1.latitude is missing.'],
    [
      '[[regions]]\nname = "a"\nlongitude = 1\nlatitude = 91\ndisplay_name = "A"\n',
      '(line 4, column 1): regions.0.latitude must be <= 90, and is 91.',
    ],
    ['x = { y = [1, { z = 2 }] }\n', '(line 1, column 1): x is not a member here.'],
    ['regoins = []\n', '(line 1, column 1): regoins is not a member here. Did you mean regions?'],
    ['[[regions]]\ndriver = "docker"\n', '(line 2, column 1): regions.0.driver must be process.'],
  ]
  for (const [text, sentence] of told) {
    const { mistakes } = read(text)
    assert.ok(
      mistakes.some((mistake) => mistake.endsWith(sentence)),
      `${sentence}\n${mistakes.join('\n')}`,
    )
  }
})
