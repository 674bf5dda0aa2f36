import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTimerWhileNeeded } from './timer-while-needed.ts'

test('a look is repeated while it is needed, and not before or after', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let left = 0
  let looks = 0
  const timer = createTimerWhileNeeded(100, () => {
    looks += 1
    left -= 1
    return left > 0
  })
  t.mock.timers.tick(1_000)
  assert.equal(looks, 0)
  left = 3
  timer.need()
  timer.need()
  t.mock.timers.tick(1_000)
  assert.equal(looks, 3)
  left = 1
  timer.need()
  t.mock.timers.tick(1_000)
  assert.equal(looks, 4)
  timer.close()
  timer.need()
  t.mock.timers.tick(1_000)
  assert.equal(looks, 4)
})
