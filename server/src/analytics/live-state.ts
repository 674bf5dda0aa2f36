// What is known of the lobbies that live and of the players in them: as much as it takes to tell by how much a change
// moves the counts. It is kept in tables of its own, at the seq up to which the journal is aggregated: what the matchmaker
// projects may be behind that, or ahead. A stopped lobby stays until its process has ended, too.
import type { ClientBase } from 'pg'
import type { Row } from '../journal/read.ts'
import type { Series } from './series.ts'

export type LiveStateLobby = {
  lobby_id: string
  series: Series
  is_custom: boolean
  is_ready: boolean
  is_closed: boolean
  create_ms: number
  stop_ms: number | null
}

export type LiveStatePlayer = {
  player_id: string
  lobby_id: string
  connect_ms: number | null
  /** Before that, in earlier connections; null: the player was never connected. */
  played_ms: number | null
}

export type LiveState = {
  liveLobby: (lobby_id: string) => LiveStateLobby | undefined
  /** A player who has not left, with the lobby. */
  seat: (player_id: string) => { player?: LiveStatePlayer; lobby?: LiveStateLobby }
  playersOf: (lobby_id: string) => LiveStatePlayer[]
  putLobby: (lobby: LiveStateLobby) => void
  putPlayer: (player: LiveStatePlayer) => void
  removePlayer: (player: LiveStatePlayer) => void
  /** What was put or removed, as it is now. */
  touched: () => { lobbies: LiveStateLobby[]; players: LiveStatePlayer[]; removed_player_ids: string[] }
}

export function createLiveState(lobbies: readonly LiveStateLobby[], players: readonly LiveStatePlayer[]): LiveState {
  const lobby_of = new Map(lobbies.map((lobby) => [lobby.lobby_id, lobby]))
  const player_of = new Map<string, LiveStatePlayer>()
  const inside = new Map<string, Set<string>>()
  const touched_lobbies = new Set<string>()
  const touched_players = new Set<string>()

  const enter = (player: LiveStatePlayer): void => {
    player_of.set(player.player_id, player)
    const ids = inside.get(player.lobby_id) ?? new Set()
    inside.set(player.lobby_id, ids.add(player.player_id))
  }
  for (const player of players) enter(player)

  return {
    liveLobby(lobby_id) {
      const lobby = lobby_of.get(lobby_id)
      return lobby?.stop_ms === null ? lobby : undefined
    },
    seat(player_id) {
      const player = player_of.get(player_id)
      const lobby = player === undefined ? undefined : lobby_of.get(player.lobby_id)
      return { ...(player && { player }), ...(lobby && { lobby }) }
    },
    playersOf: (lobby_id) => [...(inside.get(lobby_id) ?? [])].flatMap((id) => player_of.get(id) ?? []),
    putLobby(lobby) {
      lobby_of.set(lobby.lobby_id, lobby)
      touched_lobbies.add(lobby.lobby_id)
    },
    putPlayer(player) {
      enter(player)
      touched_players.add(player.player_id)
    },
    removePlayer({ player_id, lobby_id }) {
      player_of.delete(player_id)
      inside.get(lobby_id)?.delete(player_id)
      touched_players.add(player_id)
    },
    touched: () => ({
      lobbies: [...touched_lobbies].map((id) => lobby_of.get(id)!),
      players: [...touched_players].flatMap((id) => player_of.get(id) ?? []),
      removed_player_ids: [...touched_players].filter((id) => !player_of.has(id)),
    }),
  }
}

type LobbyRow = Omit<LiveStateLobby, 'series' | 'create_ms' | 'stop_ms'> &
  Series & { create_ts: Date; stop_ts: Date | null }
type PlayerRow = { player_id: string; lobby_id: string; connect_ts: Date | null; played_ms: number | null }

/** Reads the lobbies and players that these journal rows refer to from the tables. */
export async function readLiveState(db: ClientBase, rows: readonly Row[]): Promise<LiveState> {
  const { lobby_ids, stopped_ids, player_ids } = idsIn(rows)
  const players = await db.query<PlayerRow>({
    name: 'analytics-players',
    text: `
      select player_id, lobby_id, connect_ts, played_ms from analytics_players
      where player_id = any($1) or lobby_id = any($2)`,
    values: [[...player_ids], [...stopped_ids]],
  })
  for (const { lobby_id } of players.rows) lobby_ids.add(lobby_id)
  const lobbies = await db.query<LobbyRow>({
    name: 'analytics-lobbies',
    text: `
      select lobby_id, namespace_id, region, game_mode, is_custom, is_ready, is_closed, create_ts, stop_ts
      from analytics_lobbies join analytics_series using (series_id) where lobby_id = any($1)`,
    values: [[...lobby_ids]],
  })
  return createLiveState(
    lobbies.rows.map(({ namespace_id, region, game_mode, create_ts, stop_ts, ...lobby }) => ({
      ...lobby,
      series: { namespace_id, region, game_mode },
      create_ms: create_ts.getTime(),
      stop_ms: stop_ts?.getTime() ?? null,
    })),
    players.rows.map(({ connect_ts, ...player }) => ({ ...player, connect_ms: connect_ts?.getTime() ?? null })),
  )
}

/**
 * Returns the ids that the rows refer to. They include lobbies and players that the rows themselves create: the tables
 * do not have these yet.
 */
function idsIn(rows: readonly Row[]) {
  const lobby_ids = new Set<string>()
  const stopped_ids = new Set<string>()
  const player_ids = new Set<string>()
  for (const change of rows.flatMap(({ page }) => page.entries.flatMap(({ changes }) => changes))) {
    switch (change.kind) {
      case 'lobby_ready':
      case 'lobby_closed':
        lobby_ids.add(change.lobby_id)
        break
      case 'lobby_stopped':
        lobby_ids.add(change.lobby_id)
        stopped_ids.add(change.lobby_id)
        break
      case 'player_reserved':
        lobby_ids.add(change.player.lobby_id)
        break
      case 'player_connected':
      case 'player_dropped':
      case 'player_removed':
        player_ids.add(change.player_id)
        break
      default:
    }
  }
  return { lobby_ids, stopped_ids, player_ids }
}

/** Writes what has changed. `idOf`: of its series. */
export async function writeLiveState(
  db: ClientBase,
  live_state: LiveState,
  idOf: (series: Series) => number,
): Promise<void> {
  const { lobbies, players, removed_player_ids } = live_state.touched()
  await db.query({
    name: 'analytics-write-lobbies',
    text: `
      insert into analytics_lobbies (lobby_id, series_id, is_custom, is_ready, is_closed, create_ts, stop_ts)
      select * from unnest($1::uuid[], $2::integer[], $3::boolean[], $4::boolean[], $5::boolean[], $6::timestamptz[],
        $7::timestamptz[])
      on conflict (lobby_id) do update set
        is_ready = excluded.is_ready, is_closed = excluded.is_closed, stop_ts = excluded.stop_ts`,
    values: [
      lobbies.map(({ lobby_id }) => lobby_id),
      lobbies.map(({ series }) => idOf(series)),
      lobbies.map(({ is_custom }) => is_custom),
      lobbies.map(({ is_ready }) => is_ready),
      lobbies.map(({ is_closed }) => is_closed),
      lobbies.map(({ create_ms }) => new Date(create_ms)),
      lobbies.map(({ stop_ms }) => (stop_ms === null ? null : new Date(stop_ms))),
    ],
  })
  await db.query({
    name: 'analytics-write-players',
    text: `
      insert into analytics_players (player_id, lobby_id, connect_ts, played_ms)
      select * from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::bigint[])
      on conflict (player_id) do update set connect_ts = excluded.connect_ts, played_ms = excluded.played_ms`,
    values: [
      players.map(({ player_id }) => player_id),
      players.map(({ lobby_id }) => lobby_id),
      players.map(({ connect_ms }) => (connect_ms === null ? null : new Date(connect_ms))),
      players.map(({ played_ms }) => played_ms),
    ],
  })
  await db.query({
    name: 'analytics-remove-players',
    text: 'delete from analytics_players where player_id = any($1)',
    values: [removed_player_ids],
  })
}
