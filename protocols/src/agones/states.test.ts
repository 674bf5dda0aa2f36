// The pure parts: states, health, counters and lists, and the keys of labels.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addValue, updateCounter, updateList } from './counts.ts'
import { HEALTH_RULES, type Health, isUnhealthy, look, ping, startHealth } from './health.ts'
import { withAnnotation, withLabel } from './metadata.ts'
import { isFinal, type State, type StateEvent, step } from './states.ts'

const START = 1_790_000_000_000

/** Plays the events, and returns the last state and all effects. */
function play(...events: StateEvent[]) {
  let state: State = 'Scheduled'
  const effects: string[] = []
  for (const event of events) {
    const next = step(state, event)
    state = next.state
    effects.push(...next.effects)
  }
  return { state, effects: effects.join(' ') }
}

test('a seat allocates a server that waits for players, and no other', () => {
  assert.deepEqual(play('seat'), { state: 'Scheduled', effects: '' })
  assert.deepEqual(play('ready', 'seat'), { state: 'Allocated', effects: 'ready' })
  assert.deepEqual(play('ready', 'reserve', 'seat'), { state: 'Allocated', effects: 'ready close open' })
  assert.deepEqual(play('ready', 'seat', 'seat'), { state: 'Allocated', effects: 'ready' })
})

test('Ready after Allocated empties and opens the lobby', () => {
  assert.deepEqual(play('ready', 'allocate', 'ready'), { state: 'Ready', effects: 'ready empty open' })
  assert.deepEqual(play('ready', 'ready'), { state: 'Ready', effects: 'ready' })
})

test('a server that allocates or reserves itself before Ready is ready', () => {
  assert.deepEqual(play('allocate'), { state: 'Allocated', effects: 'ready' })
  assert.deepEqual(play('reserve'), { state: 'Reserved', effects: 'close ready' })
})

test('the end of a reservation changes only a reserved server', () => {
  assert.deepEqual(play('ready', 'reserve', 'reserve_end'), { state: 'Ready', effects: 'ready close open' })
  assert.deepEqual(play('ready', 'reserve', 'allocate', 'reserve_end'), {
    state: 'Allocated',
    effects: 'ready close open',
  })
})

test('nothing leaves Shutdown and Unhealthy', () => {
  const events: StateEvent[] = ['ready', 'allocate', 'reserve', 'reserve_end', 'shutdown', 'seat', 'unhealthy']
  for (const state of ['Shutdown', 'Unhealthy'] as const) {
    assert.equal(isFinal(state), true)
    for (const event of events) assert.deepEqual(step(state, event), { state, effects: [] })
  }
  assert.deepEqual(play('ready', 'shutdown', 'unhealthy'), { state: 'Shutdown', effects: 'ready stop' })
})

/** One look a second, and pings at the given seconds after the start, and returns the second of Unhealthy. */
function unhealthyAfter(pings: number[], until_s = 120): number | null {
  let health: Health = startHealth(HEALTH_RULES, START)
  for (let s = 0; s <= until_s; s++) {
    if (pings.includes(s)) health = ping(health, START + s * 1000)
    health = look(HEALTH_RULES, health, START + s * 1000)
    if (isUnhealthy(HEALTH_RULES, health)) return s
  }
  return null
}

test('a server that never pings is unhealthy three periods after the initial delay', () => {
  assert.equal(unhealthyAfter([]), 20)
})

test('a ping ends a row of misses', () => {
  const every = (s: number) => Array.from({ length: 200 }, (_, index) => index * s)
  assert.equal(unhealthyAfter(every(2)), null)
  assert.equal(unhealthyAfter(every(5)), null)
  assert.equal(unhealthyAfter(every(14)), null)
  assert.equal(unhealthyAfter([1, 3]), 20)
  assert.equal(unhealthyAfter([19]), 35)
})

test('a pause of the process is one miss', () => {
  const paused = look(HEALTH_RULES, startHealth(HEALTH_RULES, START), START + 3_600_000)
  assert.equal(paused.misses, 1)
  assert.equal(look(HEALTH_RULES, paused, START + 3_600_001).misses, 1)
})

test('a count stays between 0 and its capacity', () => {
  const counter = { count: 5n, capacity: 10n }
  const none = { count: undefined, capacity: undefined, diff: 0n }
  assert.deepEqual(updateCounter(counter, { ...none, diff: 5n }), { count: 10n, capacity: 10n })
  assert.deepEqual(updateCounter(counter, { ...none, capacity: 3n }), { count: 3n, capacity: 3n })
  assert.deepEqual(updateCounter(counter, { count: 11n, capacity: 12n, diff: 1n }), { count: 12n, capacity: 12n })
  assert.throws(() => updateCounter(counter, none), { code: 3 })
  assert.throws(() => updateCounter(counter, { ...none, diff: -6n }), { code: 11 })
  assert.throws(() => updateCounter(counter, { ...none, diff: 2n ** 63n - 1n }), { code: 11 })
  assert.throws(() => updateCounter(counter, { ...none, count: -1n }), { code: 11 })
  assert.throws(() => updateCounter(counter, { ...none, capacity: -1n }), { code: 11 })
})

test('a list is changed in the members of its mask', () => {
  const list = { capacity: 3, values: ['a', 'b'] }
  const update = (capacity: bigint, values: string[], ...mask: string[]) => updateList(list, { capacity, values }, mask)
  assert.deepEqual(update(1n, [], 'capacity'), { capacity: 1, values: ['a'] })
  assert.deepEqual(update(0n, [], 'capacity'), { capacity: 0, values: [] })
  assert.deepEqual(update(0n, ['c', 'c', 'd', 'e', 'f'], 'values'), { capacity: 3, values: ['c', 'd', 'e'] })
  assert.deepEqual(update(9n, []), { capacity: 9, values: ['a', 'b'] })
  assert.deepEqual(update(0n, []), list)
  assert.throws(() => update(0n, [], 'List.capacity'), { code: 3 })
  assert.throws(() => update(-1n, [], 'values'), { code: 11 })
  assert.throws(() => addValue(list, 'x'.repeat(2049)), { code: 3 })
})

test('keys of labels and annotations are those of Kubernetes, and bounded', () => {
  assert.deepEqual(withLabel({}, 'a.b-c_D', ''), { 'agones.dev/sdk-a.b-c_D': '' })
  assert.deepEqual(withAnnotation({}, 'a', 'any text {}'), { 'agones.dev/sdk-a': 'any text {}' })
  for (const key of ['', 'a/b', 'a-', '__proto__', 'x'.repeat(60)])
    assert.throws(() => withAnnotation({}, key, ''), { code: 3 }, key)
  for (const value of ['-', 'a.', 'x'.repeat(64), 'é'])
    assert.throws(() => withLabel({}, 'a', value), { code: 3 }, value)
  let labels = {}
  for (let index = 0; index < 256; index++) labels = withLabel(labels, String(index), '')
  assert.throws(() => withLabel(labels, '256', ''), { code: 8 })
  assert.equal(Object.keys(withLabel(labels, '255', 'x')).length, 256)
})
