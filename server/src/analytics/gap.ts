// What a gap of the journal has hidden. Rows that were removed before they were aggregated are not counted. But lobbies and
// players that ended in them would be shown for ever. The matchmaker's tables reflect at least the removed part of the
// journal: what has ended there ends here too, before the first row that is left.
import type { ClientBase } from 'pg'
import type { Change, StopReason } from '../journal/changes.ts'
import { shardOf } from '../journal/pages.ts'
import { type Row, readRows } from '../journal/read.ts'

/** Lobbies and players of one call. */
const ENDED_MAX = 1_000

type Ended = {
  namespace_id: string
  lobby_id: string
  player_id: string | null
  end_ts: Date | null
  reason: StopReason | null
}

/**
 * Rows as the journal might have had them: ends of lobbies and players that have ended by the tables, in these shards.
 * `positions`: the seq before the first row that is left.
 */
export async function rowsOfEnded(
  db: ClientBase,
  positions: ReadonlyMap<number, number>,
  now_ms: number,
): Promise<Row[]> {
  const known = await db.query<{ namespace_id: string }>(KNOWN_SQL)
  const namespace_ids = known.rows.flatMap(({ namespace_id }) =>
    positions.has(shardOf(namespace_id)) ? [namespace_id] : [],
  )
  const { rows } = await db.query<Ended>(ENDED_SQL, [namespace_ids, ENDED_MAX])
  const made: Row[] = []
  for (const [shard, of_shard] of Map.groupBy(rows, ({ namespace_id }) => shardOf(namespace_id))) {
    const seq = positions.get(shard)!
    const [next] = await readRows(db, { shard, after: seq, rows_max: 1 })
    const ms = next?.page.ms ?? now_ms
    const entries = of_shard.map((ended) => ({ namespace_id: ended.namespace_id, changes: [endOf(ended, ms)] }))
    made.push({ seq, page: { format: 1, ms, entries } })
  }
  return made
}

function endOf({ lobby_id, player_id, end_ts, reason }: Ended, last_ms: number): Change {
  const ms = Math.min(end_ts?.getTime() ?? last_ms, last_ms)
  // Why it was stopped is forgotten with its row: that is no failure.
  if (player_id === null) return { kind: 'lobby_stopped', lobby_id, ms, reason: reason ?? 'requested' }
  return { kind: 'player_removed', player_id, ms, reason: 'lobby_stopped', disconnect_key: null }
}

const KNOWN_SQL = `
  select distinct namespace_id from analytics_lobbies join analytics_series using (series_id) where stop_ts is null`
const LIVE_SQL = `analytics_lobbies as live join analytics_series as series using (series_id)`
const ENDED_SQL = `
  select series.namespace_id, live.lobby_id, seat.player_id, players.remove_ts as end_ts, null as reason
  from ${LIVE_SQL} join analytics_players as seat using (lobby_id)
  left join players on players.player_id = seat.player_id
  where live.stop_ts is null and series.namespace_id = any($1)
    and (players.player_id is null or players.remove_ts is not null)
  union all
  select series.namespace_id, live.lobby_id, null, lobbies.stop_ts, lobbies.stop_reason
  from ${LIVE_SQL} left join lobbies on lobbies.lobby_id = live.lobby_id
  where live.stop_ts is null and series.namespace_id = any($1)
    and (lobbies.lobby_id is null or lobbies.stop_ts is not null)
  limit $2`
