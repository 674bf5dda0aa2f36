import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keepRenewing } from './lease.ts'

test('renewals do not pile up behind one that hangs, and go on after it', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const hanging: (() => void)[] = []
  const end = keepRenewing(() => new Promise((resolve) => hanging.push(resolve)))
  t.mock.timers.tick(60_000)
  assert.equal(hanging.length, 1)
  hanging[0]!()
  await new Promise((resolve) => setImmediate(resolve))
  t.mock.timers.tick(1_000)
  assert.equal(hanging.length, 2)
  end()
  hanging[1]!()
  await new Promise((resolve) => setImmediate(resolve))
  t.mock.timers.tick(60_000)
  assert.equal(hanging.length, 2)
})
