// The identities and lobbies that a change concerns. Callers watch for changes of one of them (change-watch.ts).
import type { Change } from '../../journal/changes.ts'
import type { Book } from '../book/state.ts'

/** The ids that the change concerns. May name one twice, or one that does not watch. */
export type ConcernedKeys = (book: Book, change: Change) => Iterable<string>

/** Identities whose seat in a party, whose party, or whose wait for a match has changed. */
export function concernedIdentities(book: Book, change: Change): string[] {
  if (change.kind === 'player_reserved') {
    const { identity_id, leader_player_id } = change.player
    return identity_id !== null && leader_player_id !== null ? [identity_id] : []
  }
  if (change.kind === 'ticket_put') return identitiesOf(change.ticket.players)
  if (change.kind === 'ticket_ended') return identitiesOf(book.matching.ended(change.player_id)?.players ?? [])
  if (change.kind === 'lobby_ready') {
    const players = [...(book.lobbies.get(change.lobby_id)?.players.values() ?? [])]
    return identitiesOf(players.filter(({ leader_player_id, match }) => leader_player_id !== null || match != null))
  }
  if (change.kind === 'party_put') {
    const members = identitiesOf(change.party.members)
    return change.left === null ? members : [...members, change.left]
  }
  if (change.kind === 'party_ended') return identitiesOf(book.parties.get(change.party_id)?.members ?? [])
  return []
}

/** The lobby whose seats or state have changed. All lobbies, when their version begins or ceases to drain. */
export function concernedLobbies(book: Book, change: Change): Iterable<string> {
  if (change.kind === 'player_reserved') return [change.player.lobby_id]
  if (change.kind === 'player_connected' || change.kind === 'player_dropped' || change.kind === 'player_removed') {
    const player = book.players.get(change.player_id)
    return player === undefined ? [] : [player.lobby_id]
  }
  if (change.kind === 'lobby_closed' || change.kind === 'lobby_stopped') return [change.lobby_id]
  return change.kind === 'version_draining' ? book.lobbies.keys() : []
}

function identitiesOf(players: readonly { identity_id: string | null }[]): string[] {
  return players.flatMap(({ identity_id }) => identity_id ?? [])
}
