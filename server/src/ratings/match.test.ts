import assert from 'node:assert/strict'
import test from 'node:test'
import { NEW_RATING, ordinalOf } from '../database/ratings.ts'
import { matchOf } from './match.ts'
import { openModel } from './model.ts'

/** Players are named by letters; a player's identity is its letter in lower case, and a digit stands for none. */
function matchOfNames(names: readonly string[], ranks: readonly number[], same: Record<string, string> = {}) {
  const teams = names.map((team) => [...team].map((player_id) => ({ player_id, path: [] })))
  const identityOf = (player_id: string) => (/\d/.test(player_id) ? null : (same[player_id] ?? player_id.toLowerCase()))
  const players = teams.flat().map((player) => ({ ...player, identity_id: identityOf(player.player_id) }))
  return matchOf(teams, ranks, players)
}

const reasonsOf = ({ teams }: ReturnType<typeof matchOf>) =>
  Object.fromEntries(teams.flat().map(({ player_id, unrated_reason }) => [player_id, unrated_reason]))

test('every player with an identity is rated, and the others are named with the reason', () => {
  const match = matchOfNames(['A1', 'B'], [1, 2])
  assert.deepEqual(reasonsOf(match), { A: null, B: null, 1: 'no_identity' })
  assert.deepEqual(match.identity_ids, ['a', 'b'])
})

test('an identity with two players is rated once, in its team with the worst place', () => {
  const [won, lost] = [
    matchOfNames(['A', 'B', 'C'], [1, 2, 3], { C: 'a' }),
    matchOfNames(['A', 'C'], [2, 1], { C: 'a' }),
  ]
  assert.deepEqual(reasonsOf(won), { A: 'same_identity', B: null, C: null })
  assert.deepEqual(reasonsOf(lost), { A: null, C: 'same_identity' })
  assert.deepEqual(won.identity_ids, ['a', 'b'])
})

test('an identity with two players at the same place is rated for the first of them', () => {
  assert.deepEqual(reasonsOf(matchOfNames(['AB', 'C'], [1, 2], { B: 'a' })), { A: null, B: 'same_identity', C: null })
})

test('a winner gains, a loser loses by the same, and both become more certain', async () => {
  const rateTeams = await openModel()
  const [[winner], [loser]] = rateTeams([[NEW_RATING], [NEW_RATING]], [1, 2]) as [[Value], [Value]]
  assert.ok(winner.mu > NEW_RATING.mu && winner.sigma < NEW_RATING.sigma)
  assert.ok(Math.abs(winner.mu + loser.mu - 2 * NEW_RATING.mu) < 1e-9)
  assert.equal(winner.sigma, loser.sigma)
  assert.equal(ordinalOf(NEW_RATING), NEW_RATING.ordinal)
})

type Value = { mu: number; sigma: number }

test('a draw of equals changes no estimate, and only the order of the places counts', async () => {
  const rateTeams = await openModel()
  for (const [player] of rateTeams([[NEW_RATING], [NEW_RATING], [NEW_RATING]], [4, 4, 4])) {
    assert.ok(Math.abs(player!.mu - NEW_RATING.mu) < 1e-9)
  }
  const teams = [[NEW_RATING, NEW_RATING], [NEW_RATING], [NEW_RATING]]
  assert.deepEqual(rateTeams(teams, [2, 1, 2]), rateTeams(teams, [200, 7, 200]))
})

test('the places are of the teams as they were sent: a team in front may have lost', async () => {
  const rateTeams = await openModel()
  const [first, second] = rateTeams([[NEW_RATING], [NEW_RATING]], [2, 1]) as [[Value], [Value]]
  assert.ok(first[0].mu < second[0].mu)
})
