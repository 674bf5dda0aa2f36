// Which lobbies and players a change touches, and what their rows look like then: what the projection has to write.

import type { Change } from '../../journal/changes.ts'
import type { Book } from '../book/state.ts'
import { captchaClientRow, drainingVersionRow, type Images, lobbyRow, partyRow, playerRow } from './rows.ts'

/** Marks the id of a version among those of lobbies and players. */
const VERSION_PREFIX = 'version '

/** Ids of lobbies, players and parties, and clients, and marked ids of versions, whose rows the change makes different. To be asked before the change is applied. */
export function touchedBy(book: Book, change: Change): string[] {
  switch (change.kind) {
    case 'lobby_created':
      return [change.lobby.lobby_id]
    case 'lobby_closed':
    case 'lobby_stalled':
    case 'lobby_state':
      return [change.lobby_id]
    case 'lobby_ready':
    case 'lobby_stopped':
      return [change.lobby_id, ...(book.lobbies.get(change.lobby_id)?.players.keys() ?? [])]
    case 'player_reserved':
      return [change.player.lobby_id, change.player.player_id]
    case 'player_connected': {
      const { player_id } = change
      const lobby = book.lobbies.get(book.players.get(player_id)?.lobby_id ?? '')
      // Only the first one changes the lobby's row.
      return lobby === undefined || lobby.has_reported_players ? [player_id] : [lobby.lobby_id, player_id]
    }
    case 'player_dropped':
      return [change.player_id]
    case 'player_removed': {
      const player = book.players.get(change.player_id)
      return player === undefined ? [] : [player.lobby_id, player.player_id]
    }
    case 'version_draining':
      return [`${VERSION_PREFIX}${change.version_id}`]
    case 'client_verified':
    case 'client_counted':
      return [change.client]
    case 'party_put':
      return [change.party.party_id]
    case 'party_ended':
      return [change.party_id]
  }
}

export function imagesOf(book: Book, namespace_id: string, shard: number, ids: Iterable<string>, images: Images): void {
  for (const id of ids) {
    if (id.startsWith(VERSION_PREFIX)) {
      const version_id = id.slice(VERSION_PREFIX.length)
      const row = drainingVersionRow(namespace_id, shard, version_id, book.draining.has(version_id))
      images.draining_versions.set(`${namespace_id} ${version_id}`, row)
      continue
    }
    const lobby = book.lobbies.get(id)
    if (lobby !== undefined) images.lobbies.set(id, lobbyRow(namespace_id, shard, lobby))
    const player = book.players.get(id)
    if (player !== undefined) images.players.set(id, playerRow(namespace_id, shard, player))
    const party = book.parties.get(id)
    if (party !== undefined) images.parties.set(id, partyRow(namespace_id, shard, party))
    const verified = book.verified.get(id)
    if (verified !== undefined) {
      images.captcha_clients.set(`${namespace_id} ${id}`, captchaClientRow(namespace_id, shard, verified))
    }
  }
}
