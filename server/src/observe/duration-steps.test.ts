import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DURATION_STEPS, percentile, stepOf } from './duration-steps.ts'

test('a percentile of counted durations differs from the exact one by at most a fifth', () => {
  const durations = Array.from({ length: 5_000 }, (_, index) => 1 + ((index * 7_919) % 4_999) + index / 10)
  const counts = new Uint32Array(DURATION_STEPS)
  for (const ms of durations) counts[stepOf(ms)]!++
  const sorted = durations.toSorted((a, b) => a - b)
  for (const share of [0.5, 0.95, 0.99]) {
    const exact = sorted[Math.ceil(share * sorted.length) - 1]!
    const counted = percentile(counts, share)
    assert.ok(Math.abs(counted - exact) <= exact / 5, `${share}: ${counted} for ${exact}`)
  }
})

test('every duration has a step, and one count alone gives all percentiles', () => {
  for (const ms of [0, 0.3, 1, 1.18, 49_999, 1e9]) {
    const step = stepOf(ms)
    assert.ok(Number.isInteger(step) && step >= 0 && step < DURATION_STEPS, `${ms} is in step ${step}`)
    const counts = Array.from({ length: DURATION_STEPS }, (_, index) => (index === step ? 1 : 0))
    assert.ok(percentile(counts, 0.5) <= percentile(counts, 0.99))
  }
  assert.equal(stepOf(0.999), 0)
  assert.equal(stepOf(1), 1)
})
