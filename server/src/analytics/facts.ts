// What has happened, as facts that can be added up: each says by how much it changes its series (the lobbies and players of a
// namespace in one region and one game mode). A fact is derived from a change of the journal and from what is known of its
// lobby and player; it names neither. Pure: the aggregation and a query derive the same facts.
import type { RunEnd } from '../database/schema.ts'
import type { Change } from '../journal/changes.ts'
import type { Entry } from '../journal/pages.ts'
import type { LiveState } from './live-state.ts'
import type { Series } from './series.ts'

/** What is there at a moment. The three of the lobbies and the one of the players are contained in their whole. */
export const GAUGES = [
  'lobby_count',
  'lobby_closed_count',
  'lobby_unready_count',
  'lobby_preemptive_count',
  'player_count',
  'player_unready_count',
] as const
export type Gauges = Record<(typeof GAUGES)[number], number>

export type FactKind =
  | 'lobby_created'
  | 'lobby_ready'
  | 'lobby_closed'
  | 'lobby_stopped'
  /** Its process has ended. As of the moment at which the lobby was stopped, so that both are in one bucket. */
  | 'lobby_exited'
  | 'player_reserved'
  | 'player_connected'
  | 'player_dropped'
  | 'player_removed'

/** `difference`: what it adds to the gauges, and takes from them; absent: nothing. */
export type Fact = {
  kind: FactKind
  series: Series
  ms: number
  difference: Partial<Gauges>
  /** From creation to ready; or how long a player who leaves was connected: null for one who never was. */
  duration_ms: number | null
  /** Whether the lobby has failed; null for all facts but the stop of a lobby. */
  failed: boolean | null
  /** Exit code of the process; null for all facts but an exit. */
  exit_code: number | null
}

export type RunEnds = ReadonlyMap<string, RunEnd>

/**
 * The facts of what a page says of a namespace; `live_state` moves along. What is unknown began before anybody counted, and
 * is not counted at its end either. `page_ms`: the time of changes that do not say theirs.
 */
export function factsOf(
  live_state: LiveState,
  { namespace_id, changes }: Entry,
  page_ms: number,
  ends: RunEnds,
): Fact[] {
  return changes.flatMap((change) => factsOfChange(live_state, namespace_id, change, page_ms, ends))
}

function factsOfChange(
  live_state: LiveState,
  namespace_id: string,
  change: Change,
  page_ms: number,
  ends: RunEnds,
): Fact[] {
  switch (change.kind) {
    case 'lobby_created': {
      const { lobby_id, region, game_mode, is_custom, create_ms } = change.lobby
      const series = { namespace_id, region, game_mode }
      live_state.putLobby({ lobby_id, series, is_custom, is_ready: false, is_closed: false, create_ms, stop_ms: null })
      const difference = { lobby_count: 1, lobby_unready_count: 1, lobby_preemptive_count: is_custom ? 0 : 1 }
      return [fact('lobby_created', series, create_ms, difference)]
    }
    case 'lobby_ready': {
      const lobby = live_state.liveLobby(change.lobby_id)
      if (lobby === undefined || lobby.is_ready) return []
      live_state.putLobby({ ...lobby, is_ready: true })
      const difference = { lobby_unready_count: -1, lobby_preemptive_count: lobby.is_custom ? 0 : -1 }
      const duration_ms = change.ms - lobby.create_ms
      return [{ ...fact('lobby_ready', lobby.series, change.ms, difference), duration_ms }]
    }
    case 'lobby_closed': {
      const lobby = live_state.liveLobby(change.lobby_id)
      if (lobby === undefined || lobby.is_closed === change.is_closed) return []
      live_state.putLobby({ ...lobby, is_closed: change.is_closed })
      return [fact('lobby_closed', lobby.series, page_ms, { lobby_closed_count: change.is_closed ? 1 : -1 })]
    }
    case 'lobby_stopped': {
      const lobby = live_state.liveLobby(change.lobby_id)
      if (lobby === undefined) return []
      const { lobby_id, series, is_ready, is_closed, is_custom } = lobby
      const players = live_state.playersOf(lobby_id)
      const removals = players.flatMap(({ player_id }) => removal(live_state, player_id, change.ms))
      live_state.putLobby({ ...lobby, stop_ms: change.ms })
      const difference = {
        lobby_count: -1,
        lobby_closed_count: is_closed ? -1 : 0,
        lobby_unready_count: is_ready ? 0 : -1,
        lobby_preemptive_count: is_ready || is_custom ? 0 : -1,
      }
      const failed =
        change.reason === 'never_ready' || (change.reason === 'exited' && hasFailed(ends.get(lobby_id), is_ready))
      return [...removals, { ...fact('lobby_stopped', series, change.ms, difference), failed }]
    }
    case 'player_reserved': {
      const { player_id, lobby_id, create_ms, is_spectator } = change.player
      if (is_spectator) return []
      const lobby = live_state.liveLobby(lobby_id)
      if (lobby === undefined) return []
      live_state.putPlayer({ player_id, lobby_id, connect_ms: null, played_ms: null })
      return [fact('player_reserved', lobby.series, create_ms, { player_count: 1, player_unready_count: 1 })]
    }
    case 'player_connected': {
      const { player, lobby } = live_state.seat(change.player_id)
      if (player === undefined || lobby === undefined || player.connect_ms !== null) return []
      live_state.putPlayer({ ...player, connect_ms: change.ms, played_ms: player.played_ms ?? 0 })
      return [fact('player_connected', lobby.series, change.ms, { player_unready_count: -1 })]
    }
    case 'player_dropped': {
      const { player, lobby } = live_state.seat(change.player_id)
      if (player === undefined || lobby === undefined || player.connect_ms === null) return []
      const played_ms = (player.played_ms ?? 0) + page_ms - player.connect_ms
      live_state.putPlayer({ ...player, connect_ms: null, played_ms })
      return [fact('player_dropped', lobby.series, page_ms, { player_unready_count: 1 })]
    }
    case 'player_removed':
      return removal(live_state, change.player_id, change.ms)
    default:
      return []
  }
}

function removal(live_state: LiveState, player_id: string, ms: number): Fact[] {
  const { player, lobby } = live_state.seat(player_id)
  if (player === undefined || lobby === undefined) return []
  live_state.removePlayer(player)
  const { connect_ms, played_ms } = player
  const difference = { player_count: -1, player_unready_count: connect_ms === null ? -1 : 0 }
  const duration_ms = connect_ms === null ? played_ms : (played_ms ?? 0) + ms - connect_ms
  return [{ ...fact('player_removed', lobby.series, ms, difference), duration_ms }]
}

/** A server that exits on its own fails with another code than 0, or before it is ready. One that the platform ends does not. */
function hasFailed(end: RunEnd | undefined, is_ready: boolean): boolean {
  if (end?.exit_reason === 'stopped') return false
  return !(is_ready && end?.exit_reason === 'exit' && end.exit_code === 0)
}

export function exitOf(series: Series, ms: number, exit_code: number): Fact {
  return { ...fact('lobby_exited', series, ms, {}), exit_code }
}

function fact(kind: FactKind, series: Series, ms: number, difference: Partial<Gauges>): Fact {
  return { kind, series, ms, difference, duration_ms: null, failed: null, exit_code: null }
}
