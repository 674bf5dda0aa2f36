import assert from 'node:assert/strict'
import { test } from 'node:test'
import { announcementText, isInTime, LATE_MS_MAX, MISSED_ENTRIES_MAX, missedEntries } from './lateness.ts'
import { cronFault, isTimeZone, nextOccurrences, nextStep, stepsBetween } from './occurrences.ts'

const at = (text: string): number => Date.parse(text)
const times = (cron: string, time_zone: string, after: string, count: number): string[] =>
  nextOccurrences({ cron, time_zone }, at(after), count).map((ms) => new Date(ms).toISOString().slice(0, 16))

test('an occurrence is at the local time of its zone, in summer and in winter', () => {
  const friday = '0 18 * * FRI'
  assert.deepEqual(times(friday, 'Europe/Berlin', '2026-10-20T00:00Z', 2), ['2026-10-23T16:00', '2026-10-30T17:00'])
  assert.deepEqual(times(friday, 'America/New_York', '2026-10-28T00:00Z', 2), ['2026-10-30T22:00', '2026-11-06T23:00'])
  assert.deepEqual(times(friday, 'Asia/Kolkata', '2026-10-28T00:00Z', 1), ['2026-10-30T12:30'])
  assert.deepEqual(times(friday, 'UTC', '2026-10-30T18:00Z', 1), ['2026-11-06T18:00'], 'strictly after')
})

test('a time that a day does not have is due after the gap, once', () => {
  const found = times('30 2 * * *', 'Europe/Berlin', '2027-03-27T12:00Z', 2)
  assert.deepEqual(found, ['2027-03-28T01:00', '2027-03-29T00:30'])
  // Clocks of this zone go forward by half an hour.
  const howe = times('15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00Z', 2)
  assert.deepEqual(howe, ['2026-10-03T15:30', '2026-10-04T15:15'])
  const list = times('30 2,14 * * *', 'America/New_York', '2027-03-14T00:00Z', 2)
  assert.deepEqual(list, ['2027-03-14T07:00', '2027-03-14T18:30'], 'of a list as well')
})

test('a time that a day has twice is due once, at the first', () => {
  const found = times('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', 2)
  assert.deepEqual(found, ['2026-10-25T00:30', '2026-10-26T01:30'])
  const york = times('30 1 * * *', 'America/New_York', '2026-10-31T12:00Z', 2)
  assert.deepEqual(york, ['2026-11-01T05:30', '2026-11-02T06:30'])
})

test('days at the end of months are found', () => {
  const last = times('0 5 L * *', 'UTC', '2027-01-31T06:00Z', 3)
  assert.deepEqual(last, ['2027-02-28T05:00', '2027-03-31T05:00', '2027-04-30T05:00'])
  const thirtieth = times('0 0 31 * *', 'UTC', '2027-01-31T06:00Z', 2)
  assert.deepEqual(thirtieth, ['2027-03-31T00:00', '2027-05-31T00:00'])
  assert.deepEqual(times('0 0 29 2 *', 'UTC', '2026-01-01T00:00Z', 1), ['2028-02-29T00:00'])
})

test('an expression that is wrong, or that no day fits, has a fault', () => {
  assert.equal(cronFault('0 18 * * FRI'), null)
  assert.equal(cronFault('0 0 31 2 *'), 'No day fits this expression.')
  for (const cron of ['61 * * * *', '0 18 * *', '0 0 18 * * FRI', 'at five o clock now', '* * * * XYZ']) {
    assert.notEqual(cronFault(cron), null, cron)
  }
  assert.equal(isTimeZone('Europe/Berlin'), true)
  assert.equal(isTimeZone('Europe/Atlantis'), false)
})

const RESTART = { cron: '0 5 * * *', time_zone: 'UTC', before_s: [900, 300] }

test('announcements come before what they announce, in order', () => {
  const steps = stepsBetween(RESTART, at('2026-11-30T04:00Z'), at('2026-12-01T04:50Z'), 100)
  const found = steps.map(({ at_ms, before_s }) => [new Date(at_ms).toISOString().slice(8, 16), before_s])
  assert.deepEqual(found, [
    ['30T04:45', 900],
    ['30T04:55', 300],
    ['30T05:00', 0],
    ['01T04:45', 900],
  ])
  for (let index = 1; index < steps.length; index++) {
    assert.deepEqual(nextStep(RESTART, steps[index - 1]!.at_ms), steps[index])
  }
  assert.equal(stepsBetween(RESTART, at('2026-11-30T05:00Z'), at('2026-11-30T05:01Z'), 100).length, 0)
  assert.equal(stepsBetween(RESTART, at('2000-01-01T00:00Z'), at('2026-01-01T00:00Z'), 50).length, 50)
})

test('a late step is done within its grace, and missed after it', () => {
  const due_ms = at('2026-11-30T05:00Z')
  const main = { at_ms: due_ms, due_ms, before_s: 0 }
  for (const kind of ['restart', 'announce'] as const) {
    assert.equal(isInTime(kind, undefined, main, due_ms + LATE_MS_MAX), true)
    assert.equal(isInTime(kind, undefined, main, due_ms + LATE_MS_MAX + 1), false)
  }
  for (const kind of ['idle_lobbies', 'drain'] as const) {
    assert.equal(isInTime(kind, 3_600, main, due_ms + 3_599_999), true, 'while its window lasts')
    assert.equal(isInTime(kind, 3_600, main, due_ms + 3_600_000), false)
  }
  const before = { at_ms: due_ms - 300_000, due_ms, before_s: 300 }
  assert.equal(isInTime('restart', undefined, before, due_ms - 1), true)
  assert.equal(isInTime('restart', undefined, before, due_ms), false, 'what it announces has begun')
})

test('missed steps have an entry each, and the oldest of many share one', () => {
  const steps = Array.from({ length: 100 }, (_, minute) => ({
    ...{ at_ms: minute * 60_000, due_ms: minute * 60_000, before_s: 0 },
  }))
  const entries = missedEntries(steps)
  assert.equal(entries.length, MISSED_ENTRIES_MAX + 1)
  assert.deepEqual(entries[0], { step: steps[79], missed_count: 80 })
  assert.equal(
    entries.reduce((sum, { missed_count }) => sum + missed_count, 0),
    100,
  )
  assert.deepEqual(missedEntries(steps.slice(0, 1)), [{ step: steps[0], missed_count: 1 }])
})

test('an announcement says the minutes that are left', () => {
  const due_ms = at('2026-11-30T05:00Z')
  assert.equal(announcementText('in {minutes} min', due_ms, due_ms - 300_000), 'in 5 min')
  assert.equal(announcementText('in {minutes} min', due_ms, due_ms - 240_000), 'in 4 min')
  assert.equal(announcementText('in {minutes} min', due_ms, due_ms - 1_000), 'in 1 min')
})
