import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CircuitBreaker } from './circuit-breaker.ts'

const RULES = { failures_max: 3, open_ms: 2_000 }

function openBreaker() {
  let now_ms = 50
  const breaker = new CircuitBreaker(RULES, () => now_ms)
  const enter = () => {
    const call = breaker.enter()
    assert.ok(call !== null)
    return call
  }
  return {
    breaker,
    enter,
    pass(ms: number) {
      now_ms += ms
    },
    fail: (count: number) => Array.from({ length: count }, () => enter().failed()),
  }
}

test('a run of failures opens the breaker, and a success in between does not let it come to one', () => {
  const { breaker, enter, fail } = openBreaker()
  assert.deepEqual(fail(2), [false, false])
  assert.equal(enter().succeeded(), false)
  assert.deepEqual(fail(3), [false, false, true])
  assert.ok(breaker.isOpen())
  assert.equal(breaker.enter(), null)
})

test('while it is open one probe is let through each time, whether the probe before has ended or not', () => {
  const { breaker, enter, fail, pass } = openBreaker()
  fail(3)
  assert.equal(breaker.waitMs(), 2_000)
  pass(1_999)
  assert.equal(breaker.enter(), null)
  pass(1)
  const stuck = enter()
  assert.equal(breaker.enter(), null)
  pass(2_000)
  assert.equal(enter().succeeded(), true)
  assert.equal(breaker.isOpen(), false)
  enter()
  enter()
  assert.equal(stuck.failed(), false)
})

test('calls that were under way when it was opened do not put off its probe, and do not open it again once it is closed', () => {
  const { breaker, enter, fail, pass } = openBreaker()
  const under_way = Array.from({ length: 10 }, enter)
  fail(3)
  pass(1_500)
  for (const call of under_way.slice(0, 5)) assert.equal(call.failed(), false)
  pass(500)
  assert.equal(enter().succeeded(), true)
  for (const call of under_way.slice(5)) assert.equal(call.failed(), false)
  assert.equal(breaker.isOpen(), false)
})
