import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Region } from '../../config/regions.ts'
import { byDistance, byLatency } from './nearest.ts'

const regionAt = (name: string, latitude: number, longitude: number) => ({ name, latitude, longitude }) as Region

const FRANKFURT = regionAt('fra', 50.11, 8.68)
const ATLANTA = regionAt('atl', 33.75, -84.39)
const SYDNEY = regionAt('syd', -33.87, 151.21)
const REGIONS = [SYDNEY, FRANKFURT, ATLANTA]
const namesFrom = (latitude: number, longitude: number) =>
  byDistance(REGIONS, { latitude, longitude }).map(({ region }) => region.name)

test('the nearest region comes first, over the poles and the date line too', () => {
  assert.deepEqual(namesFrom(48.86, 2.35), ['fra', 'atl', 'syd'])
  assert.deepEqual(namesFrom(40.71, -74.01), ['atl', 'fra', 'syd'])
  // Fiji east of the date line.
  assert.deepEqual(namesFrom(-17.7, -178.8), ['syd', 'atl', 'fra'])
  assert.deepEqual(namesFrom(90, 0), ['fra', 'atl', 'syd'])
})

test('distances are those of a globe', () => {
  const [nearest, , farthest] = byDistance(REGIONS, { latitude: 51.51, longitude: -0.13 })
  assert.ok(Math.abs(nearest!.kilometers - 638) < 5, String(nearest!.kilometers))
  assert.ok(Math.abs(farthest!.kilometers - 16_990) < 50, String(farthest!.kilometers))
  assert.equal(byDistance([FRANKFURT], FRANKFURT)[0]!.kilometers, 0)
  const [antipode] = byDistance([FRANKFURT], { latitude: -FRANKFURT.latitude, longitude: FRANKFURT.longitude - 180 })
  assert.ok(Math.abs(antipode!.kilometers - 20_015) < 1)
})

test('names decide between regions at equal distance, and between all for a client without coordinates', () => {
  assert.deepEqual(
    byDistance(REGIONS, null).map(({ region, kilometers }) => [region.name, kilometers]),
    [
      ['atl', 0],
      ['fra', 0],
      ['syd', 0],
    ],
  )
  const twins = [regionAt('b', 10, 10), regionAt('a', 10, 10)]
  assert.deepEqual(
    byDistance(twins, { latitude: 0, longitude: 0 }).map(({ region }) => region.name),
    ['a', 'b'],
  )
})

test('regions come by measured latency, and those without one after them by distance', () => {
  const paris = { latitude: 48.86, longitude: 2.35 }
  const namesBy = (latencies_ms: Record<string, number>) =>
    byLatency(REGIONS, new Map(Object.entries(latencies_ms)), paris).map(({ name }) => name)
  assert.deepEqual(namesBy({}), ['fra', 'atl', 'syd'])
  assert.deepEqual(namesBy({ syd: 10_000 }), ['syd', 'fra', 'atl'])
  assert.deepEqual(namesBy({ syd: 30.5, atl: 31, fra: 120 }), ['syd', 'atl', 'fra'])
  assert.deepEqual(namesBy({ atl: 20, fra: 20, syd: 20 }), ['fra', 'atl', 'syd'], 'equal ones by distance')
  assert.deepEqual(namesBy({ mars: 0, atl: 0 }), ['atl', 'fra', 'syd'], 'an unknown region is ignored')
})
