// Players and lobbies of namespaces at the end of each minute of the last hour, from the roll-ups of minutes. They are a few
// seconds late, so the last point is the count that the caller has read from the tables.
import type { Pool } from 'pg'
import { MINUTE_S } from './buckets.ts'

const MINUTE_MS = MINUTE_S * 1_000

export type MinuteCounts = { player_counts: number[]; lobby_counts: number[] }
type Row = {
  namespace_id: string
  /** Null: no minute of the window has a roll-up. */
  ts: Date | null
  /** Absent roll-up: the counts of the line now. */
  player_count: number
  lobby_count: number
  player_count_change: number
  lobby_count_change: number
}

/** Start of the first of `minutes` minutes; the last one is the minute of `now_ms`. */
export function firstMinuteMs(now_ms: number, minutes: number): number {
  return (Math.floor(now_ms / MINUTE_MS) - minutes + 1) * MINUTE_MS
}

/** By namespace; one without a line has had no lobbies yet, and is missing. `minutes` counts each. */
export async function readLastHour(
  pool: Pool,
  namespace_ids: readonly string[],
  { now_ms, minutes }: { now_ms: number; minutes: number },
): Promise<Map<string, MinuteCounts>> {
  const start_ms = firstMinuteMs(now_ms, minutes)
  const { rows } = await pool.query<Row>(
    `select lines.namespace_id, roll_up.ts, coalesce(roll_up.player_count, lines.player_count) as player_count,
        coalesce(roll_up.lobby_count, lines.lobby_count) as lobby_count,
        coalesce(player_count_change, 0) as player_count_change, coalesce(lobby_count_change, 0) as lobby_count_change
      from analytics_lines as lines left join lateral (
        select ts, player_count, lobby_count, player_count_change, lobby_count_change
        from analytics_roll_ups as roll_up
        where roll_up.line_id = lines.line_id and width = ${MINUTE_S} and ts >= $2 and ts <= $3 offset 0
      ) as roll_up on true
      where lines.namespace_id = any($1) and lines.region is null and lines.game_mode is null
      order by lines.namespace_id, roll_up.ts`,
    [namespace_ids, new Date(start_ms), new Date(now_ms)],
  )
  const by_namespace = Map.groupBy(rows, ({ namespace_id }) => namespace_id)
  return new Map([...by_namespace].map(([namespace_id, of]) => [namespace_id, countsOf(of, start_ms, minutes)]))
}

/** `rows`: of one namespace, by time. A minute without a roll-up has the counts of the minute before it. */
function countsOf(rows: readonly Row[], start_ms: number, minutes: number): MinuteCounts {
  const first = rows[0]!
  let players = first.player_count - first.player_count_change
  let lobbies = first.lobby_count - first.lobby_count_change
  const by_ms = new Map(rows.flatMap((row) => (row.ts === null ? [] : [[row.ts.getTime(), row] as const])))
  const counts: MinuteCounts = { player_counts: [], lobby_counts: [] }
  for (let minute = 0; minute < minutes; minute++) {
    const row = by_ms.get(start_ms + minute * MINUTE_MS)
    players = row?.player_count ?? players
    lobbies = row?.lobby_count ?? lobbies
    counts.player_counts.push(Math.max(0, players))
    counts.lobby_counts.push(Math.max(0, lobbies))
  }
  return counts
}
