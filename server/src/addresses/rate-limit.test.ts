import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { createRateLimiter } from './rate-limit.ts'

const START_MS = 1_790_000_000_000

/** GCRA by the book: one theoretical arrival time, exact, in units of 1/per_minute ms. */
function createModel(per_minute: number, burst: number): (now_ms: number) => number {
  const interval = 60_000n
  const rate = BigInt(per_minute)
  let arrival = 0n
  return (now_ms) => {
    const now = BigInt(now_ms) * rate
    const next = (arrival > now ? arrival : now) + interval
    const excess = next - now - interval * BigInt(burst)
    if (excess > 0n) return Number((excess + rate - 1n) / rate)
    arrival = next
    return 0
  }
}

const limits = fc.record({
  per_minute: fc.oneof(fc.integer({ min: 1, max: 1200 }), fc.integer({ min: 1, max: 1_000_000 })),
  burst: fc.integer({ min: 1, max: 20 }),
})
const gaps = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 90_000 })), {
  maxLength: 200,
})

test('the limiter answers as GCRA does, request for request', () => {
  fc.assert(
    fc.property(limits, gaps, (limit, waits) => {
      const limiter = createRateLimiter({ ...limit, keys_max: 16 })
      const model = createModel(limit.per_minute, limit.burst)
      let now_ms = START_MS
      for (const wait_ms of waits) {
        now_ms += wait_ms
        assert.equal(limiter.take('a', now_ms), model(now_ms))
      }
    }),
  )
})

test('no window of time holds more than the burst and what the rate adds', () => {
  fc.assert(
    fc.property(limits, gaps, (limit, waits) => {
      const limiter = createRateLimiter({ ...limit, keys_max: 16 })
      const allowed: number[] = []
      let now_ms = START_MS
      for (const wait_ms of waits) {
        now_ms += wait_ms
        if (limiter.take('a', now_ms) === 0) allowed.push(now_ms)
      }
      for (const [first, from_ms] of allowed.entries()) {
        for (const [last, to_ms] of allowed.entries()) {
          if (last < first) continue
          const most = limit.burst + ((to_ms - from_ms) * limit.per_minute) / 60_000
          assert.ok(last - first + 1 <= most, `${last - first + 1} in ${to_ms - from_ms} ms`)
        }
      }
    }),
    { numRuns: 50 },
  )
})

test('the answered wait is exact: a millisecond earlier is refused, then it is allowed', () => {
  fc.assert(
    fc.property(limits, fc.integer({ min: 0, max: 500 }), (limit, step_ms) => {
      const limiter = createRateLimiter({ ...limit, keys_max: 16 })
      let now_ms = START_MS
      let wait_ms = 0
      for (let count = 0; wait_ms === 0 && count < 1000; count++) {
        now_ms += step_ms
        wait_ms = limiter.take('a', now_ms)
      }
      if (wait_ms === 0) return
      if (wait_ms > 1) assert.equal(limiter.take('a', now_ms + wait_ms - 1), 1)
      assert.equal(limiter.take('a', now_ms + wait_ms), 0)
    }),
  )
})

test('without a burst of its own a limit allows a minute of requests at once, and no more', () => {
  const limiter = createRateLimiter({ per_minute: 120, keys_max: 16 })
  for (let count = 0; count < 120; count++) assert.equal(limiter.take('a', START_MS), 0)
  assert.equal(limiter.take('a', START_MS), 500)
  assert.equal(limiter.take('b', START_MS), 0)
})

test('zero a minute is no limit', () => {
  const limiter = createRateLimiter({ per_minute: 0, keys_max: 16 })
  for (let count = 0; count < 10_000; count++) assert.equal(limiter.take('a', START_MS), 0)
})

test('a clock that is set back neither forgives nor prolongs', () => {
  const limiter = createRateLimiter({ per_minute: 60, burst: 2, keys_max: 16 })
  limiter.take('a', START_MS)
  limiter.take('a', START_MS)
  assert.equal(limiter.take('a', START_MS - 3_600_000), 1000)
  assert.equal(limiter.take('a', START_MS - 3_600_000 + 1000), 0)
})

test('no number of keys makes the limiter remember more than it may', () => {
  const limiter = createRateLimiter({ per_minute: 60, burst: 1, keys_max: 1000 })
  for (let count = 0; count < 20_000; count++) {
    limiter.take(`key ${count}`, START_MS)
    assert.ok(limiter.size() <= 1000)
  }
  assert.ok(limiter.size() >= 500)
})

test('a hundred thousand clients of three times as many that ask are remembered in less than 32 MB', () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const limiter = createRateLimiter({ per_minute: 120, keys_max: 100_000 })
  gc()
  const before = process.memoryUsage().heapUsed
  for (let count = 0; count < 300_000; count++) limiter.take(`2001:db8:${count.toString(16)}:1::/64`, START_MS + count)
  gc()
  const grown_bytes = process.memoryUsage().heapUsed - before
  assert.ok(limiter.size() <= 100_000)
  assert.ok(grown_bytes < 32 * 1024 * 1024, `${grown_bytes} bytes`)
})

test('a flood of strangers does not free a limited client, even one that stays silent meanwhile', () => {
  const limiter = createRateLimiter({ per_minute: 120, keys_max: 1000 })
  for (let count = 0; count < 120; count++) limiter.take('limited', START_MS)
  for (let count = 0; count < 50_000; count++) limiter.take(`stranger ${count}`, START_MS)
  assert.equal(limiter.take('limited', START_MS), 500)
})

test('a client that keeps asking stays limited while heavy strangers push out each other', () => {
  const limiter = createRateLimiter({ per_minute: 60, burst: 1, keys_max: 1000 })
  limiter.take('limited', START_MS)
  for (let count = 0; count < 50_000; count++) {
    limiter.take(`stranger ${count}`, START_MS)
    if (count % 200 === 0) assert.equal(limiter.take('limited', START_MS), 1000)
  }
})
