// The computation of ratings: Plackett-Luce of the package openskill, with its defaults. The package is loaded by the first
// result that this process rates.
import { NEW_RATING } from '../database/ratings.ts'

export type Strength = { mu: number; sigma: number }
/** Returns the ratings after a match, in the order of the teams. Equal ranks are a draw; the lowest rank is the best. */
export type RateTeams = (teams: readonly (readonly Strength[])[], ranks: readonly number[]) => Strength[][]

export async function openModel(): Promise<RateTeams> {
  const { rate } = await import('openskill')
  const { mu, sigma } = NEW_RATING
  return (teams, ranks) =>
    rate(
      teams.map((team) => team.map((player) => ({ mu: player.mu, sigma: player.sigma }))),
      { rank: [...ranks], mu, sigma },
    )
}
