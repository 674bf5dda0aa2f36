// Measures analytics over thirty days of traffic: the time of a response for each variant and window, over all games at
// once. The goal is in milliseconds, so each line also shows the load of the machine. Two lower bounds are measured too: a
// call that reads one game with the same credential, and a bare select of the rows of a window.
import { loadavg } from 'node:os'
import {
  ANALYTICS_VARIANTS,
  type AnalyticsVariant,
  createGame,
  createGroup,
  getAnalytics,
  getGameById,
  type ResponseOf,
} from '@musterhost/contract'
import { bucketsOf, type Window } from '@musterhost/server/analytics/buckets'
import { type BenchPlatform, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { DAYS, makeTraffic } from './traffic.ts'

const EVENTS = 10_000_000
const GAMES = 10
const CALLS = 20
const CALLS_OF_ALL = 100
const P99_MS_MAX = 300
const MINUTE_MS = 60_000
const DAY_MS = 1_440 * MINUTE_MS

const WINDOWS: readonly (readonly [string, number])[] = [
  ['10 min', 10 * MINUTE_MS],
  ['50 min', 50 * MINUTE_MS],
  ['1 h', 60 * MINUTE_MS],
  ['6 h', 360 * MINUTE_MS],
  ['1 d', DAY_MS],
  ['2 d', 2 * DAY_MS],
  ['7 d', 7 * DAY_MS],
  ['30 d', DAYS * DAY_MS],
  ['365 d', 365 * DAY_MS],
]

export async function run(): Promise<void> {
  const events = Number(process.argv[3] ?? EVENTS)
  // Tables have no indexes while they are filled, so the messages of sweeps are expected. Checkpoints are postponed.
  const platform = await startPlatform(['api'], { MUSTER_LOG_LEVEL: 'silent' }, {}, { max_wal_size: '8GB' })
  try {
    const { api } = platform
    const { group_id } = await api.call(createGroup, { body: { display_name: 'Bench' } })
    const game_ids: string[] = []
    const namespace_ids: string[] = []
    for (let number = 0; number < GAMES; number++) {
      const body = { display_name: `Game ${number}`, developer_group_id: group_id }
      const { game_id } = await api.call(createGame, { body })
      const { game } = await api.call(getGameById, { params: { game_id } })
      game_ids.push(game_id)
      namespace_ids.push(...game.namespaces.map(({ namespace_id }) => namespace_id))
    }
    const begun = performance.now()
    const now_ms = Date.now()
    const count = await makeTraffic(platform, events, now_ms)
    console.log(
      `  ${count} events of ${DAYS} days, and their roll-ups, in ${((performance.now() - begun) / 1_000).toFixed(0)} s`,
    )

    const ceiling = await measure(CALLS_OF_ALL, () => api.call(getGameById, { params: { game_id: game_ids[0]! } }))
    console.log(`  a game by its id: ${percentilesOf(ceiling)}`)
    let slowest = 0
    for (const [name, window_ms] of WINDOWS) {
      const ask = (variants: readonly AnalyticsVariant[]) => () =>
        api.call(getAnalytics, {
          query: {
            query_start: new Date(now_ms - window_ms).toISOString(),
            query_end: new Date(now_ms).toISOString(),
            game_ids,
            namespace_ids,
            variants: [...variants],
          },
        })
      if (window_ms >= DAY_MS) requireNumbers(await ask(ANALYTICS_VARIANTS)(), name)
      const select = bareSelect(platform, { start_ms: now_ms - window_ms, end_ms: now_ms })
      const row_count = await select()
      const bare = await measure(CALLS, select)
      const all = await measure(CALLS_OF_ALL, ask(ANALYTICS_VARIANTS))
      console.log(`  ${name} (load ${loadavg()[0]!.toFixed(1)})`)
      console.log(`    ${'all variants in one call'.padEnd(32)} ${percentilesOf(all)}`)
      console.log(
        `    ${'bare select'.padEnd(32)} ${percentilesOf(bare)}, ${row_count} rows; all variants take ${(all.p50 / bare.p50).toFixed(1)} of it`,
      )
      slowest = Math.max(slowest, all.p99)
      for (const variant of ANALYTICS_VARIANTS) {
        const one = await measure(CALLS, ask([variant]))
        console.log(`    ${variant.padEnd(32)} ${percentilesOf(one)}`)
        slowest = Math.max(slowest, one.p99)
      }
    }
    verdict('slowest p99 of all, ms', slowest, P99_MS_MAX, 'at most')
  } finally {
    await platform.stop()
  }
}

/** Throws when a data set over time is empty: its response would be a fast one. */
function requireNumbers({ data_sets }: ResponseOf<typeof getAnalytics>, name: string): void {
  for (const [index, variant] of ANALYTICS_VARIANTS.entries()) {
    const columns = Object.values<readonly unknown[] | number>(data_sets[index]?.[variant] ?? {})
    const has_numbers = columns.some((column) => (Array.isArray(column) ? column.length > 0 : true))
    if (!has_numbers) throw new Error(`${variant} of ${name} is empty`)
  }
}

/** Selects the roll-ups or events that a response is computed from, without aggregation. Returns the number of rows. */
function bareSelect({ database }: BenchPlatform, window: Window): () => Promise<number> {
  const { start_ms, end_ms, read_width } = bucketsOf(window, true)
  const table = read_width === null ? 'analytics_events' : `analytics_roll_ups_${read_width}s`
  return async () => {
    const { rows } = await database.pool.query({
      text: `select * from ${table} where ts >= $1 and ts < $2`,
      values: [new Date(start_ms), new Date(end_ms)],
      rowMode: 'array',
    })
    return rows.length
  }
}

type Times = { p50: number; p99: number }

async function measure(calls: number, call: () => Promise<unknown>): Promise<Times> {
  const times: number[] = []
  for (let number = 0; number < calls; number++) {
    const begun = performance.now()
    await call()
    times.push(performance.now() - begun)
  }
  times.sort((a, b) => a - b)
  const at = (share: number): number => times[Math.min(calls - 1, Math.floor(calls * share))]!
  return { p50: at(0.5), p99: at(0.99) }
}

function percentilesOf({ p50, p99 }: Times): string {
  return `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`
}
