import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Transport } from './sockets.ts'
import { isShut, LATE_MS_MAX, NEW_DOOR, nextDoor } from './stalls.ts'

/** Whether the door is shut after each of these looks. */
function looksAt(transport: Transport, looks: readonly (readonly [amount: number, dropped?: number])[]): boolean[] {
  let door = NEW_DOOR
  return looks.map(([amount, dropped = 0]) => {
    door = nextDoor(transport, { amount, dropped }, door)
    return isShut(transport, door)
  })
}

test('a connection that waits over five looks says that nobody is let in; who is let in says the contrary at once', () => {
  assert.deepEqual(looksAt('tcp', [[1], [1], [2], [2], [3], [3], [2], [2]]), [
    ...[false, false, false, false, true, true],
    ...[false, false],
  ])
  assert.deepEqual(looksAt('tcp', [[1], [1], [1], [1], [0], [1], [1], [1], [1], [1]]).lastIndexOf(false), 8)
})

test('datagrams that only ever come, and at last find no room, say that nobody reads', () => {
  const full = [3_000, 6_000, 6_000, 9_000, 9_000].map((amount) => [amount] as const)
  const dropping = [1, 2, 2, 3, 4, 5].map((dropped) => [9_000, dropped] as const)
  assert.deepEqual(looksAt('udp', [...full, ...dropping, [9_000, 5], [8_000, 5]]), [
    ...full.map(() => false),
    ...[false, false, false, false, false, true],
    ...[true, false],
  ])
})

test('a server that reads at each of its ticks is not taken for one that does not, however its ticks and the looks lie', () => {
  const random = numbersFrom(1)
  let [looks, shut] = [0, 0]
  for (const tick_ms of [5, 16.7, 33.3, 50, 100, 200]) {
    for (const per_ms of [0.02, 0.1, 1, 20]) {
      for (const drift_ms of [-1, 0, 0.3, 1, 3]) {
        const told = looksAt(
          'udp',
          Array.from({ length: 10_000 }, (_, second) => {
            const since_ms = (1e6 + second * (1_000 + drift_ms) + random() * LATE_MS_MAX) % tick_ms
            return [Math.floor(since_ms * per_ms) * 768] as const
          }),
        )
        looks += told.length
        shut += told.filter(Boolean).length
      }
    }
  }
  assert.ok(shut <= looks / 100_000, `${shut} of ${looks} looks`)
})

/** The same ones each time. */
function numbersFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
