// Analytics of a platform that is older than its lines (migration 0027): the sums of its series are returned unchanged.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import type { ClientBase } from 'pg'
import type { Fact } from '../../src/analytics/facts.ts'
import { addFacts } from '../../src/analytics/roll-ups.ts'
import { type Series, seriesIds } from '../../src/analytics/series.ts'
import { connect } from '../../src/database/connect.ts'
import { makeDayPartitions } from '../../src/database/day-partitions.ts'
import { migrate } from '../../src/database/migrate.ts'
import { MIGRATIONS } from '../../src/database/migrations/index.ts'
import { createDatabase } from '../database.ts'
import { openDatabase } from '../matchmaker/writers.ts'

const OLD_WIDTHS = [60, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400]
const FIRST_MS = Date.parse('2026-03-10T22:00:00Z')
const HOURS = 30
const NAMESPACES = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']

/** A lobby every few minutes, in one series after the other, a player in it and out again; every other lobby stays. */
function makeFacts(): Fact[] {
  const series = NAMESPACES.flatMap((namespace_id) =>
    ['eu', 'us'].flatMap((region) => ['duel', 'royale'].map((game_mode) => ({ namespace_id, region, game_mode }))),
  )
  const facts = Array.from({ length: HOURS * 12 }, (_, index): Fact[] => {
    const ms = FIRST_MS + index * 300_000 + (index % 7) * 11_000
    const base = { series: series[(index * 3) % series.length]!, duration_ms: null, failed: null, exit_code: null }
    const lobby = { lobby_count: 1, lobby_unready_count: 1 }
    const there: Fact[] = [
      { ...base, kind: 'lobby_created', ms, difference: lobby },
      { ...base, kind: 'lobby_ready', ms: ms + 2_000, difference: { lobby_unready_count: -1 }, duration_ms: 2_000 },
      { ...base, kind: 'player_reserved', ms: ms + 2_000, difference: { player_count: 1 } },
      { ...base, kind: 'player_removed', ms: ms + 90_000, difference: { player_count: -1 }, duration_ms: index * 100 },
    ]
    if (index % 2 === 0) return there
    const stop_ms = ms + 3_600_000
    const failed = index % 3 === 0
    return [
      ...there,
      { ...base, kind: 'lobby_stopped', ms: stop_ms, difference: { lobby_count: -1 }, failed },
      { ...base, kind: 'lobby_exited', ms: stop_ms, difference: {}, exit_code: index % 4 },
    ]
  })
  return facts.flat().toSorted((a, b) => a.ms - b.ms)
}

async function addAll(db: ClientBase, facts: readonly Fact[]): Promise<void> {
  const idOf = await seriesIds(
    db,
    facts.map(({ series }) => series),
  )
  await makeDayPartitions(
    db,
    'analytics_events',
    facts.map(({ ms }) => ms),
  )
  for (let start = 0; start < facts.length; start += 50) await addFacts(db, facts.slice(start, start + 50), idOf)
}

type Numbers = Record<string, number>

/** The rows of the old tables, added up plainly. */
function oldRows(facts: readonly Fact[]): { now: Map<Series, Numbers>; roll_ups: object[]; exits: object[] } {
  const now = new Map<Series, Numbers>()
  const roll_ups = new Map<string, object & Numbers>()
  const exits = new Map<string, object & { lobby_count: number }>()
  for (const { kind, series, ms, difference, duration_ms, failed, exit_code } of facts) {
    const gauges = now.get(series) ?? {}
    now.set(series, gauges)
    for (const [gauge, change] of Object.entries(difference)) gauges[gauge] = (gauges[gauge] ?? 0) + change
    for (const width of OLD_WIDTHS) {
      const ts = Math.floor(ms / width / 1_000) * width * 1_000
      const key = `${JSON.stringify(series)} ${width} ${ts}`
      if (kind === 'lobby_exited') {
        const row = exits.get(`${key} ${exit_code}`) ?? { series, width, ts, exit_code, lobby_count: 0 }
        row.lobby_count++
        exits.set(`${key} ${exit_code}`, row)
        continue
      }
      const row = (roll_ups.get(key) ?? { series, width, ts }) as Numbers
      roll_ups.set(key, row)
      const added: Numbers = {
        ...Object.fromEntries(Object.entries(difference).map(([gauge, change]) => [`${gauge}_change`, change])),
        ...(kind === 'lobby_created' && { new_lobby_count: 1 }),
        ...(kind === 'lobby_ready' && { ready_lobby_count: 1, ready_ms: duration_ms! }),
        ...(kind === 'player_reserved' && { new_player_count: 1 }),
        ...(kind === 'player_removed' && { played_count: 1, played_ms: duration_ms! }),
        ...(kind === 'lobby_stopped' && { stopped_lobby_count: 1, failed_lobby_count: failed ? 1 : 0 }),
      }
      for (const [name, value] of Object.entries(added)) row[name] = (row[name] ?? 0) + value
      Object.assign(row, gauges)
    }
  }
  return { now, roll_ups: [...roll_ups.values()], exits: [...exits.values()] }
}

/** Those of the old schema: zero where nothing is said. */
async function insert(db: ClientBase, table: string, rows: readonly object[]): Promise<void> {
  const { rows: columns } = await db.query<{ name: string }>(
    `select column_name as name from information_schema.columns where table_name = $1 and column_name <> 'series_id'`,
    [table],
  )
  const plain = rows.map((row) => {
    const { series, ts, ...numbers } = row as { series: Series; ts?: number } & Numbers
    const zeros = Object.fromEntries(columns.map(({ name }) => [name, 0]))
    return { ...zeros, ...numbers, ...series, ...(ts !== undefined && { ts: new Date(ts) }) }
  })
  const names = columns.map(({ name }) => name)
  const told = [...names, 'namespace_id', 'region', 'game_mode']
  const with_id = table === 'analytics_series' ? '' : 'join analytics_series using (namespace_id, region, game_mode)'
  const from = names.map((name) => (with_id === '' ? name : `told.${name}`)).join(', ')
  const types = told.map((name) => {
    const type = { ts: 'timestamptz', namespace_id: 'uuid', region: 'text', game_mode: 'text' }[name] ?? 'bigint'
    return `${name} ${type}`
  })
  await db.query(
    `insert into ${table} (${with_id === '' ? '' : 'series_id, '}${names.join(', ')})
      select ${with_id === '' ? '' : 'series_id, '}${from}
      from json_to_recordset($1) as told (${[...new Set(types)].join(', ')}) ${with_id}`,
    [JSON.stringify(plain)],
  )
}

async function tablesOf(db: ClientBase): Promise<Record<string, unknown>> {
  const line = `(select array[namespace_id::text, region, game_mode] from analytics_lines where line_id = told.line_id)`
  const read = async (table: string, removed: string): Promise<unknown[]> => {
    const { rows } = await db.query(
      `select ${line} as line, to_jsonb(told) - 'line_id' - '${removed}' as row from ${table} as told order by 1, 2`,
    )
    return rows
  }
  const { rows: series } = await db.query(
    `select region, game_mode, (select array_agg(array[line.region, line.game_mode] order by place)
      from unnest(line_ids) with ordinality as lines (line_id, place) join analytics_lines as line using (line_id)) as of
      from analytics_series order by namespace_id, region, game_mode`,
  )
  return {
    series,
    lines: await read('analytics_lines', 'namespace_id'),
    roll_ups: await read('analytics_roll_ups', ''),
    exits: await read('analytics_exit_codes', ''),
  }
}

test('the sums of an older platform are returned as if its lines had always existed', async (t) => {
  const facts = makeFacts()
  const half = facts.findIndex(({ ms }) => ms >= FIRST_MS + (HOURS / 2) * 3_600_000)
  const expected = await openDatabase(t, await createDatabase(t))
  await addAll(expected, facts)

  const url = await createDatabase(t)
  const old = await openDatabase(t, url)
  await old.query('drop schema public cascade; create schema public')
  const { db, close } = connect({ url, application_name: 'migration' })
  t.after(close)
  const index = MIGRATIONS.findIndex(({ name }) => name === '0027-analytics-lines')
  await migrate(db, undefined, MIGRATIONS.slice(0, index))
  const { now, roll_ups, exits } = oldRows(facts.slice(0, half))
  await insert(
    old,
    'analytics_series',
    [...now].map(([series, gauges]) => ({ series, ...gauges })),
  )
  await insert(old, 'analytics_roll_ups', roll_ups)
  await insert(old, 'analytics_exit_codes', exits)
  assert.ok(roll_ups.length > 500 && exits.length > 100)
  await migrate(db)
  await sql`select from analytics_lines`.execute(db)
  // And what comes then is added to it.
  await addAll(old, facts.slice(half))

  const [told, truth] = [await tablesOf(old), await tablesOf(expected)]
  for (const [name, rows] of Object.entries(truth)) assert.deepEqual(told[name], rows, name)
})
