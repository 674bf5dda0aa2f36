import type { Selectable } from 'kysely'
import type { Schema } from '../../../database/schema.ts'
import type { StopReason } from '../../../journal/changes.ts'
import type { Lobby, StoredLobby } from '../../book/lobby.ts'
import { MEMORY_MS } from '../../book/state.ts'
import type { ProjectedTable } from './descriptor.ts'

type Selected = Selectable<Schema['lobbies']>
type LobbyRow = ReturnType<typeof rowOf>

export const lobbies: ProjectedTable<LobbyRow, Lobby, Selected, StoredLobby> = {
  name: 'lobbies',
  key: ['lobby_id'],
  columns: {
    lobby_id: ['uuid', 'fixed'],
    namespace_id: ['uuid', 'fixed'],
    version_id: ['uuid', 'fixed'],
    game_mode: ['text', 'fixed'],
    region: ['text', 'fixed'],
    node_id: ['text', 'updated'],
    publicity: ['text', 'fixed'],
    is_custom: ['boolean', 'fixed'],
    is_closed: ['boolean', 'updated'],
    is_stalled: ['boolean', 'updated'],
    max_players_normal: ['integer', 'fixed'],
    max_players_direct: ['integer', 'fixed'],
    max_players_party: ['integer', 'fixed'],
    max_spectators: ['integer', 'fixed'],
    tags: ['jsonb', 'updated'],
    lobby_config: ['text', 'fixed'],
    state: ['text', 'updated'],
    player_count: ['integer', 'updated'],
    player_deadline_ms: ['integer', 'fixed'],
    idle_grace_ms: ['integer', 'fixed'],
    seat_hold_ms: ['integer', 'fixed'],
    code: ['text', 'fixed'],
    create_ts: ['time', 'fixed'],
    ready_deadline_ts: ['time', 'updated'],
    ready_ts: ['time', 'updated'],
    idle_ts: ['time', 'updated'],
    keep_until_ts: ['time', 'updated'],
    stop_ts: ['time', 'updated'],
    stop_reason: ['text', 'updated'],
    has_reported_players: ['boolean', 'updated'],
    seats_expired_while_connected: ['integer', 'updated'],
    connections_at_stop: ['integer', 'updated'],
    tier: ['text', 'fixed'],
    cpu_cores: ['double precision', 'fixed'],
    memory_mb: ['integer', 'fixed'],
    edge_ports: ['jsonb', 'fixed'],
    creator_identity_id: ['uuid', 'fixed'],
    ray_id: ['uuid', 'fixed'],
  },
  addAffected(book, change, ids) {
    switch (change.kind) {
      case 'lobby_created':
        ids.add(change.lobby.lobby_id)
        break
      case 'lobby_placed':
      case 'lobby_ready':
      case 'lobby_closed':
      case 'lobby_stalled':
      case 'lobby_state':
      case 'lobby_changed':
      case 'lobby_stopped':
        ids.add(change.lobby_id)
        break
      case 'player_reserved':
        ids.add(change.player.lobby_id)
        break
      case 'player_connected': {
        const lobby = book.lobbies.get(book.players.get(change.player_id)?.lobby_id ?? '')
        // Only the first connect changes the lobby's row.
        if (lobby?.has_reported_players === false) ids.add(lobby.lobby_id)
        break
      }
      case 'player_removed': {
        const player = book.players.get(change.player_id)
        if (player !== undefined) ids.add(player.lobby_id)
        break
      }
    }
  },
  addUnended(book, ids) {
    for (const { lobby_id, stop_ms } of book.lobbies.values()) if (stop_ms === null) ids.add(lobby_id)
  },
  valueOf: (book, lobby_id) => book.lobbies.get(lobby_id),
  rowOf,
  loaded: {
    where: 'stop_ts is null or stop_ts > $2',
    since_ms: (now_ms) => now_ms - MEMORY_MS,
    order_by: 'create_ts, lobby_id',
  },
  storedOf,
}

function rowOf(namespace_id: string, lobby: Lobby) {
  return {
    lobby_id: lobby.lobby_id,
    namespace_id,
    version_id: lobby.version_id,
    game_mode: lobby.game_mode,
    region: lobby.region,
    node_id: lobby.node_id,
    publicity: lobby.publicity,
    is_custom: lobby.is_custom,
    is_closed: lobby.is_closed,
    is_stalled: lobby.is_stalled,
    max_players_normal: lobby.max_players_normal,
    max_players_direct: lobby.max_players_direct,
    max_players_party: lobby.max_players_party,
    max_spectators: lobby.max_spectators,
    tags: lobby.tags,
    lobby_config: lobby.lobby_config,
    state: lobby.state,
    player_count: lobby.players.size,
    player_deadline_ms: lobby.player_deadline_ms,
    idle_grace_ms: lobby.idle_grace_ms,
    seat_hold_ms: lobby.seat_hold_ms ?? null,
    code: lobby.code ?? null,
    create_ts: lobby.create_ms,
    ready_deadline_ts: lobby.ready_deadline_ms,
    ready_ts: lobby.ready_ms,
    idle_ts: lobby.idle_ms,
    keep_until_ts: lobby.keep_until_ms,
    stop_ts: lobby.stop_ms,
    stop_reason: lobby.stop_reason,
    has_reported_players: lobby.has_reported_players,
    seats_expired_while_connected: lobby.seats_expired_while_connected,
    connections_at_stop: lobby.connections_at_stop,
    tier: lobby.tier,
    cpu_cores: lobby.cpu_cores,
    memory_mb: lobby.memory_mb,
    edge_ports: lobby.edge_ports,
    creator_identity_id: lobby.creator_identity_id,
    ray_id: lobby.ray_id,
  }
}

function storedOf(row: Selected): StoredLobby {
  return {
    lobby_id: row.lobby_id,
    version_id: row.version_id,
    game_mode: row.game_mode,
    region: row.region,
    node_id: row.node_id,
    tier: row.tier,
    cpu_cores: row.cpu_cores,
    memory_mb: row.memory_mb,
    edge_ports: row.edge_ports,
    publicity: row.publicity,
    is_custom: row.is_custom,
    creator_identity_id: row.creator_identity_id,
    ray_id: row.ray_id,
    is_closed: row.is_closed,
    is_stalled: row.is_stalled,
    max_players_normal: row.max_players_normal,
    max_players_direct: row.max_players_direct,
    max_players_party: row.max_players_party,
    max_spectators: row.max_spectators,
    tags: row.tags,
    lobby_config: row.lobby_config,
    state: row.state,
    player_deadline_ms: row.player_deadline_ms,
    idle_grace_ms: row.idle_grace_ms,
    seat_hold_ms: row.seat_hold_ms,
    code: row.code,
    create_ms: row.create_ts.getTime(),
    ready_deadline_ms: row.ready_deadline_ts.getTime(),
    ready_ms: row.ready_ts?.getTime() ?? null,
    idle_ms: row.idle_ts?.getTime() ?? null,
    keep_until_ms: row.keep_until_ts?.getTime() ?? null,
    stop_ms: row.stop_ts?.getTime() ?? null,
    stop_reason: row.stop_reason as StopReason | null,
    has_reported_players: row.has_reported_players,
    seats_expired_while_connected: row.seats_expired_while_connected,
    connections_at_stop: row.connections_at_stop,
  }
}
