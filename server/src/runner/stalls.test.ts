import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Transport } from './sockets.ts'
import { isShut, NEW_DOOR, nextDoor } from './stalls.ts'

const RUNS = 20_000

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

test('a server that reads at each of its ticks is never taken for one that does not, however its players and it keep step', () => {
  const ticks = fc.record({ every_ms: fc.nat({ max: 40 }), players: fc.nat({ max: 3 }), phase_ms: fc.nat({ max: 20 }) })
  fc.assert(
    fc.property(ticks, fc.array(fc.nat({ max: 3 }), { minLength: 60, maxLength: 60 }), (server, late) => {
      const tick_ms = 10 + server.every_ms
      const looks = late.map((ms, second) => {
        // What has come since the last tick, of players who send at its pace.
        const now_ms = (second + 1) * 1_000 + ms
        const since_ms = now_ms % tick_ms
        return [since_ms >= server.phase_ms % tick_ms ? server.players * 768 : 0] as const
      })
      assert.ok(!looksAt('udp', looks).includes(true))
    }),
    { numRuns: RUNS },
  )
})
