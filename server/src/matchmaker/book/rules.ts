// Which lobby a find gets: the fullest with free seats, among equals the oldest. Deterministic, so that a decision can be
// replayed and explained.
import type { Lobby } from './lobby.ts'

/** Seats that are taken or held. */
export function takenSeats(lobby: Lobby): number {
  return lobby.players.size + lobby.held_count
}

/** Seats that are free for players who come by find. */
function freeSeats(lobby: Lobby): number {
  return lobby.max_players_normal - takenSeats(lobby)
}

/** Seats that are free for the members of a party. */
export function freePartySeats(lobby: Lobby): number {
  return lobby.max_players_party - takenSeats(lobby)
}

/** Starting or running, public, not closed, and not stalled: a find may get it while seats are free. */
export function isFindable(lobby: Lobby): boolean {
  return lobby.stop_ms === null && !lobby.is_closed && !lobby.is_stalled && lobby.publicity === 'public'
}

/** A find of a single player may get it. */
export function isOpen(lobby: Lobby): boolean {
  return isFindable(lobby) && freeSeats(lobby) > 0
}

export function isBetter(a: Lobby, b: Lobby): boolean {
  const difference = freeSeats(a) - freeSeats(b)
  return difference === 0 ? isOlder(a, b) : difference < 0
}

/** For lobbies of the same millisecond the id decides, which is the same after every load. */
export function isOlder(a: Lobby, b: Lobby): boolean {
  return a.create_ms === b.create_ms ? a.lobby_id < b.lobby_id : a.create_ms < b.create_ms
}

export function hasTags(lobby: Lobby, tags: readonly (readonly [string, string])[]): boolean {
  return tags.every(([name, value]) => Object.hasOwn(lobby.tags, name) && lobby.tags[name] === value)
}
