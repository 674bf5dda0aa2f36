import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { addSample, beginMetrics, busyCores, makeCoarser, POINTS_MAX, STEP_MS_MIN } from './lobby-metrics.ts'

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

test('points are the whole life of a lobby, never more than 240, and none of its time is lost or counted twice', () => {
  const gaps = fc.array(
    fc.record({
      after_ms: fc.oneof(fc.integer({ min: 1, max: 20_000 }), fc.integer({ min: 1, max: 86_400_000 })),
      cores: fc.double({ min: 0, max: 4, noNaN: true }),
      memory_bytes: fc.nat(2 ** 40),
    }),
    { minLength: 1, maxLength: 400 },
  )
  fc.assert(
    fc.property(gaps, (samples) => {
      const metrics = beginMetrics(1_000)
      let [ts, cpu_ms] = [1_000, 0]
      for (const { after_ms, cores, memory_bytes } of samples) {
        ts += after_ms
        cpu_ms += after_ms * cores
        addSample(metrics, { ts, cpu_ms, memory_bytes })
      }
      const { step_ms } = metrics
      assert.equal(metrics.cpu_ms.length, Math.ceil((ts - 1_000) / step_ms))
      assert.ok(metrics.cpu_ms.length <= POINTS_MAX && metrics.memory_bytes.length === metrics.cpu_ms.length)
      assert.ok(step_ms === STEP_MS_MIN || metrics.cpu_ms.length > POINTS_MAX / 2, 'no coarser than it must be')
      assert.ok(Math.abs(sum(metrics.cpu_ms) - cpu_ms) <= 1e-6 * (cpu_ms + 1))
      assert.equal(Math.max(...metrics.memory_bytes), Math.max(...samples.map((sample) => sample.memory_bytes)))
      const most = Math.max(...samples.map(({ cores }) => cores))
      for (const cores of busyCores(metrics)) assert.ok(cores <= most + 1e-6)
    }),
  )
})

test('a clock that was set back, and a counter that began anew, take nothing away', () => {
  const metrics = beginMetrics(0)
  addSample(metrics, { ts: 2_000, cpu_ms: 1_000, memory_bytes: 7 })
  addSample(metrics, { ts: 1_000, cpu_ms: 5_000, memory_bytes: 9 })
  addSample(metrics, { ts: 4_000, cpu_ms: 10, memory_bytes: 3 })
  assert.deepEqual([metrics.cpu_ms, metrics.memory_bytes, busyCores(metrics)], [[1_000], [7], [0.25]])
})

test('traffic and players survive joined points, missing samples, and counters that began anew', () => {
  const metrics = beginMetrics(0)
  const use = { cpu_ms: 0, memory_bytes: 1 }
  addSample(metrics, { ts: STEP_MS_MIN, ...use })
  addSample(metrics, { ts: 2 * STEP_MS_MIN, ...use, traffic: { bytes_in: 10, bytes_out: 100 }, player_count: 3 })
  addSample(metrics, { ts: 3 * STEP_MS_MIN, ...use })
  addSample(metrics, { ts: 4 * STEP_MS_MIN, ...use, traffic: { bytes_in: 15, bytes_out: 160 }, player_count: 2 })
  addSample(metrics, { ts: 5 * STEP_MS_MIN, ...use, traffic: { bytes_in: 7, bytes_out: 0 }, player_count: 5 })
  const stored = JSON.parse(JSON.stringify(metrics)) as typeof metrics
  assert.deepEqual(stored.bytes_in, [null, 10, null, 5, 7])
  assert.deepEqual(stored.bytes_out, [null, 100, null, 60, 0])
  assert.deepEqual(stored.player_count, [null, 3, null, 2, 5])
  makeCoarser(stored)
  assert.deepEqual(
    [stored.bytes_in, stored.player_count],
    [
      [10, 5, 7],
      [3, 2, 5],
    ],
  )
  assert.deepEqual([stored.bytes_out, stored.step_ms], [[100, 60, 0], 2 * STEP_MS_MIN])
})
