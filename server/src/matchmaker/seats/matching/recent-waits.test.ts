import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecentWaits } from './recent-waits.ts'

const HOUR_MS = 3_600_000

function addAll(waits: RecentWaits, game_mode: string, waits_ms: readonly number[], now_ms = 0): void {
  for (const wait_ms of waits_ms) waits.add('n', game_mode, wait_ms, now_ms)
}

test('the usual wait is the median of the game mode, and unknown after fewer than five players', () => {
  const waits = new RecentWaits()
  addAll(waits, 'duel', [9, 1, 7, 3])
  assert.equal(waits.median('n', 'duel', 0), null)
  addAll(waits, 'duel', [5])
  assert.equal(waits.median('n', 'duel', 0), 5)
  assert.equal(waits.median('n', 'teams', 0), null)
  assert.equal(waits.median('other', 'duel', 0), null)
})

test('a wait counts for an hour, and the last 64 count', () => {
  const waits = new RecentWaits()
  addAll(waits, 'duel', [100, 100, 100, 100, 100])
  addAll(waits, 'duel', [1, 1, 1, 1, 1], HOUR_MS)
  assert.equal(waits.median('n', 'duel', HOUR_MS), 1)
  assert.equal(waits.median('n', 'duel', HOUR_MS + 1), 1)
  assert.equal(waits.median('n', 'duel', 2 * HOUR_MS + 1), null)
  addAll(waits, 'duel', Array(64).fill(7), HOUR_MS)
  assert.equal(waits.median('n', 'duel', HOUR_MS), 7)
})

test('a thousand game modes are kept, those with the newest matches', () => {
  const waits = new RecentWaits()
  for (let index = 0; index <= 1_000; index++) {
    addAll(waits, `mode${index}`, [1, 2, 3, 4, 5])
    addAll(waits, 'busy', [2])
  }
  assert.equal(waits.median('n', 'mode0', 0), null)
  assert.equal(waits.median('n', 'mode2', 0), 3)
  assert.equal(waits.median('n', 'busy', 0), 2)
})
