// Players of known skill who begin without a rating play duels in rounds. The rule `near` reads their ratings, and each result
// changes them. Printed: how well the order by rating agrees with the order by skill, and how far apart the opponents really are.
import { playMatches } from '@musterhost/contract/matching'
import { NEW_RATING, ordinalOf } from '@musterhost/server/database/ratings'
import { openModel, type Strength } from '@musterhost/server/ratings/model'
import { percentile, randomOf, skillOf } from './random.ts'

const ROUNDS = 40
const SHOWN_ROUNDS = [1, 5, 10, 20, 40]
const BETWEEN_ARRIVALS_S = 0.5
/** In units of a rating: a new one has 25, with a deviation of 8.3. */
const RULE = { near: 'skill', within: 1, widen: { every_s: 5, by: 1, to: 10 } }
/** A player with so much more skill wins ten times of eleven. */
const TENFOLD = 400

type Player = { skill: number; rating: Strength }

export async function playRatings(count: number, seed: number): Promise<void> {
  const rateTeams = await openModel()
  const random = randomOf(seed)
  const players = Array.from({ length: count }, (): Player => ({ skill: skillOf(random), rating: NEW_RATING }))
  console.log(
    `${count} players without a rating, duels by rating: within ${RULE.within}, widening by ${RULE.widen.by} every ${RULE.widen.every_s} s`,
  )
  for (let round = 1; round <= ROUNDS; round++) {
    const present = shuffled(players, random)
    const requests = present.map(({ rating }, index) => ({
      at_s: index * BETWEEN_ARRIVALS_S,
      attributes: { skill: rating.mu },
    }))
    const { matches } = playMatches({ size: { min: 2, max: 2 }, rules: [RULE] }, requests)
    const pairs = matches.map(({ requests }) => requests.map((index) => present[index]!) as [Player, Player])
    const foreseen = pairs.map(([one, other]) => playDuel(one, other, random, rateTeams))
    if (!SHOWN_ROUNDS.includes(round)) continue
    const gaps = pairs.map(([one, other]) => Math.abs(one.skill - other.skill))
    const waits_s = matches.flatMap((match) => match.waits_s)
    console.log(
      `after ${round} ${round === 1 ? 'duel' : 'duels'} each: order agrees ${rankCorrelation(players).toFixed(2)}; ` +
        `mean difference of skill ${Math.round(mean(gaps))}; the better rated won ${Math.round(mean(foreseen) * 100)} %; ` +
        `wait ${percentile(waits_s, 0.5).toFixed(1)} s for half, ${percentile(waits_s, 0.95).toFixed(1)} s for 95 %`,
    )
  }
}

/** Returns 1 when the better rated player won, 0 when the other one did, and a half for equal ratings. */
function playDuel(
  one: Player,
  other: Player,
  random: () => number,
  rateTeams: Awaited<ReturnType<typeof openModel>>,
): number {
  const has_won = random() < 1 / (1 + 10 ** ((other.skill - one.skill) / TENFOLD))
  const foreseen = one.rating.mu === other.rating.mu ? 0.5 : Number(one.rating.mu > other.rating.mu === has_won)
  const [after_one, after_other] = rateTeams([[one.rating], [other.rating]], has_won ? [1, 2] : [2, 1])
  one.rating = after_one![0]!
  other.rating = after_other![0]!
  return foreseen
}

/** Spearman's: 1 is the same order, 0 none. */
function rankCorrelation(players: readonly Player[]): number {
  const by_skill = ranksOf(players, ({ skill }) => skill)
  const by_rating = ranksOf(players, ({ rating }) => ordinalOf(rating))
  const squares = players.reduce((sum, player) => sum + (by_skill.get(player)! - by_rating.get(player)!) ** 2, 0)
  return 1 - (6 * squares) / (players.length * (players.length ** 2 - 1))
}

function ranksOf(players: readonly Player[], numberOf: (player: Player) => number): Map<Player, number> {
  return new Map(players.toSorted((a, b) => numberOf(a) - numberOf(b)).map((player, rank) => [player, rank]))
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, key: random() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item)
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
