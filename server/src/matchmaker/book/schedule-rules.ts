// What the schedules of a namespace say about its lobbies now. The rules are in no journal; the changes decided by them are.
import type { Lobby } from './lobby.ts'
import type { LobbyKey } from './open-lobbies.ts'

/** Which lobbies a schedule is about. Null: all. */
export type ScheduleScope = { game_modes: readonly string[] | null; regions: readonly string[] | null }

export type ScheduleRules = {
  /** Until then no lobby takes new players, and none starts; null: the namespace is not drained. */
  drained_until_ms: number | null
  /** Restarts under way: lobbies that were created before `begin_ms` end. */
  restarts: readonly (ScheduleScope & { begin_ms: number })[]
  /** The latest announcements, the last one at the end. */
  announcements: readonly (ScheduleScope & { text: string; ms: number })[]
}

export function isInScope({ game_modes, regions }: ScheduleScope, key: Omit<LobbyKey, 'version_id'>): boolean {
  if (game_modes !== null && !game_modes.includes(key.game_mode)) return false
  return regions === null || regions.includes(key.region)
}

export function isRestarting(rules: ScheduleRules | null, lobby: Lobby): boolean {
  return rules?.restarts.some((restart) => lobby.create_ms < restart.begin_ms && isInScope(restart, lobby)) ?? false
}

/** The last announcement for a lobby. */
export function lastAnnouncement(rules: ScheduleRules | null, lobby: Lobby): { text: string; ms: number } | undefined {
  return rules?.announcements.findLast((one) => isInScope(one, lobby))
}
