// Traffic of thirty days, written as the folder would have left it: events, and the roll-ups that the platform itself makes
// of them. Visits of players and lives of lobbies come evenly over each day, up to now.

import { rollUpAgain } from '@muster/server/cloud/analytics/roll-ups'
import { makeDayPartitions } from '@muster/server/database/day-partitions'
import type { BenchPlatform } from '../platform.ts'

export const DAYS = 30
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const REGIONS = 5
const GAME_MODES = 5
/** Reserved, connected, removed; created, ready, stopped, exited. */
const EVENTS_A_VISIT = 3
const EVENTS_A_LOBBY = 4
/** Of ten events, as many are of players. */
const PLAYER_SHARE = 0.9
/** They are there at the end, with as many players each. */
const LIVE_LOBBIES = 10_000
const LIVE_PLAYERS = 6

const GAUGES =
  'lobby_count_change, lobby_closed_count_change, lobby_unready_count_change, lobby_preemptive_count_change, player_count_change, player_unready_count_change'
const COLUMNS = `ts, kind, series_id, ${GAUGES}, duration_ms, failed, exit_code`

/** Of a day: $1 its beginning, $2 how many, $3 how many series. Everything is over within the day. */
const VISITS_SQL = (partition: string): string => `
  insert into ${partition} (${COLUMNS})
  select event.ts, event.kind::analytics_event_kind, visit.series_id, 0, 0, 0, 0, event.players, event.unready,
    event.duration_ms, null, null
  from (
    select $1::timestamptz + make_interval(secs => number * 84000.0 / $2) as ts,
      1 + (power(random(), 2) * ($3 - 1))::integer as series_id, (random() * 2000)::integer + 10 as play_s
    from generate_series(0, $2 - 1) as number
  ) as visit cross join lateral (values
    (visit.ts, 'player_reserved', 1, 1, null::bigint),
    (visit.ts + interval '3 s', 'player_connected', 0, -1, null),
    (visit.ts + make_interval(secs => 3 + play_s), 'player_removed', -1, 0, play_s * 1000)
  ) as event (ts, kind, players, unready, duration_ms)`

const LOBBIES_SQL = (partition: string): string => `
  insert into ${partition} (${COLUMNS})
  select event.ts, event.kind::analytics_event_kind, life.series_id, event.lobbies, 0, event.unready, event.unready, 0, 0,
    event.duration_ms, event.failed, event.exit_code
  from (
    select $1::timestamptz + make_interval(secs => number * 80000.0 / $2) as ts,
      1 + (power(random(), 2) * ($3 - 1))::integer as series_id, (random() * 4000)::integer + 10 as life_s,
      (random() * 5)::integer as exit_code
    from generate_series(0, $2 - 1) as number
  ) as life cross join lateral (values
    (life.ts, 'lobby_created', 1, 1, null::bigint, null::boolean, null::integer),
    (life.ts + interval '2 s', 'lobby_ready', 0, -1, 2000, null, null),
    (life.ts + make_interval(secs => 2 + life_s), 'lobby_stopped', -1, 0, null, exit_code > 2, null),
    (life.ts + make_interval(secs => 2 + life_s), 'lobby_exited', 0, 0, null, null, exit_code)
  ) as event (ts, kind, lobbies, unready, duration_ms, failed, exit_code)`

/** Who is there yet: $1 from when on they came, $2 how many lobbies, $3 how many series. */
const LIVE_SQL = `
  with live as (
    insert into analytics_lobbies (lobby_id, series_id, is_custom, is_ready, is_closed, create_ts)
    select gen_random_uuid(), 1 + number % $3, false, true, false, $1::timestamptz + make_interval(secs => number * 0.01)
    from generate_series(0, $2 - 1) as number
    returning *
  ),
  seated as (
    insert into analytics_players (player_id, lobby_id, connect_ts, played_ms)
    select gen_random_uuid(), lobby_id, create_ts, 0 from live cross join generate_series(1, ${LIVE_PLAYERS})
  )
  insert into analytics_events (${COLUMNS})
  select create_ts, event.kind::analytics_event_kind, series_id, event.lobbies, 0, event.unready, event.unready,
    event.players, 0, event.duration_ms, null, null
  from live cross join lateral (
    select 'lobby_created' as kind, 1 as lobbies, 1 as unready, 0 as players, null::bigint as duration_ms
    union all select 'lobby_ready', 0, -1, 0, 1500
    union all select 'player_reserved', 0, 0, 1, null from generate_series(1, ${LIVE_PLAYERS})
  ) as event`

/** As the folder leaves them: the sum of all that happened. */
const SERIES_SQL = `
  update analytics_series set ${GAUGES.split(', ')
    .map((change) => `${change.replace('_change', '')} = sums.${change}`)
    .join(', ')}
  from (select series_id, ${GAUGES.split(', ')
    .map((change) => `sum(${change}) as ${change}`)
    .join(', ')} from analytics_events group by series_id) as sums
  where sums.series_id = analytics_series.series_id`

/** Of all namespaces that are there. Answers how many events there are. */
export async function makeTraffic({ database }: BenchPlatform, events: number, now_ms: number): Promise<number> {
  const { pool } = database
  const client = await pool.connect()
  try {
    await client.query('set statement_timeout = 0')
    await client.query('set synchronous_commit = off')
    const { rowCount } = await client.query(
      `insert into analytics_series (namespace_id, region, game_mode)
        select namespace_id, 'region-' || region, 'mode-' || game_mode
        from namespaces, generate_series(1, ${REGIONS}) as region, generate_series(1, ${GAME_MODES}) as game_mode`,
    )
    const first_ms = Math.floor(now_ms / DAY_MS) * DAY_MS - (DAYS - 1) * DAY_MS
    const days = Array.from({ length: DAYS }, (_, day) => first_ms + day * DAY_MS)
    await makeDayPartitions(client, 'analytics_events', days)
    const visits = Math.ceil((events * PLAYER_SHARE) / EVENTS_A_VISIT / DAYS)
    const lobbies = Math.ceil((events * (1 - PLAYER_SHARE)) / EVENTS_A_LOBBY / DAYS)
    for (const day_ms of days) {
      const partition = `analytics_events_${new Date(day_ms).toISOString().slice(0, 10).replaceAll('-', '')}`
      await client.query(VISITS_SQL(partition), [new Date(day_ms), visits, rowCount])
      await client.query(LOBBIES_SQL(partition), [new Date(day_ms), lobbies, rowCount])
    }
    await client.query('delete from analytics_events where ts > $1', [new Date(now_ms)])
    await client.query(LIVE_SQL, [new Date(now_ms - HOUR_MS), LIVE_LOBBIES, rowCount])
    await client.query(SERIES_SQL)
    // The last day first: what was there before it follows from what was there after it.
    for (const day_ms of days.toReversed()) await rollUpAgain(pool, day_ms)
    await client.query('analyze')
    const { rows } = await client.query<{ count: number }>('select count(*) as count from analytics_events')
    return rows[0]!.count
  } finally {
    client.release(true)
  }
}
