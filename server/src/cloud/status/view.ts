// Writes the image of a status page: what the edge shows. It is read from the tables in the transaction that changes the page, an
// incident or the measured minutes, while the row of the page is locked.
import { gameModesOf, type VersionConfig } from '@musterhost/contract'
import { CompiledQuery } from 'kysely'
import type { Context, Database } from '../../context.ts'
import { DURATION_STEPS, percentile } from '../../observe/duration-steps.ts'
import {
  type ShownIncident,
  STATUS_DAYS,
  type StatusDay,
  type StatusPart,
  type StatusState,
  type StatusView,
} from '../../wire/status-view.ts'
import { dayOf, stateOfRecent } from './minutes.ts'

/** Regions of a page: the first of the platform in which the deployed version runs. */
const REGIONS_MAX = 20
/** Incidents of an image, and their updates: the newest. The texts of all of them have a maximum, too. */
const INCIDENTS_MAX = 50
const UPDATES_MAX = 20
const INCIDENT_CHARACTERS_MAX = 65_536
/** A start of a server that took longer is no measure. */
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

type PageRow = {
  game_id: string
  namespace_id: string
  title: string | null
  text: string | null
  measured_ts: Date | null
  recent: Record<string, string>
  game_name: string
}
type RegionRow = { region: string; player_count: number; start_ms: number | null }
type ShownRegion = { name: string; display_name: string }

export async function rowsOf<T>(trx: Database, text: string, values: readonly unknown[]): Promise<T[]> {
  const { rows } = await trx.executeQuery<T>(CompiledQuery.raw(text, [...values]))
  return rows
}

/** The regions in which the deployed version may start servers. */
export async function regionsOfPage(ctx: Context, trx: Database, namespace_id: string): Promise<ShownRegion[]> {
  const rows = await rowsOf<{ config: VersionConfig }>(
    trx,
    'select config from namespaces join versions using (version_id) where namespace_id = $1',
    [namespace_id],
  )
  const modes = rows[0] === undefined ? [] : [...gameModesOf(rows[0].config).values()]
  return ctx.config.regions
    .filter(({ name }) => modes.some(({ regions }) => regions === null || regions.includes(name)))
    .slice(0, REGIONS_MAX)
}

/** Writes the image of the page, if the game has one. */
export async function writeView(ctx: Context, trx: Database, game_id: string): Promise<void> {
  const rows = await rowsOf<PageRow>(
    trx,
    `select game_id, namespace_id, title, text, measured_ts, recent, display_name as game_name
      from status_pages join games using (game_id) where game_id = $1 for update of status_pages`,
    [game_id],
  )
  const page = rows[0]
  if (page === undefined) return
  const view = await readView(ctx, trx, page)
  await rowsOf(trx, 'update status_pages set view = $2, view_seq = view_seq + 1 where game_id = $1', [
    game_id,
    JSON.stringify(view),
  ])
}

async function readView(ctx: Context, trx: Database, page: PageRow): Promise<StatusView> {
  const { game_id, namespace_id, title, text, measured_ts, recent, game_name } = page
  const now_ms = ctx.now()
  const regions = await regionsOfPage(ctx, trx, namespace_id)
  const days = await readDays(trx, namespace_id, now_ms)
  const of_region = new Map((await readRegions(trx, namespace_id, now_ms)).map((row) => [row.region, row]))
  const daysOf = (region: string) => days.get(region) ?? EMPTY_DAYS
  const find: StatusPart = {
    ...{ region: '', name: 'Finding a game', state: stateOfRecent(recent[''] ?? ''), days: daysOf('') },
    ...{ player_count: null, median_ms: await readFindMedian(trx, namespace_id, now_ms) },
  }
  const parts = regions.map(({ name, display_name }): StatusPart => {
    const row = of_region.get(name)
    return {
      ...{ region: name, name: display_name, state: stateOfRecent(recent[name] ?? ''), days: daysOf(name) },
      ...{ player_count: row?.player_count ?? 0, median_ms: row?.start_ms ?? null },
    }
  })
  const incidents = await readShownIncidents(trx, game_id, now_ms)
  return {
    page_id: game_id,
    title: title ?? `Status of ${game_name}`,
    text: text ?? '',
    state: overallState(find, parts, incidents),
    view_ts: new Date(now_ms).toISOString(),
    measured_ts: measured_ts?.toISOString() ?? null,
    day: dayOf(now_ms),
    player_count: [...of_region.values()].reduce((sum, row) => sum + row.player_count, 0),
    parts: [find, ...parts],
    incidents,
  }
}

/** Finding decides; one region of several that is out degrades the whole. An open incident can only make it worse. */
export function overallState(
  find: Pick<StatusPart, 'state'>,
  regions: readonly Pick<StatusPart, 'state'>[],
  incidents: readonly Pick<ShownIncident, 'impact' | 'resolve_ts'>[],
): StatusState {
  const impacts = incidents.filter(({ resolve_ts }) => resolve_ts === null).map(({ impact }) => impact)
  const is_out = regions.length > 0 && regions.every(({ state }) => state === 'outage')
  if (find.state === 'outage' || is_out || impacts.includes('major')) return 'outage'
  const is_degraded = [find, ...regions].some(({ state }) => state === 'degraded' || state === 'outage')
  if (is_degraded || impacts.includes('minor')) return 'degraded'
  return find.state
}

const EMPTY_DAYS: readonly StatusDay[] = Array.from({ length: STATUS_DAYS }, () => [0, 0] as const)

async function readDays(
  trx: Database,
  namespace_id: string,
  now_ms: number,
): Promise<Map<string, readonly StatusDay[]>> {
  const rows = await rowsOf<{ region: string; day: string; measured_count: number; bad_count: number }>(
    trx,
    'select region, day::text, measured_count, bad_count from status_days where namespace_id = $1 and day > $2',
    [namespace_id, dayOf(now_ms - STATUS_DAYS * DAY_MS)],
  )
  const names = EMPTY_DAYS.map((_, at) => dayOf(now_ms - (STATUS_DAYS - 1 - at) * DAY_MS))
  return new Map(
    [...Map.groupBy(rows, ({ region }) => region)].map(([region, of]) => {
      const by_day = new Map(
        of.map(({ day, measured_count, bad_count }) => [day, [measured_count, bad_count] as const]),
      )
      return [region, names.map((name) => by_day.get(name) ?? ([0, 0] as const))]
    }),
  )
}

async function readRegions(trx: Database, namespace_id: string, now_ms: number): Promise<RegionRow[]> {
  const rows = await rowsOf<RegionRow>(
    trx,
    `select region, coalesce(sum(player_count) filter (where stop_ts is null), 0)::integer as player_count,
        round((percentile_cont(0.5) within group (order by date_part('epoch', ready_ts - create_ts))
          filter (where ready_ts >= $2)) * 1000)::integer as start_ms
      from lobbies where namespace_id = $1 and (stop_ts is null or create_ts >= $2) group by region`,
    [namespace_id, new Date(now_ms - HOUR_MS)],
  )
  return rows
}

async function readFindMedian(trx: Database, namespace_id: string, now_ms: number): Promise<number | null> {
  const rows = await rowsOf<{ step: number; count: number }>(
    trx,
    `select step, sum(find_count)::integer as count from find_durations
      where namespace_id = $1 and width = 60 and ts >= $2 group by step`,
    [namespace_id, new Date(now_ms - HOUR_MS)],
  )
  if (rows.length === 0) return null
  const counts = new Array<number>(DURATION_STEPS).fill(0)
  for (const { step, count } of rows) counts[step] = count
  return Math.round(percentile(counts, 0.5))
}

/** Open ones first. What is left out is the oldest. */
async function readShownIncidents(trx: Database, game_id: string, now_ms: number): Promise<ShownIncident[]> {
  const rows = await rowsOf<ShownIncident>(
    trx,
    `select incident_id, title, state, impact, ${isoSql('create_ts')} as create_ts, ${isoSql('update_ts')} as update_ts,
        ${isoSql('resolve_ts')} as resolve_ts, coalesce((
          select json_agg(one order by one.create_ts desc, one.update_id desc) from (
            select update_id, state, text, ${isoSql('create_ts')} as create_ts from status_updates
            where status_updates.incident_id = status_incidents.incident_id
            order by status_updates.create_ts desc, update_id desc limit ${UPDATES_MAX}
          ) as one
        ), '[]') as updates
      from status_incidents where game_id = $1 and (resolve_ts is null or resolve_ts >= $2)
      order by resolve_ts is not null, status_incidents.create_ts desc, incident_id desc limit ${INCIDENTS_MAX}`,
    [game_id, new Date(now_ms - STATUS_DAYS * DAY_MS)],
  )
  let left = INCIDENT_CHARACTERS_MAX
  return rows.flatMap((incident) => {
    const updates = incident.updates.filter(({ text }) => {
      left -= text.length
      return left >= 0
    })
    return updates.length === 0 ? [] : [{ ...incident, updates }]
  })
}

/** RFC 3339 in UTC, with milliseconds. */
function isoSql(column: string): string {
  return `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
}
