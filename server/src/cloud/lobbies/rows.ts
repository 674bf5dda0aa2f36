// A lobby's row with what became of its run: each is there for as long as the settings say.

export type LobbyRow = {
  lobby_id: string
  namespace_id: string
  game_mode: string
  region: string
  create_ts: Date
  ready_ts: Date | null
  player_count: number
  is_closed: boolean
  is_stalled: boolean
  is_outdated: boolean
  stop_ts: Date | null
  stop_reason: string | null
  start_ts: Date | null
  exit_ts: Date | null
  exit_code: number | null
  exit_reason: string | null
}

/** Columns of `lobbies l` and, where there is one, `lobby_runs r`. */
export const LOBBY_COLUMNS = `l.lobby_id, l.namespace_id, l.game_mode, l.region, l.create_ts, l.ready_ts, l.stop_ts, l.stop_reason,
  l.player_count, l.is_closed, l.is_stalled,
  l.version_id is distinct from (select version_id from namespaces n where n.namespace_id = l.namespace_id) and not exists (
    select from rollouts o where o.namespace_id = l.namespace_id and o.version_id = l.version_id and o.end_ts is null
  ) as is_outdated,
  r.start_ts, r.exit_ts, r.exit_code, r.exit_reason`

/**
 * Whether the server of the lobby ended on its own, otherwise than with exit code 0 after it was ready. A server that ends before it is
 * ready has failed its players, with any exit code: such starts lead to the pauses of a version.
 */
export function hasFailed({ stop_reason, exit_reason, exit_code, ready_ts }: LobbyRow): boolean {
  if (stop_reason === 'never_ready') return true
  if (exit_reason === null || exit_reason === 'stopped') return false
  return exit_reason !== 'exit' || exit_code !== 0 || ready_ts === null
}

/** How its server ended, as the explanation of a request says. Null: it has not, or its record is no longer kept. */
export function exitReasonOf({ stop_reason, exit_reason }: LobbyRow): string | null {
  return stop_reason === 'never_ready' ? stop_reason : exit_reason
}

/** The same as SQL, of `lobbies l` and `lobby_runs r`. */
export const FAILED_SQL = `(l.stop_reason = 'never_ready' or (r.exit_reason <> 'stopped'
  and (r.exit_reason <> 'exit' or r.exit_code is distinct from 0 or l.ready_ts is null)))`
