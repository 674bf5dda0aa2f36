import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOfRollout } from './rollout-share.ts'

const CLIENTS = Array.from({ length: 10_000 }, (_, at) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`)

test('the part of the clients is about as large as it says, and a larger part has all clients of a smaller one', () => {
  let before = new Set<string>()
  for (const percent of [1, 10, 50, 99]) {
    const of_part = new Set(CLIENTS.filter((client_key) => isOfRollout({ rollout_id: 'a', percent }, client_key)))
    const part = (of_part.size / CLIENTS.length) * 100
    assert.ok(Math.abs(part - percent) < 2, `${part} %`)
    assert.ok(before.isSubsetOf(of_part))
    before = of_part
  }
})

test('another roll-out has other clients', () => {
  const of = (rollout_id: string) =>
    CLIENTS.filter((client_key) => isOfRollout({ rollout_id, percent: 10 }, client_key))
  const first = new Set(of('a'))
  const in_both = of('b').filter((client_key) => first.has(client_key)).length
  assert.ok(in_both < 200, `${in_both} of 1,000`)
})
