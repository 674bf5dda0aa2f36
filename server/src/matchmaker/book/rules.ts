// Which lobby a find gets: the fullest with free seats, among equals the oldest. Deterministic, so that a decision can be
// replayed and explained.
import type { Lobby } from './lobby.ts'

/** Seats that are taken or held. */
export function takenSeats(lobby: Lobby): number {
  return lobby.players.size + lobby.held_count
}

/** The largest limit of players. */
export function largestLimit({ max_players_normal, max_players_direct, max_players_party }: Lobby): number {
  return Math.max(max_players_normal, max_players_direct, max_players_party)
}

/** Seats of spectators that are taken or held. */
export function takenSpectatorSeats(lobby: Lobby): number {
  return lobby.spectators.size + lobby.held_spectator_count
}

export function hasSpectatorSeat(lobby: Lobby): boolean {
  return takenSpectatorSeats(lobby) < lobby.max_spectators
}

/** A find of a spectator may get it. It has players to watch, and may be full, or closed because its match has begun. */
export function isWatchable(lobby: Lobby): boolean {
  if (!hasSpectatorSeat(lobby) || lobby.players.size === 0) return false
  return lobby.ready_ms !== null && lobby.stop_ms === null && !lobby.is_stalled && lobby.publicity === 'public'
}

/** More players; among equals, the older one. */
export function isBetterToWatch(a: Lobby, b: Lobby): boolean {
  const difference = b.players.size - a.players.size
  return difference === 0 ? isOlder(a, b) : difference < 0
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
