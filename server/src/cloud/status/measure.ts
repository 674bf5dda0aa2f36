// Measures the minutes of status pages: finds and starts of servers from the tables, and the probes of this process. The row of
// a page is locked meanwhile, so each minute is counted once, whichever process of the api measures it.
import { type ErrorCode, findLobby } from '@musterhost/contract'
import type { Context, Database } from '../../context.ts'
import { STATUS_DAYS } from '../../wire/status-view.ts'
import { FAILED_SQL } from '../lobbies/rows.ts'
import { addRecent, dayOf, type EventCount, MINUTE_MS, type Minute, minuteOf } from './minutes.ts'
import type { Probes } from './probes.ts'
import { regionsOfPage, rowsOf, writeView } from './view.ts'

/** The matchmaker writes its counts within a few seconds. */
const SETTLE_MS = 15_000
/** Minutes that are measured afterwards, such as those of an outage. Earlier ones stay without data. */
const MINUTES_MAX = 1_440
/** A lobby that was begun so long before may become ready in the minute. */
const START_MS_MAX = 60 * 60_000
const DAY_MS = 86_400_000

/**
 * Refusals of finds that the platform or the game causes. A client can provoke most others, and could so make a page say that
 * there is an outage.
 */
const FAILURES: readonly ErrorCode[] = [
  'MATCHMAKER_LOBBY_STOPPED',
  'MATCHMAKER_LOBBY_NOT_STARTED',
  'MATCHMAKER_VERIFICATION_REQUEST_FAILED',
  'MATCHMAKER_REGION_FULL',
  'MATCHMAKER_NO_PORTS',
  'MATCHMAKER_TOO_MANY_LOBBIES',
  'CAPTCHA_PROVIDER_FAILED',
  'API_NOT_AVAILABLE',
  'INTERNAL_ERROR',
]

type Page = { game_id: string; namespace_id: string; measured_ts: Date | null; recent: Record<string, string> }
type Counts = EventCount & { region: string; ts: Date }
type Window = { namespace_id: string; from_ms: number; end_ms: number }

/** Measures what is due on all enabled pages. Returns whether an image has changed. */
export async function measurePages(ctx: Context, probes: Probes): Promise<boolean> {
  const end_ms = Math.floor((ctx.now() - SETTLE_MS) / MINUTE_MS) * MINUTE_MS
  const { rows } = await ctx.pool.query<{ game_id: string }>({
    text: 'select game_id from status_pages where is_enabled and (measured_ts is null or measured_ts < $1)',
    values: [new Date(end_ms)],
  })
  for (const { game_id } of rows) {
    await ctx.db
      .transaction()
      .execute((trx) => measurePage(ctx, trx, game_id, probes, end_ms))
      .catch((error: unknown) =>
        ctx.log.warn({ err: error, game_id }, 'a status page cannot be measured; trying again'),
      )
  }
  probes.forget(end_ms)
  return rows.length > 0
}

async function measurePage(
  ctx: Context,
  trx: Database,
  game_id: string,
  probes: Probes,
  end_ms: number,
): Promise<void> {
  const rows = await rowsOf<Page>(
    trx,
    `select game_id, namespace_id, measured_ts, recent from status_pages
      where game_id = $1 and is_enabled and (measured_ts is null or measured_ts < $2) for update skip locked`,
    [game_id, new Date(end_ms)],
  )
  const page = rows[0]
  if (page === undefined) return
  const { namespace_id, measured_ts } = page
  const from_ms = Math.max(measured_ts?.getTime() ?? end_ms - MINUTE_MS, end_ms - MINUTES_MAX * MINUTE_MS)
  const window = { namespace_id, from_ms, end_ms }
  const counts = Map.groupBy([...(await readFinds(trx, window)), ...(await readStarts(trx, window))], keyOf)
  const regions = await regionsOfPage(ctx, trx, namespace_id)
  const recent: Record<string, string> = {}
  for (const region of ['', ...regions.map(({ name }) => name)]) {
    const minutes: [minute_ms: number, minute: Minute][] = []
    for (let ms = from_ms; ms < end_ms; ms += MINUTE_MS) {
      const events = counts.get(`${region} ${ms}`)?.[0]
      minutes.push([ms, minuteOf(probes.of(ms, { namespace_id, region }), events)])
    }
    recent[region] = addRecent(
      page.recent[region] ?? '',
      minutes.map(([, minute]) => minute),
    )
    await addDays(trx, { namespace_id, region }, minutes)
  }
  await rowsOf(trx, 'update status_pages set measured_ts = $2, recent = $3 where game_id = $1', [
    game_id,
    new Date(end_ms),
    JSON.stringify(recent),
  ])
  await rowsOf(trx, 'delete from status_days where namespace_id = $1 and day < $2', [
    namespace_id,
    dayOf(end_ms - STATUS_DAYS * DAY_MS),
  ])
  await writeView(ctx, trx, game_id)
}

const keyOf = ({ region, ts }: Counts): string => `${region} ${ts.getTime()}`

async function addDays(
  trx: Database,
  { namespace_id, region }: { namespace_id: string; region: string },
  minutes: readonly [number, Minute][],
): Promise<void> {
  const measured = minutes.filter(([, minute]) => minute !== '-')
  for (const [day, of_day] of Map.groupBy(measured, ([ms]) => dayOf(ms))) {
    await rowsOf(
      trx,
      `insert into status_days (namespace_id, region, day, measured_count, bad_count) values ($1, $2, $3, $4, $5)
        on conflict (namespace_id, region, day) do update set
          measured_count = status_days.measured_count + excluded.measured_count,
          bad_count = status_days.bad_count + excluded.bad_count`,
      [namespace_id, region, day, of_day.length, of_day.filter(([, minute]) => minute === 'b').length],
    )
  }
}

async function readFinds(trx: Database, { namespace_id, from_ms, end_ms }: Window): Promise<Counts[]> {
  const rows = await rowsOf<Counts>(
    trx,
    `select '' as region, ts, sum(ended)::integer as ended_count, sum(failed)::integer as failed_count from (
        select ts, sum(find_count) as ended, 0 as failed from find_durations
        where namespace_id = $1 and width = 60 and ts >= $2 and ts < $3 group by ts
        union all
        select date_bin('1 minute', create_ts, 'epoch'), count(*), count(*) from explanations
        where namespace_id = $1 and create_ts >= $2 and create_ts < $3 and operation = '${findLobby.id}' and code = any($4)
        group by 1
      ) as finds group by ts`,
    [namespace_id, new Date(from_ms), new Date(end_ms), FAILURES],
  )
  return rows
}

/** Servers that became ready in a minute, and those that failed before. */
async function readStarts(trx: Database, { namespace_id, from_ms, end_ms }: Window): Promise<Counts[]> {
  const rows = await rowsOf<Counts>(
    trx,
    `select region, date_bin('1 minute', coalesce(ready_ts, end_ts), 'epoch') as ts,
        count(*)::integer as ended_count, (count(*) filter (where ready_ts is null))::integer as failed_count
      from (
        select l.region, l.ready_ts, coalesce(r.exit_ts, l.stop_ts) as end_ts, coalesce(${FAILED_SQL}, false) as has_failed
        from lobbies l left join lobby_runs r using (lobby_id)
        where l.namespace_id = $1 and l.create_ts >= $4 and l.create_ts < $3
      ) as starts
      where coalesce(ready_ts, end_ts) >= $2 and coalesce(ready_ts, end_ts) < $3 and (ready_ts is not null or has_failed)
      group by 1, 2`,
    [namespace_id, new Date(from_ms), new Date(end_ms), new Date(from_ms - START_MS_MAX)],
  )
  return rows
}
