import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createRestartPolicy,
  FAILING_AFTER_DEATHS,
  RESTART_DELAYS_MS,
  restartPhrase,
  STEADY_AFTER_MS,
} from './restart.ts'

test('the first restart comes at once, later ones after a growing, bounded delay, without end', () => {
  const policy = createRestartPolicy()
  const delays = Array.from({ length: 100 }, () => policy.died(10).delay_ms)
  assert.equal(delays[0], 0)
  assert.deepEqual(
    delays,
    delays.toSorted((a, b) => a - b),
  )
  assert.equal(new Set(delays).size, RESTART_DELAYS_MS.length)
  assert.equal(delays.at(-1), RESTART_DELAYS_MS.at(-1))
})

test('a part that lived long enough is restarted at once again', () => {
  const policy = createRestartPolicy()
  for (let death = 0; death < 10; death++) policy.died(10)
  assert.deepEqual(policy.died(STEADY_AFTER_MS), { delay_ms: 0, deaths_in_a_row: 1, is_failing: false })
})

test('the message says that a part keeps failing', () => {
  const policy = createRestartPolicy()
  for (let death = 1; death < FAILING_AFTER_DEATHS; death++)
    assert.doesNotMatch(restartPhrase(policy.died(10)), /failing/)
  assert.match(restartPhrase(policy.died(10)), /^in [\d.]+ s \(it keeps failing: 4 times in a row\)$/)
})
