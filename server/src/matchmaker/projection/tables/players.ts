import type { Selectable } from 'kysely'
import type { Schema } from '../../../database/schema.ts'
import type { PlayerMatch, RemoveReason } from '../../../journal/changes.ts'
import { type Player, seatsIn } from '../../book/lobby.ts'
import { MEMORY_MS } from '../../book/state.ts'
import type { ProjectedTable } from './descriptor.ts'

type Selected = Selectable<Schema['players']>
type PlayerRow = ReturnType<typeof rowOf>

export const players: ProjectedTable<PlayerRow, Player, Selected, Player> = {
  name: 'players',
  key: ['player_id'],
  columns: {
    player_id: ['uuid', 'fixed'],
    lobby_id: ['uuid', 'fixed'],
    namespace_id: ['uuid', 'fixed'],
    client: ['text', 'fixed'],
    create_ts: ['time', 'fixed'],
    deadline_ts: ['time', 'updated'],
    connect_ts: ['time', 'updated'],
    remove_ts: ['time', 'updated'],
    remove_reason: ['text', 'updated'],
    seat_key: ['text', 'fixed'],
    connect_key: ['text', 'updated'],
    disconnect_key: ['text', 'updated'],
    identity_id: ['uuid', 'fixed'],
    leader_player_id: ['uuid', 'fixed'],
    match: ['jsonb', 'fixed'],
    is_spectator: ['boolean', 'fixed'],
  },
  addAffected(book, change, ids) {
    switch (change.kind) {
      case 'lobby_ready':
      case 'lobby_stopped': {
        const lobby = book.lobbies.get(change.lobby_id)
        if (lobby !== undefined) for (const { player_id } of seatsIn(lobby)) ids.add(player_id)
        break
      }
      case 'player_reserved':
        ids.add(change.player.player_id)
        break
      case 'player_connected':
      case 'player_dropped':
      case 'player_removed':
        ids.add(change.player_id)
        break
    }
  },
  addUnended(book, ids) {
    for (const { player_id, remove_ms } of book.players.values()) if (remove_ms === null) ids.add(player_id)
  },
  valueOf: (book, player_id) => book.players.get(player_id),
  rowOf,
  loaded: {
    where: 'remove_ts is null or remove_ts > $2',
    since_ms: (now_ms) => now_ms - MEMORY_MS,
    order_by: 'create_ts, remove_ts nulls last',
  },
  storedOf,
}

function rowOf(namespace_id: string, player: Player) {
  return {
    player_id: player.player_id,
    lobby_id: player.lobby_id,
    namespace_id,
    client: player.client,
    create_ts: player.create_ms,
    deadline_ts: player.deadline_ms,
    connect_ts: player.connect_ms,
    remove_ts: player.remove_ms,
    remove_reason: player.remove_reason,
    seat_key: player.seat_key,
    connect_key: player.connect_key,
    disconnect_key: player.disconnect_key,
    identity_id: player.identity_id,
    leader_player_id: player.leader_player_id,
    match: player.match ?? null,
    is_spectator: player.is_spectator,
  }
}

/** The members are in the order of newPlayer. */
function storedOf(row: Selected): Player {
  return {
    player_id: row.player_id,
    lobby_id: row.lobby_id,
    client: row.client,
    create_ms: row.create_ts.getTime(),
    deadline_ms: row.deadline_ts.getTime(),
    seat_key: row.seat_key,
    identity_id: row.identity_id,
    leader_player_id: row.leader_player_id,
    match: row.match as PlayerMatch | null,
    is_spectator: row.is_spectator,
    connect_ms: row.connect_ts?.getTime() ?? null,
    remove_ms: row.remove_ts?.getTime() ?? null,
    remove_reason: row.remove_reason as RemoveReason | null,
    connect_key: row.connect_key,
    disconnect_key: row.disconnect_key,
  }
}
