import assert from 'node:assert/strict'
import test from 'node:test'
import { playMatches } from './play.ts'

const SKILL = { near: 'skill', within: 100, widen: { every_s: 5, by: 100, to: 300 } }
const DUEL = { size: { min: 2, max: 2 }, rules: [SKILL] }
const player = (at_s: number, skill: number) => ({ at_s, attributes: { skill } })

test('players meet when they fit, at their arrival or when a limit has widened', () => {
  const { matches, waiting_count } = playMatches(DUEL, [
    player(0, 0),
    player(1, 50),
    player(2, 1_000),
    player(4, 1_250),
  ])
  assert.deepEqual(matches, [
    { at_s: 1, requests: [0, 1], player_count: 2, waits_s: [1, 0], differences: { skill: 50 } },
    { at_s: 14, requests: [2, 3], player_count: 2, waits_s: [12, 10], differences: { skill: 250 } },
  ])
  assert.equal(waiting_count, 0)
})

test('parties stay whole, and players who fit nowhere still wait at the end', () => {
  const rules = { size: { min: 3, max: 3 }, rules: [SKILL] }
  const party = { at_s: 0, party: [{ skill: 10 }, { skill: 30 }] }
  const { matches, waiting_count } = playMatches(rules, [party, party, player(3, 0), player(3, 9_000)])
  assert.deepEqual(
    matches.map(({ player_count }) => player_count),
    [3],
  )
  assert.equal(waiting_count, 3)
})
