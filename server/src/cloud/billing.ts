// What the lobbies of a group's games have used. The runs themselves say it: from when to when a process lived, with how
// many cores, and whose it was when it began; so what is deleted since, or moved, still counts. A run that has not ended
// counts until now. Nothing is added up ahead of time, and so nothing can be counted twice.
import { type BillingUsage, type getUsage, type QueryOf, validationError } from '@musterhost/contract'
import { sql } from 'kysely'
import type { Static } from 'typebox'
import { PORTION_MAX } from '../config/regions.ts'
import type { Context } from '../context.ts'
import { idOfName } from '../ids.ts'
import type { Caller } from '../tokens/caller.ts'
import { requireGroup } from './access.ts'
import { instantOf } from './times.ts'

type Usage = Static<typeof BillingUsage>
type Window = { start_ms: number; end_ms: number }
/** Wall time of the runs of one size; sums come as text. */
type RunTime = { game_id: string; region: string; cpu_cores: number; run_ms: string }

const DAY_MS = 86_400_000
/** Ten years: more is a mistake in units. */
const WINDOW_MS_MAX = 3_660 * DAY_MS
const HOUR_MS = 3_600_000n

/** Throws GROUP_NOT_FOUND, or VALIDATION_ERROR for a window that ends before it begins, or is too long. */
export async function findUsage(
  ctx: Context,
  caller: Caller,
  group_id: string,
  query: QueryOf<typeof getUsage>,
): Promise<Usage> {
  await requireGroup(ctx, caller, group_id)
  const { regions, currency } = ctx.config
  const window = windowOf(query, ctx.now())
  const times = await readRunTimes(ctx, group_id, window)
  const games = new Map<string, Usage['games'][number]>()
  for (const same of Map.groupBy(times, ({ game_id, region }) => `${game_id} ${region}`).values()) {
    const { game_id, region } = same[0]!
    const uptime = addUp(same)
    const price = regions.find(({ name }) => name === region)?.price_micros_per_core_hour ?? null
    const cost = price === null ? {} : { cost_micros: Number(roundHalfUp(uptime * BigInt(price), HOUR_MS)) }
    const game = games.get(game_id) ?? { game_id, regions: [] }
    game.regions.push({ region_id: idOfName(region), uptime: Number(uptime), ...cost })
    games.set(game_id, game)
  }
  const is_cut = await isCut(ctx, group_id, window)
  return { games: [...games.values()], is_cut, ...(currency === null ? {} : { currency }) }
}

/** Whether runs of the window may have been removed for their age. A group that is younger had none. */
async function isCut(ctx: Context, group_id: string, { start_ms }: Window): Promise<boolean> {
  const { runs_ms } = ctx.config.retention
  if (runs_ms === null) return false
  const kept_from_ms = ctx.now() - runs_ms
  if (start_ms >= kept_from_ms) return false
  const group = await ctx.db
    .selectFrom('groups')
    .select('create_ts')
    .where('group_id', '=', group_id)
    .executeTakeFirstOrThrow()
  return group.create_ts.getTime() < kept_from_ms
}

/** The window ends now at the latest: future usage is unknown. */
function windowOf({ query_start_ts, query_end_ts }: QueryOf<typeof getUsage>, now_ms: number): Window {
  const end_ms = query_end_ts === undefined ? now_ms : instantOf(query_end_ts)
  // The end itself is not part of the window: one that ends with a month is of that month.
  const start_ms = query_start_ts === undefined ? startOfMonth(end_ms - 1) : instantOf(query_start_ts)
  if (start_ms > end_ms) throwInvalid(['query', 'query_end_ts'], 'too_low', 'query_end_ts lies before query_start_ts.')
  if (end_ms - start_ms > WINDOW_MS_MAX) {
    throwInvalid(['query', 'query_start_ts'], 'too_low', 'The window is longer than ten years.')
  }
  return { start_ms, end_ms: Math.min(end_ms, now_ms) }
}

function throwInvalid(path: string[], reason: string, message: string): never {
  throw validationError([{ path, reason, message }])
}

function startOfMonth(ms: number): number {
  const date = new Date(ms)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
}

/** By game, region and cores; in that order. A run that never had a process, or no cores, has used nothing. */
async function readRunTimes(ctx: Context, group_id: string, { start_ms, end_ms }: Window): Promise<RunTime[]> {
  const [start, end] = [new Date(start_ms), new Date(end_ms)]
  const { rows } = await sql<RunTime>`
    select game_id, region, cpu_cores,
      sum((1000 * extract(epoch from least(exit_ts, ${end}) - greatest(start_ts, ${start})))::bigint) as run_ms
    from lobby_runs
    where group_id = ${group_id} and start_ts < ${end} and (exit_ts > ${start} or exit_ts is null)
      and greatest(start_ts, ${start}) < least(exit_ts, ${end})
      and game_id is not null and region is not null and cpu_cores is not null
    group by game_id, region, cpu_cores
    order by game_id, region, cpu_cores`.execute(ctx.db)
  return rows
}

/** Exactly; rounded once, at the end. */
function addUp(times: readonly RunTime[]): bigint {
  let [numerator, denominator] = [0n, 1n]
  for (const { cpu_cores, run_ms } of times) {
    const cores = fractionOf(cpu_cores)
    numerator = numerator * cores.denominator + BigInt(run_ms) * cores.numerator * denominator
    denominator *= cores.denominator
  }
  return roundHalfUp(numerator, denominator)
}

/** The cores of a tier are a fraction of numbers up to PORTION_MAX, and no two of these are the same as a double. */
function fractionOf(cpu_cores: number): { numerator: bigint; denominator: bigint } {
  for (let denominator = 1; denominator <= PORTION_MAX; denominator++) {
    const numerator = Math.round(cpu_cores * denominator)
    if (numerator / denominator === cpu_cores) return { numerator: BigInt(numerator), denominator: BigInt(denominator) }
  }
  throw new Error(`A run has ${cpu_cores} cores, which are those of no tier.`)
}

function roundHalfUp(numerator: bigint, denominator: bigint): bigint {
  return (2n * numerator + denominator) / (2n * denominator)
}
