// Expiry, forgetting and undo in the plain book.
import type { Change } from '../../../src/journal/changes.ts'
import { dueOf, idleDueOf, isOutdated } from './idle.ts'
import { stop } from './lobbies.ts'
import { leave } from './players.ts'
import { lobbyOf, type PlainBook } from './state.ts'

const TEN_MINUTES_MS = 600_000

/** Makes a change that expiry caused. Returns whether it was due. */
export function takeExpiry(book: PlainBook, change: Change, now: number): boolean {
  if (change.kind === 'lobby_stopped') {
    const lobby = lobbyOf(book, change.lobby_id)!
    const reason = idleDueOf(book, lobby) > now ? 'never_ready' : isOutdated(book) ? 'outdated' : 'idle'
    const is_right = dueOf(book, lobby) <= now && change.ms === now && change.reason === reason
    stop(book, lobby.id, change.reason, now)
    return is_right
  }
  if (change.kind === 'party_ended') {
    const party = book.parties.find(({ id }) => id === change.party_id)!
    book.parties = book.parties.filter((one) => one !== party)
    return party.until <= now && change.ms === now
  }
  if (change.kind !== 'player_removed') return false
  const player = book.players.find((other) => other.id === change.player_id)!
  const reason = player.connected === null ? 'expired' : 'too_long'
  const is_right = dueOf(book, player) <= now && change.ms === now && change.reason === reason
  const lobby = lobbyOf(book, player.lobby)!
  if (reason === 'expired' && lobby.open > 0) lobby.expired_while_connected++
  leave(book, player, reason, now)
  return is_right
}

export function forget(book: PlainBook, now: number): void {
  book.players = book.players.filter((player) => player.left === null || player.left + TEN_MINUTES_MS > now)
  book.lobbies = book.lobbies.filter((lobby) => lobby.stopped === null || lobby.stopped + TEN_MINUTES_MS > now)
  book.solvers = book.solvers.filter((solver) => solver.until > now)
}

/**
 * Returns the committed state with the present holds and connections, because these are in no journal. The holds of undone
 * seats are restored.
 */
export function undone(committed: PlainBook, book: PlainBook): PlainBook {
  const restored = structuredClone(committed)
  const { plans } = book
  const isThere = (id: string): boolean => lobbyOf(restored, id) !== undefined || plans.some((plan) => plan.id === id)
  restored.holds = [...book.holds, ...book.seated].filter((one) => isThere(one.lobby))
  for (const lobby of restored.lobbies) {
    const { open, closed_since } = lobbyOf(book, lobby.id)!
    Object.assign(lobby, { open, closed_since })
  }
  return { ...restored, plans, seated: [], reported: book.reported }
}
