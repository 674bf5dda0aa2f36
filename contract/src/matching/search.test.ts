import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Attributes, MatchingConfig } from '../matching-config.ts'
import { type Candidate, type Latencies, valuesOf } from './candidate.ts'
import { type MatchRules, matchRulesOf } from './rules.ts'
import { CANDIDATES_MAX, findMatch, type Match } from './search.ts'

const NOW_MS = 1_800_000_000_000
/** Largest number of players of a lobby. */
const ROOM = 32

type Traits = { age_s?: number; party?: readonly Attributes[]; regions?: string[]; latencies?: Latencies }

/** Each candidate gets the next id. */
function queueOf(rules: MatchRules) {
  let last = 0
  return (attributes: Attributes, { age_s = 0, party, regions = ['eu'], latencies }: Traits = {}): Candidate => {
    const members = party ?? [attributes]
    return {
      id: `p${String(++last).padStart(3, '0')}`,
      since_ms: NOW_MS - age_s * 1_000,
      player_count: members.length,
      values: valuesOf(rules, members),
      regions,
      latencies: latencies ?? null,
    }
  }
}

function rulesOf(config: MatchingConfig) {
  const rules = matchRulesOf(config, ROOM)
  const find = (anchor: Candidate, ...others: Candidate[]) => findMatch(rules, anchor, others, NOW_MS)
  return { rules, waiting: queueOf(rules), find }
}

const idsOf = (match: Match | null): string[] | undefined => match?.members.map(({ id }) => id).sort()
const DUEL = { min: 2, max: 2 }
const SKILL = { near: 'skill', within: 100, widen: { every_s: 5, by: 50, to: 200 } }

test('a limit follows the one who has waited less, from both sides', () => {
  const { waiting, find } = rulesOf({ size: DUEL, rules: [SKILL] })
  const old = waiting({ skill: 1_000 }, { age_s: 60 })
  const young = waiting({ skill: 1_150 }, { age_s: 4 })
  assert.equal(find(young, old), null)
  assert.equal(find(old, young), null)
  const later = waiting({ skill: 1_150 }, { age_s: 5 })
  assert.deepEqual(idsOf(find(later, old)), [old.id, later.id])
  assert.deepEqual(idsOf(find(old, later)), [old.id, later.id])
})

test('a limit widens to its last step and no further', () => {
  const { waiting, find } = rulesOf({ size: DUEL, rules: [SKILL] })
  const old = waiting({ skill: 0 }, { age_s: 3_000 })
  assert.notEqual(find(waiting({ skill: 200 }, { age_s: 3_000 }), old), null)
  assert.equal(find(waiting({ skill: 201 }, { age_s: 3_000 }), old), null)
})

test('near holds between the least and the greatest of all players', () => {
  const { waiting, find } = rulesOf({ size: { min: 3, max: 3 }, rules: [{ near: 'skill', within: 100 }] })
  const [low, middle, high] = [waiting({ skill: 0 }), waiting({ skill: 60 }), waiting({ skill: 120 })]
  assert.equal(find(middle, low, high), null)
  assert.notEqual(find(middle, low, waiting({ skill: 100 })), null)
})

test('a party counts by the average, the least or the greatest of its members', () => {
  for (const [party, value] of Object.entries({ average: 200, least: 100, greatest: 300 })) {
    const { waiting, find } = rulesOf({
      size: { min: 3, max: 3 },
      rules: [{ near: 'skill', within: 10, party: party as 'average' }],
    })
    const two = waiting({}, { party: [{ skill: 100 }, { skill: 300 }] })
    assert.notEqual(find(waiting({ skill: value + 10 }), two), null, party)
    assert.equal(find(waiting({ skill: value + 11 }), two), null, party)
  }
})

test('a party is never divided, and never exceeds the match', () => {
  const { waiting, find } = rulesOf({ size: { min: 3, max: 3 } })
  const two = waiting({}, { party: [{}, {}] })
  const other_two = waiting({}, { party: [{}, {}] })
  assert.equal(find(two, other_two), null)
  const single = waiting({})
  assert.deepEqual(idsOf(find(single, two, other_two)), [two.id, single.id].sort())
})

test('same refuses other texts, until it is optional', () => {
  const { waiting, find } = rulesOf({ size: DUEL, rules: [{ same: 'map', optional_after_s: 10 }] })
  assert.equal(find(waiting({ map: 'bay' }), waiting({ map: 'dunes' }, { age_s: 60 })), null)
  const both_late = [waiting({ map: 'bay' }, { age_s: 10 }), waiting({ map: 'dunes' }, { age_s: 60 })] as const
  assert.notEqual(find(...both_late), null)
})

test('share needs texts that all have', () => {
  const { waiting, find } = rulesOf({ size: { min: 3, max: 3 }, rules: [{ share: 'maps', at_least: 1 }] })
  const [ab, bc, ca] = [waiting({ maps: ['a', 'b'] }), waiting({ maps: ['b', 'c'] }), waiting({ maps: ['c', 'a'] })]
  // Each two share a map, and all three none.
  assert.equal(find(ab, bc, ca), null)
  assert.notEqual(find(ab, bc, waiting({ maps: ['b'] })), null)
})

test('sum counts all players of a match, at least and at most', () => {
  const { waiting, find } = rulesOf({ size: { min: 3, max: 3 }, rules: [{ sum: 'healer', between: [1, 1] }] })
  const healer = () => waiting({ healer: 1 })
  const other = () => waiting({ healer: 0 })
  assert.equal(find(other(), other(), other()), null)
  assert.equal(find(healer(), healer(), healer()), null)
  const [one, first, second] = [healer(), other(), other()]
  assert.equal(idsOf(find(first, healer(), one, second))?.length, 3)
})

test('ping takes the region whose worst player is best', () => {
  const { waiting, find } = rulesOf({ size: DUEL, rules: [{ ping: 'region', within: 80 }] })
  const regions = ['eu', 'us']
  const berlin = waiting({}, { regions, latencies: { eu: 20, us: 78 } })
  const boston = waiting({}, { regions, latencies: { eu: 79, us: 15 } })
  assert.deepEqual(find(berlin, boston)?.regions, ['us', 'eu'])
  assert.equal(find(berlin, waiting({}, { regions, latencies: { eu: 90, us: 85 } })), null)
})

test('a player without measurements is never unmatched', () => {
  const { waiting, find } = rulesOf({ size: DUEL, rules: [{ ping: 'region', within: 80 }] })
  assert.notEqual(find(waiting({}), waiting({}, { latencies: { eu: 40 } })), null)
})

test('players without a common region do not meet', () => {
  const { waiting, find } = rulesOf({ size: DUEL })
  assert.equal(find(waiting({}, { regions: ['eu'] }), waiting({}, { regions: ['us'] })), null)
})

test('a missing attribute matches anything and comes last; a default replaces it', () => {
  const { waiting, find } = rulesOf({ size: DUEL, rules: [SKILL] })
  const [unknown, near] = [waiting({}), waiting({ skill: 1_090 })]
  assert.deepEqual(idsOf(find(waiting({ skill: 1_000 }), unknown)), [unknown.id, 'p003'])
  const anchor = waiting({ skill: 1_000 }, { age_s: 30 })
  assert.deepEqual(idsOf(find(anchor, unknown, near)), [near.id, anchor.id])
  const with_default = rulesOf({ size: DUEL, attributes: { skill: { default: 0 } }, rules: [SKILL] })
  assert.equal(with_default.find(with_default.waiting({ skill: 1_000 }), with_default.waiting({})), null)
})

test('the one who has waited longest is served first, then the nearest, then the older, then the lower id', () => {
  const { waiting, find } = rulesOf({ size: { min: 3, max: 3 }, rules: [{ near: 'skill', within: 100 }] })
  const anchor = waiting({ skill: 50 })
  const oldest = waiting({ skill: 0 }, { age_s: 9 })
  const far = waiting({ skill: 90 }, { age_s: 8 })
  const near = waiting({ skill: 10 }, { age_s: 1 })
  assert.deepEqual(idsOf(find(anchor, far, near, oldest)), [anchor.id, oldest.id, near.id].sort())
  const twin = waiting({ skill: 10 }, { age_s: 1 })
  assert.deepEqual(idsOf(find(anchor, twin, near, oldest)), [anchor.id, oldest.id, near.id].sort())
})

test('the order of the candidates does not change the match', () => {
  const { waiting, find } = rulesOf({ size: { min: 4, max: 4 }, rules: [SKILL] })
  const others = Array.from({ length: 12 }, (_, index) => waiting({ skill: index * 13 }, { age_s: index % 5 }))
  const anchor = waiting({ skill: 70 })
  const expected = idsOf(find(anchor, ...others))
  assert.ok(expected)
  assert.deepEqual(idsOf(find(anchor, ...others.toReversed())), expected)
})

test('a match begins at once when it is full, and with fewer after start_after_s', () => {
  const { waiting, find } = rulesOf({ size: { min: 2, max: 4 }, start_after_s: 20 })
  const early = waiting({}, { age_s: 19 })
  assert.equal(find(early, waiting({}), waiting({})), null)
  assert.equal(find(early, waiting({}), waiting({}), waiting({}))?.members.length, 4)
  const late = waiting({}, { age_s: 20 })
  // As large as possible.
  assert.equal(find(waiting({}), late, waiting({}))?.members.length, 3)
  assert.equal(find(late), null)
})

test('a request alone begins a match only when it meets the minimum', () => {
  const { waiting, find } = rulesOf({ size: { min: 1, max: 4 }, start_after_s: 5 })
  assert.equal(find(waiting({}, { age_s: 4 })), null)
  assert.equal(find(waiting({}, { age_s: 5 }))?.members.length, 1)
  const full = waiting({}, { party: [{}, {}, {}, {}] })
  assert.equal(find(full)?.members.length, 1)
})

const TEAMS = [
  { name: 'red', min: 2, max: 2 },
  { name: 'blue', min: 2, max: 2 },
]

test('teams get whole parties, and the players who fill them', () => {
  const { waiting, find } = rulesOf({ teams: TEAMS })
  const two = waiting({}, { party: [{}, {}] })
  const [one, other] = [waiting({}), waiting({})]
  const match = find(one, two, other)!
  const team = (candidate: Candidate) => match.teams[match.members.indexOf(candidate)]
  assert.equal(team(one), team(other))
  assert.notEqual(team(one), team(two))
  const three = waiting({}, { party: [{}, {}, {}] })
  assert.equal(find(three, waiting({})), null)
})

test('balance exchanges players until the averages are close, and refuses a match that stays one-sided', () => {
  const { waiting, find } = rulesOf({ teams: TEAMS, rules: [{ balance: 'skill', within: 20 }] })
  const players = [400, 380, 30, 10].map((skill, index) => waiting({ skill }, { age_s: index }))
  const match = find(players[0]!, ...players.slice(1))!
  const sums = { red: 0, blue: 0 }
  for (const [index, { values }] of match.members.entries()) {
    sums[match.teams[index] as 'red'] += values[0] as number
  }
  assert.equal(sums.red, sums.blue)
  const one_sided = [1_000, 0, 0, 0].map((skill) => waiting({ skill }))
  assert.equal(find(one_sided[0]!, ...one_sided.slice(1)), null)
})

test('even_teams bounds the difference of the teams', () => {
  const teams = [
    { name: 'red', min: 1, max: 3 },
    { name: 'blue', min: 1, max: 3 },
  ]
  const config = { size: { min: 4, max: 6 }, teams, start_after_s: 0 }
  const uneven = rulesOf(config)
  const party = (of: typeof uneven) => of.waiting({}, { party: [{}, {}, {}] })
  assert.notEqual(uneven.find(uneven.waiting({}), party(uneven)), null)
  const even = rulesOf({ ...config, rules: [{ even_teams: 1 }] })
  assert.equal(even.find(even.waiting({}), party(even)), null)
})

test('a search has a bound, however many wait and however hopeless it is', () => {
  const { rules, waiting } = rulesOf({ size: { min: 20, max: 20 }, rules: [{ sum: 'key', between: [1, 1] }] })
  const others = Array.from({ length: 1_000 }, () => waiting({ key: 0 }))
  const counts = { candidates: 0, compatible_players: 0, refusals: new Map<number, number>() }
  assert.equal(findMatch(rules, waiting({ key: 0 }), others, NOW_MS, counts), null)
  assert.equal(counts.candidates, CANDIDATES_MAX)
})
