// Who is rated for a match: every player whose seat has an identity, and each identity once. All others take part in the
// computation as new players and keep no rating: without them their teams would count as smaller ones.
import type { NamedPlayer, SeatedPlayer } from './players.ts'

/** `identity_id`: null: no rating belongs to the player, for `unrated_reason`. */
export type RatedPlayer = {
  player_id: string
  identity_id: string | null
  unrated_reason: 'no_identity' | 'same_identity' | null
}
/** `identity_ids`: of the players who are rated, each once, sorted. */
export type MatchTeams = { teams: RatedPlayer[][]; ranks: readonly number[]; identity_ids: string[] }

/**
 * An identity with several players is rated in its team with the worst rank, and there for the first of them. So a second seat
 * changes no lost match into a won one.
 */
export function matchOf(
  teams: readonly (readonly NamedPlayer[])[],
  ranks: readonly number[],
  players: readonly SeatedPlayer[],
): MatchTeams {
  const identities = new Map(players.map(({ player_id, identity_id }) => [player_id, identity_id]))
  const rated = new Map<string, { player_id: string; rank: number }>()
  for (const [i, team] of teams.entries()) {
    const rank = ranks[i]!
    for (const { player_id } of team) {
      const identity_id = identities.get(player_id) ?? null
      if (identity_id === null) continue
      const former = rated.get(identity_id)
      if (former === undefined || former.rank < rank) rated.set(identity_id, { player_id, rank })
    }
  }
  const ratedPlayer = ({ player_id }: NamedPlayer): RatedPlayer => {
    const identity_id = identities.get(player_id) ?? null
    if (identity_id === null) return { player_id, identity_id, unrated_reason: 'no_identity' }
    if (rated.get(identity_id)?.player_id === player_id) return { player_id, identity_id, unrated_reason: null }
    return { player_id, identity_id: null, unrated_reason: 'same_identity' }
  }
  return { teams: teams.map((team) => team.map(ratedPlayer)), ranks, identity_ids: [...rated.keys()].sort() }
}
