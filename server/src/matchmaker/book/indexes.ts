// The indexes of a book: each function keeps them in step with one lobby or player. Called by evolve.ts only.
import { requireLaw } from './laws.ts'
import { hasEnded, type Lobby, type Player } from './lobby.ts'
import { spectatingOf } from './spectating.ts'
import { addCount, type Book } from './state.ts'

/** To be called after any change of a lobby's seats, openness or times. */
export function arrange(book: Book, lobby: Lobby): void {
  book.open_lobbies.arrange(lobby)
  if (book.matching.is_used) book.matching.arrange(lobby)
  if (lobby.max_spectators > 0) spectatingOf(book).arrange(lobby)
  book.idle.arrange(lobby)
  schedule(book, lobby)
}

/** To be called before the tags of a lobby change; `arrange` after it. */
export function leaveTags(book: Book, lobby: Lobby): void {
  book.open_lobbies.remove(lobby)
  book.matching.remove(lobby)
  book.spectating?.remove(lobby)
}

/** To be called at once after a change of an end: a heap tolerates one item out of its place, but not two. */
export function schedule({ due, ended }: Book, timed: Lobby | Player): void {
  const has_ended = hasEnded(timed)
  const into = has_ended ? ended : due
  const from = has_ended ? due : ended
  from.remove(timed)
  into.put(timed)
}

/** A player takes a seat of the lobby. A spectator leaves its time as it was. */
export function enter(book: Book, lobby: Lobby, player: Player, idle_ms: number | null): void {
  if (player.is_spectator) {
    lobby.spectators.set(player.player_id, player)
    countSpectator(book, lobby, player, 1)
    return
  }
  lobby.players.set(player.player_id, player)
  if (player.match != null) book.matching.use()
  lobby.idle_ms = idle_ms
  if (lobby.players.size === 1) book.listing.arrange(lobby)
  arrange(book, lobby)
  addCount(book.client_players, player.client, 1)
}

/** A player leaves the lobby; its seat is free. */
export function exit(book: Book, lobby: Lobby, player: Player, idle_ms: number | null): void {
  if (player.is_spectator) {
    lobby.spectators.delete(player.player_id)
    countSpectator(book, lobby, player, -1)
    return
  }
  lobby.players.delete(player.player_id)
  lobby.idle_ms = idle_ms
  if (lobby.players.size === 0) book.listing.arrange(lobby)
  arrange(book, lobby)
  addCount(book.client_players, player.client, -1)
}

function countSpectator(book: Book, lobby: Lobby, { client }: Player, difference: 1 | -1): void {
  const spectating = spectatingOf(book)
  spectating.arrange(lobby)
  addCount(spectating.client_spectators, client, difference)
}

export function countLive(book: Book, { creator_identity_id }: Lobby, difference: 1 | -1): void {
  book.live_lobby_count += difference
  if (creator_identity_id !== null) addCount(book.creator_lobbies, creator_identity_id, difference)
}

export function remember(book: Book, player: Player): void {
  requireLaw(!book.players.has(player.player_id), 'L2: a player is seated once', player)
  book.players.set(player.player_id, player)
  if (player.seat_key !== null) book.seat_keys.set(player.seat_key, player)
  book.identity_seats.add(player)
  schedule(book, player)
}

export function forgetPlayer(book: Book, player: Player): void {
  book.players.delete(player.player_id)
  if (player.seat_key !== null && book.seat_keys.get(player.seat_key) === player) {
    book.seat_keys.delete(player.seat_key)
  }
  book.identity_seats.remove(player)
  book.due.remove(player)
  book.ended.remove(player)
}

export function forgetLobby(book: Book, lobby: Lobby): void {
  book.lobbies.delete(lobby.lobby_id)
  if (lobby.code != null && book.lobby_codes.get(lobby.code) === lobby) book.lobby_codes.delete(lobby.code)
  leaveTags(book, lobby)
  book.listing.remove(lobby)
  book.idle.remove(lobby)
  book.due.remove(lobby)
  book.ended.remove(lobby)
}
