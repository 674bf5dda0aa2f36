// Writes thirty days of traffic as the aggregator would have left it: events, and the roll-ups that the platform makes of
// them. Visits of players and lives of lobbies are spread evenly over the thirty days before now.
import { addUpSql } from '@musterhost/server/analytics/roll-ups'
import { type Series, seriesIds } from '@musterhost/server/analytics/series'
import { makeDayPartitions } from '@musterhost/server/database/day-partitions'
import { COUNTED_WIDTHS_S } from '@musterhost/server/observe/duration-steps'
import type { BenchPlatform } from '../platform.ts'

type PoolClient = Parameters<typeof seriesIds>[0] & { release: (is_broken: boolean) => void }

export const DAYS = 30
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const REGIONS = 5
const GAME_MODES = 5
/** Reserved, connected, removed; created, ready, stopped, exited. */
const EVENTS_A_VISIT = 3
const EVENTS_A_LOBBY = 4
/** This many of ten events are of players. */
const PLAYER_SHARE = 0.9
/** Lobbies that still exist at the end, and the players of each. */
const LIVE_LOBBIES = 10_000
const LIVE_PLAYERS = 6

const GAUGES =
  'lobby_count_change, lobby_closed_count_change, lobby_unready_count_change, lobby_preemptive_count_change, player_count_change, player_unready_count_change'
const COLUMNS = `ts, kind, series_id, ${GAUGES}, duration_ms, failed, exit_code`

/** Picks one of the series $3, which have the part of the traffic from $4 to $5. The first series have the most traffic. */
const SERIES_SQL = `($3::integer[])[1 + floor(
  (power($4::float8 + random() * ($5::float8 - $4), 2) - power($4, 2)) / (power($5, 2) - power($4, 2)) * cardinality($3)
)::integer]`
/** A time between $1 and $2, evenly distributed. */
const spreadSql = (count: string): string => `$1::timestamptz + ($2::timestamptz - $1) * (number::float8 / ${count})`

/** Facts of a namespace until $2: $6 visits, $7 lobbies that start and stop, $8 lobbies that stay with their players. */
const FACTS_SQL = `
  insert into analytics_events (${COLUMNS})
  select event.ts, event.kind, visit.series_id, 0, 0, 0, 0, event.players, event.unready, event.duration_ms, null, null
  from (
    select ${spreadSql('$6')} as ts, ${SERIES_SQL} as series_id, (random() * 2000)::integer + 10 as play_s
    from generate_series(1, $6::integer) as number
  ) as visit cross join lateral (values
    (visit.ts, 'player_reserved'::analytics_event_kind, 1, 1, null::bigint),
    (visit.ts + interval '3 s', 'player_connected', 0, -1, null),
    (visit.ts + make_interval(secs => 3 + play_s), 'player_removed', -1, 0, play_s * 1000)
  ) as event (ts, kind, players, unready, duration_ms) where event.ts <= $2
  union all
  select event.ts, event.kind, life.series_id, event.lobbies, 0, event.unready, event.unready, 0, 0,
    event.duration_ms, event.failed, event.exit_code
  from (
    select ${spreadSql('$7')} as ts, ${SERIES_SQL} as series_id,
      (random() * 4000)::integer + 10 as life_s, (random() * 5)::integer as exit_code
    from generate_series(1, $7::integer) as number
  ) as life cross join lateral (values
    (life.ts, 'lobby_created'::analytics_event_kind, 1, 1, null::bigint, null::boolean, null::integer),
    (life.ts + interval '2 s', 'lobby_ready', 0, -1, 2000, null, null),
    (life.ts + make_interval(secs => 2 + life_s), 'lobby_stopped', -1, 0, null, exit_code > 2, null),
    (life.ts + make_interval(secs => 2 + life_s), 'lobby_exited', 0, 0, null, null, exit_code)
  ) as event (ts, kind, lobbies, unready, duration_ms, failed, exit_code) where event.ts <= $2
  union all
  select event.ts, event.kind, event.series_id, event.lobbies, 0, event.unready, event.unready, event.players, 0,
    event.duration_ms, null, null
  from (
    select $2::timestamptz - interval '1 h' + interval '100 s' * random() as ts, ($3::integer[])[1 + number % cardinality($3)] as series_id
    from generate_series(1, $8::integer) as number
  ) as live cross join lateral (
    select ts, series_id, 'lobby_created'::analytics_event_kind as kind, 1 as lobbies, 1 as unready, 0 as players,
      null::bigint as duration_ms
    union all select ts, series_id, 'lobby_ready', 0, -1, 0, 0
    union all select ts, series_id, 'player_reserved', 0, 0, 1, null from generate_series(1, ${LIVE_PLAYERS})
  ) as event
  returning *`

/** The lobbies that stay: $1 since when, $2 how many, $3 the series. */
const LIVE_SQL = `
  with live as (
    insert into analytics_lobbies (lobby_id, series_id, is_custom, is_ready, is_closed, create_ts)
    select gen_random_uuid(), ($3::integer[])[1 + number % cardinality($3)], false, true, false, $1
    from generate_series(1, $2) as number
    returning *
  )
  insert into analytics_players (player_id, lobby_id, connect_ts, played_ms)
  select gen_random_uuid(), lobby_id, create_ts, 0 from live cross join generate_series(1, ${LIVE_PLAYERS})`

/** Finds of each minute between $1 and $2, of five durations: a start takes longer than an open lobby. */
const FINDS_SQL = `
  insert into find_durations (namespace_id, width, ts, step, find_count)
  select namespace_id, width, date_bin(make_interval(secs => width), minute, 'epoch'), step, count(*)
  from namespaces, generate_series($1::timestamptz, $2::timestamptz, interval '1 min') as minute,
    unnest(array[${COUNTED_WIDTHS_S.join(', ')}]) as width, unnest(array[6, 7, 8, 20, 22]) as step
  group by 1, 2, 3, 4`

/** Tables are filled before their indexes are created. */
const DROP_SQL = `
  alter table analytics_roll_ups drop constraint analytics_roll_ups_pkey;
  drop index analytics_events_series_id_ts_idx`
const INDEXES_SQL = [
  'alter table analytics_roll_ups add primary key (line_id, width, ts)',
  'create index on analytics_events (series_id, ts)',
]

const VACUUMS_SQL = [
  'vacuum analyze analytics_roll_ups, analytics_exit_codes, analytics_lines',
  'vacuum analyze analytics_events',
  'vacuum analyze find_durations',
]

/** Fills the tables for all namespaces. Returns the number of events. */
export async function makeTraffic({ database }: BenchPlatform, events: number, now_ms: number): Promise<number> {
  const { pool } = database
  const clients = [await pool.connect(), await pool.connect()]
  try {
    for (const client of clients) {
      await client.query(`set statement_timeout = 0; set synchronous_commit = off; set work_mem = '256MB';
        set maintenance_work_mem = '512MB'`)
    }
    const first = clients[0]!
    const first_ms = Math.floor(now_ms / DAY_MS) * DAY_MS - (DAYS - 1) * DAY_MS
    const days = Array.from({ length: DAYS }, (_, day) => first_ms + day * DAY_MS)
    await makeDayPartitions(first, 'analytics_events', days)
    const parts = await makeSeries(first)
    await first.query(LIVE_SQL, [new Date(now_ms - HOUR_MS), LIVE_LOBBIES, parts.flat()])
    await first.query(FINDS_SQL, [new Date(first_ms), new Date(now_ms)])
    await first.query(DROP_SQL)
    const text = addUpSql(FACTS_SQL, { is_new: true })
    const makeParts = async (client: PoolClient, offset: number): Promise<void> => {
      for (let index = offset; index < parts.length; index += clients.length) {
        const [from, to] = [Math.sqrt(index / parts.length), Math.sqrt((index + 1) / parts.length)]
        const visits = Math.ceil((events * PLAYER_SHARE * (to - from)) / EVENTS_A_VISIT)
        const lobbies = Math.ceil((events * (1 - PLAYER_SHARE) * (to - from)) / EVENTS_A_LOBBY)
        const live = LIVE_LOBBIES / parts.length
        await client.query(text, [new Date(first_ms), new Date(now_ms), parts[index], from, to, visits, lobbies, live])
      }
    }
    await Promise.all(clients.map(makeParts))
    await Promise.all(INDEXES_SQL.map((sql, index) => clients[index]!.query(sql)))
    await Promise.all(VACUUMS_SQL.map((sql, index) => clients[index % clients.length]!.query(sql)))
    const { rows } = await first.query<{ count: number }>('select count(*) as count from analytics_events')
    return rows[0]!.count
  } finally {
    for (const client of clients) client.release(true)
  }
}

/** By namespace. */
async function makeSeries(client: PoolClient): Promise<number[][]> {
  const { rows } = await client.query<Series>(
    `select namespace_id, 'region-' || region as region, 'mode-' || game_mode as game_mode
      from namespaces, generate_series(1, ${REGIONS}) as region, generate_series(1, ${GAME_MODES}) as game_mode`,
  )
  const idOf = await seriesIds(client, rows)
  return [...Map.groupBy(rows, ({ namespace_id }) => namespace_id).values()].map((series) => series.map(idOf))
}
