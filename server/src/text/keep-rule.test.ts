import assert from 'node:assert/strict'
import test from 'node:test'
import { keptBackups, parseKeepRule } from './keep-rule.ts'

const DAY_MS = 86_400_000

/** A backup a day at 04:00, the oldest first. */
const daily = (count: number, last = '2026-11-30'): string[] =>
  Array.from({ length: count }, (_, index) => {
    const day = new Date(Date.parse(last) - (count - 1 - index) * DAY_MS).toISOString().slice(0, 10)
    return `${day}T040000Z`
  })

test('a rule is read, and a text that is none is refused', () => {
  assert.deepEqual(parseKeepRule('7d 4w 12m'), { daily: 7, weekly: 4, monthly: 12 })
  assert.deepEqual(parseKeepRule('12m7d'), { daily: 7, weekly: 0, monthly: 12 })
  for (const text of ['', '7', '7x', '7d 7d', '0d', '-1d', '7d,4w', 'd', '7d 4w 12m!', '99999d'])
    assert.equal(parseKeepRule(text), null, text)
})

test('7d 4w 12m keeps a week of days, the newest of each week before, and of each month', () => {
  const kept = [...keptBackups(daily(400), { daily: 7, weekly: 4, monthly: 12 })].sort()
  assert.deepEqual(kept.slice(-7), daily(7), 'seven days')
  // 2026-11-30 is a Monday, so the last week has one backup.
  assert.deepEqual(
    kept.filter((name) => name > '2026-11-01' && name < '2026-11-24'),
    ['2026-11-15T040000Z', '2026-11-22T040000Z'],
    'the Sundays before',
  )
  const months = kept.filter((name) => name < '2026-11-01').map((name) => name.slice(0, 10))
  assert.deepEqual(months, [
    ...['2025-12-31', '2026-01-31', '2026-02-28', '2026-03-31', '2026-04-30', '2026-05-31', '2026-06-30'],
    ...['2026-07-31', '2026-08-31', '2026-09-30', '2026-10-31'],
  ])
})

test('a gap keeps older backups: periods without one do not count', () => {
  const names = ['2026-01-05T040000Z', '2026-01-06T040000Z', '2026-06-01T040000Z', '2026-06-01T050000Z']
  assert.deepEqual([...keptBackups(names, { daily: 3, weekly: 0, monthly: 0 })].sort(), [
    '2026-01-05T040000Z',
    '2026-01-06T040000Z',
    '2026-06-01T050000Z',
  ])
  assert.deepEqual([...keptBackups(names, { daily: 0, weekly: 0, monthly: 1 })], ['2026-06-01T050000Z'])
  assert.deepEqual([...keptBackups(names, 2)].sort(), ['2026-06-01T040000Z', '2026-06-01T050000Z'])
  assert.deepEqual([...keptBackups([], 2)], [])
})

test('keeping again what was kept removes nothing, whatever the rule', () => {
  const rules = [1, 5, { daily: 7, weekly: 4, monthly: 12 }, { daily: 1, weekly: 0, monthly: 3 }] as const
  for (const rule of rules) {
    const kept = keptBackups(daily(120), rule)
    assert.deepEqual(keptBackups([...kept], rule), kept)
    assert.ok(kept.has('2026-11-30T040000Z'))
  }
})
