// The laws L1 to L4, asserted after every step.
import assert from 'node:assert'
import type { Change } from '../../../src/journal/changes.ts'
import type { Lobby } from '../../../src/matchmaker/book/lobby.ts'
import type { Book } from '../../../src/matchmaker/book/state.ts'
import { CLIENT_PLAYERS_MAX, LOBBIES_MAX } from './steps.ts'

/** Laws L1, L3 and L4, over the state of a book. */
export function assertStateLaws(book: Book): void {
  const largest = ({ max_players_normal, max_players_direct, max_players_party }: Lobby): number =>
    Math.max(max_players_normal, max_players_direct, max_players_party)
  const clients = new Map<string, number>()
  const spectators = new Map<string, number>()
  let live = 0
  for (const lobby of book.lobbies.values()) {
    assert.ok(lobby.players.size <= largest(lobby), 'L1: no lobby has more players than its limit')
    assert.ok(lobby.spectators.size <= (lobby.max_spectators ?? 0), 'L1: no lobby has more spectators than its limit')
    if (lobby.stop_ms === null) live++
    else assert.equal(lobby.players.size + lobby.spectators.size, 0, 'L1: what has stopped has no players')
  }
  for (const player of book.players.values()) {
    if (player.remove_ms !== null) continue
    const lobby = book.lobbies.get(player.lobby_id)
    const [seats, counts] = player.is_spectator ? [lobby?.spectators, spectators] : [lobby?.players, clients]
    assert.equal(seats?.get(player.player_id), player, 'L1: seats are players')
    counts.set(player.client, (counts.get(player.client) ?? 0) + 1)
  }
  assert.ok(live <= LOBBIES_MAX && live === book.live_lobby_count, 'L3: lobby_count_max is exact')
  for (const count of [...clients.values(), ...spectators.values()])
    assert.ok(count <= CLIENT_PLAYERS_MAX, 'L4: the limit of a client is exact')
}

/** Law L2, over all committed changes: a player connects once and leaves once. */
export class SeatHistory {
  /** The time of each event that must not happen again, by kind and player. */
  readonly #events = new Map<string, number>()
  #checked_count = 0

  /** Checks each committed change once. */
  check(committed: readonly Change[]): void {
    for (const change of committed.slice(this.#checked_count)) this.#checkChange(change)
    this.#checked_count = committed.length
  }

  #checkChange(change: Change): void {
    // A player whose connection dropped may connect once more.
    if (change.kind === 'player_dropped') this.#events.delete(`player_connected ${change.player_id}`)
    if (change.kind !== 'player_connected' && change.kind !== 'player_removed') return
    const key = `${change.kind} ${change.player_id}`
    assert.ok(!this.#events.has(key), `L2: ${key} happened twice`)
    if (change.kind === 'player_connected') assert.ok(!this.#events.has(`player_removed ${change.player_id}`), 'L2')
    this.#events.set(key, change.ms)
  }
}
