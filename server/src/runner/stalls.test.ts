import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Transport } from './sockets.ts'
import { isUnread, LATE_MS_MAX, NEW_PROBE, nextProbe } from './stalls.ts'

/** Whether the port counts as unread after each of these checks. */
function checksOf(transport: Transport, backlogs: readonly (readonly [amount: number, dropped?: number])[]): boolean[] {
  let probe = NEW_PROBE
  return backlogs.map(([amount, dropped = 0]) => {
    probe = nextProbe(transport, { amount, dropped }, probe)
    return isUnread(transport, probe)
  })
}

test('a port is unread after a connection waited over five checks, and read again at once when one is accepted', () => {
  assert.deepEqual(checksOf('tcp', [[1], [1], [2], [2], [3], [3], [2], [2]]), [
    ...[false, false, false, false, true, true],
    ...[false, false],
  ])
  assert.deepEqual(checksOf('tcp', [[1], [1], [1], [1], [0], [1], [1], [1], [1], [1]]).lastIndexOf(false), 8)
})

test('a port is unread when its datagrams only increase until they are dropped', () => {
  const full = [3_000, 6_000, 6_000, 9_000, 9_000].map((amount) => [amount] as const)
  const dropping = [1, 2, 2, 3, 4, 5].map((dropped) => [9_000, dropped] as const)
  assert.deepEqual(checksOf('udp', [...full, ...dropping, [9_000, 5], [8_000, 5]]), [
    ...full.map(() => false),
    ...[false, false, false, false, false, true],
    ...[true, false],
  ])
})

test('a server that reads once a tick is not taken for stalled, whatever its tick', () => {
  const random = numbersFrom(1)
  let [checks, unread] = [0, 0]
  for (const tick_ms of [5, 16.7, 33.3, 50, 100, 200]) {
    for (const per_ms of [0.02, 0.1, 1, 20]) {
      for (const drift_ms of [-1, 0, 0.3, 1, 3]) {
        const results = checksOf(
          'udp',
          Array.from({ length: 10_000 }, (_, second) => {
            const since_ms = (1e6 + second * (1_000 + drift_ms) + random() * LATE_MS_MAX) % tick_ms
            return [Math.floor(since_ms * per_ms) * 768] as const
          }),
        )
        checks += results.length
        unread += results.filter(Boolean).length
      }
    }
  }
  assert.ok(unread <= checks / 100_000, `${unread} of ${checks} checks`)
})

/** A fixed sequence of pseudorandom numbers in [0, 1). */
function numbersFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
