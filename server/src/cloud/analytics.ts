// Analytics as they are asked for: whose namespaces they are, the window, and one data set for each variant. What they are
// made of is in analytics/.
import { ApiError, type getAnalytics, type QueryOf, type ResponseOf, validationError } from '@musterhost/contract'
import type { ClientBase } from 'pg'
import { bucketsOf, startsOf, type Window } from '../analytics/buckets.ts'
import { type AnalyticsNumbers, isCut, VARIANTS } from '../analytics/data-sets.ts'
import { readFindDurations, readMatchWaits } from '../analytics/find-durations.ts'
import { hasOlder, type LineKind, readExitCodes, readLines, readNow } from '../analytics/read.ts'
import { fineFromMs } from '../analytics/retention.ts'
import { readExits, readTail } from '../analytics/tail.ts'
import type { Context } from '../context.ts'
import { inSnapshot } from '../database/transaction.ts'
import { shardOf } from '../journal/pages.ts'
import { JournalGap } from '../journal/read.ts'
import type { Caller } from '../tokens/caller.ts'
import { requireGames } from './access.ts'

/** Rows of a shard after the reader's position. There are more only while the aggregator catches up. */
const TAIL_ROWS_MAX = 500

/** `inTurn`: calls it when there is time for it. Throws VALIDATION_ERROR, GAME_NOT_FOUND or NAMESPACE_NOT_FOUND. */
export async function tellAnalytics(
  ctx: Context,
  caller: Caller,
  query: QueryOf<typeof getAnalytics>,
  inTurn: <T>(read: () => Promise<T>) => Promise<T>,
): Promise<ResponseOf<typeof getAnalytics>> {
  const window = windowOf(query)
  const namespace_ids = await namespacesOf(ctx, caller, query)
  const variants = query.variants.map((name) => ({ name, ...VARIANTS[name] }))
  const needs = new Set(variants.map((variant) => variant.needs))
  const numbers = await inTurn(() =>
    inSnapshot(ctx.pool, (db) => readNumbers(ctx, db, { window, namespace_ids, needs })),
  )
  return { data_sets: variants.map(({ name, compute }) => ({ [name]: compute(numbers) })), is_cut: isCut(numbers) }
}

type Asked = {
  window: Window
  namespace_ids: readonly string[]
  needs: ReadonlySet<LineKind | 'exits' | 'finds' | 'match_waits' | 'now'>
}

async function readNumbers(
  ctx: Context,
  db: ClientBase,
  { window, namespace_ids, needs }: Asked,
): Promise<AnalyticsNumbers> {
  // It takes longer to compile these statements than to run them.
  await db.query('set local jit = off')
  const now_ms = ctx.now()
  const fine_from_ms = await fineFromMs(db, ctx)
  const is_fine = window.start_ms >= fine_from_ms || !(await hasOlder(db, namespace_ids, fine_from_ms))
  const buckets = bucketsOf(window, is_fine)
  const asked = { rows_max: TAIL_ROWS_MAX, namespace_ids: new Set(namespace_ids) }
  const tail = await readTail(db, await positionsOf(db, namespace_ids), asked).catch((error: unknown) => {
    // Until the aggregation has passed the gap, only what it has aggregated is returned.
    if (error instanceof JournalGap) return readTail(db, new Map(), asked)
    throw error
  })
  const exits = needs.has('exits') ? await readExits(db, namespace_ids, tail) : []
  const starts = startsOf(buckets, now_ms)
  const reading = { namespace_ids, buckets, bucket_count: starts.length, facts: [...tail.facts, ...exits] }
  const width_ms = buckets.width * 1_000
  return {
    starts,
    secondsOf: (start_ms: number) => Math.min(width_ms, now_ms - start_ms) / 1_000,
    lines: {
      all: needs.has('all') ? await readLines(db, reading, 'all') : [],
      region: needs.has('region') ? await readLines(db, reading, 'region') : [],
      game_mode: needs.has('game_mode') ? await readLines(db, reading, 'game_mode') : [],
    },
    exits: needs.has('exits') ? await readExitCodes(db, reading) : [],
    finds: needs.has('finds') ? await readFindDurations(db, reading) : [],
    match_waits: needs.has('match_waits') ? await readMatchWaits(db, reading) : [],
    now: await readNow(db, reading),
  }
}

function windowOf({ query_start, query_end }: { query_start: string; query_end: string }): Window {
  const [start_ms, end_ms] = [Date.parse(query_start), Date.parse(query_end)]
  if (start_ms < end_ms) return { start_ms, end_ms }
  const message = 'query_end must be later than query_start.'
  throw validationError([{ path: ['query', 'query_end'], reason: 'too_low', message }])
}

/** The namespaces that are named, each once. Each is of a game that is named, and each game has one of them. */
async function namespacesOf(
  ctx: Context,
  caller: Caller,
  { game_ids, namespace_ids }: QueryOf<typeof getAnalytics>,
): Promise<string[]> {
  await requireGames(ctx, caller, game_ids)
  const { rows } = await ctx.pool.query<{ namespace_id: string; game_id: string }>(
    'select namespace_id, game_id from namespaces where game_id = any($1) and namespace_id = any($2)',
    [game_ids, namespace_ids],
  )
  if (rows.length < new Set(namespace_ids).size) throw new ApiError('NAMESPACE_NOT_FOUND')
  const games = new Set(rows.map(({ game_id }) => game_id))
  const idle = game_ids.find((game_id) => !games.has(game_id))
  if (idle !== undefined) {
    const message = `No namespace of game ${idle} is in namespace_ids. Add one, or leave the game out.`
    throw validationError([{ path: ['query', 'game_ids'], reason: 'conflicts', message }])
  }
  return rows.map(({ namespace_id }) => namespace_id)
}

/** How far each shard that has one of these namespaces is aggregated. */
async function positionsOf(db: ClientBase, namespace_ids: readonly string[]): Promise<Map<number, number>> {
  const { rows } = await db.query<{ shard: number; read_seq: number }>(
    `select shard, read_seq from journal_readers where reader = 'analytics' and shard = any($1)`,
    [[...new Set(namespace_ids.map(shardOf))]],
  )
  return new Map(rows.map(({ shard, read_seq }) => [shard, read_seq]))
}
