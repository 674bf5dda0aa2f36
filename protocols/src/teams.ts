// The players of a lobby by team, for the forms in which matchmakers of other platforms describe a match.
import type { LobbySeat } from './lobby.ts'

/** Without spectators. `without_team`: the name for players of a game mode without teams. */
export function teamsOf(seats: readonly LobbySeat[], without_team: string): Map<string, LobbySeat[]> {
  const teams = new Map<string, LobbySeat[]>()
  for (const seat of seats) {
    if (seat.role === 'spectator') continue
    const team = seat.team ?? without_team
    teams.set(team, [...(teams.get(team) ?? []), seat])
  }
  return teams
}
