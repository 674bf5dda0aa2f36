import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addRecent, dayOf, minuteOf, stateOfRecent } from './minutes.ts'
import { overallState } from './view.ts'

test('a minute is bad when probes failed or half of its finds did, and not measured without either', () => {
  const probes = (failed_count: number) => ({ probe_count: 6, failed_count })
  const finds = (ended_count: number, failed_count: number) => ({ ended_count, failed_count })
  assert.equal(minuteOf(undefined, undefined), '-')
  assert.equal(minuteOf({ probe_count: 0, failed_count: 0 }, undefined), '-')
  assert.equal(minuteOf(probes(0), undefined), 'g')
  // One lost probe is no outage.
  assert.equal(minuteOf(probes(1), undefined), 'g')
  assert.equal(minuteOf(probes(2), undefined), 'b')
  assert.equal(minuteOf(probes(2), finds(100, 0)), 'b')
  assert.equal(minuteOf(undefined, finds(10, 4)), 'g')
  assert.equal(minuteOf(undefined, finds(10, 5)), 'b')
  assert.equal(minuteOf(probes(0), finds(1, 1)), 'b')
})

test('the state of now comes from the last three minutes, and is unknown when none was measured', () => {
  const states = { '': 'unknown', '---': 'unknown', ggg: 'operational', 'g--': 'operational', bbb: 'outage' }
  const more = { 'b--': 'outage', ggb: 'degraded', bgg: 'degraded', bbggg: 'operational', 'gg---': 'unknown' }
  for (const [recent, state] of Object.entries({ ...states, ...more })) {
    assert.equal(stateOfRecent(recent), state, recent)
  }
  assert.equal(addRecent('gggggggggg', ['b', '-']), 'ggggggggb-')
  assert.equal(dayOf(Date.UTC(2026, 10, 30, 23, 59)), '2026-11-30')
})

test('an open incident makes the page worse and never better, and one region of several degrades it', () => {
  const part = (state: 'operational' | 'degraded' | 'outage' | 'unknown') => ({ state })
  const good = part('operational')
  const open = (impact: 'none' | 'minor' | 'major', resolve_ts: string | null = null) => ({ impact, resolve_ts })
  assert.equal(overallState(good, [good], []), 'operational')
  assert.equal(overallState(good, [good, part('outage')], []), 'degraded')
  assert.equal(overallState(good, [part('outage')], []), 'outage')
  assert.equal(overallState(good, [good], [open('none')]), 'operational')
  assert.equal(overallState(good, [good], [open('minor')]), 'degraded')
  assert.equal(overallState(good, [good], [open('major')]), 'outage')
  assert.equal(overallState(good, [good], [open('major', '2026-11-30T00:00:00.000Z')]), 'operational')
  assert.equal(overallState(part('outage'), [good], [open('none')]), 'outage')
  assert.equal(overallState(part('unknown'), [], []), 'unknown')
})
