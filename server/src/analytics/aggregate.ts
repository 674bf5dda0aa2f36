// The aggregation of analytics: it reads the journal after its position, turns it into facts, and adds them up. It does so after
// a notification of something new, and at most every few seconds. The facts, their sums, the live state and the position change
// in one transaction: a kill at any point loses nothing and counts nothing twice. The row of the position is a lock: of several
// api processes the one that holds it aggregates the shard, and the others skip it.
import { setTimeout } from 'node:timers/promises'
import type { ClientBase } from 'pg'
import type { Context } from '../context.ts'
import { makeDayPartitions } from '../database/day-partitions.ts'
import { inTransaction } from '../database/transaction.ts'
import { createTimerWhileNeeded } from '../flow/timer-while-needed.ts'
import { SHARD_COUNT } from '../journal/pages.ts'
import { JournalGap } from '../journal/read.ts'
import { CHANNELS } from '../wire/channels.ts'
import { exitOf, type Fact } from './facts.ts'
import { rowsOfEnded } from './gap.ts'
import { writeLiveState } from './live-state.ts'
import { addFacts } from './roll-ups.ts'
import { type Series, seriesIds } from './series.ts'
import { factsOfRows, readTail, type Tail } from './tail.ts'

/** Between the begin of two rounds. */
const FOLD_EVERY_MS = 2_000
/** Between two rounds without a notification, in case one was lost, and for runs that no runner reports any more. */
const FOLD_UNASKED_EVERY_MS = 30_000
/** Journal rows of one shard that one transaction aggregates. */
const ROWS_MAX = 50
/** Transactions of one round; the next round does the rest. */
const ROUND_MAX = 100
/**
 * After each transaction a round that is late pauses for as long as the transaction took, up to this. Players come
 * first.
 */
const REST_MS_MAX = 1_000
/** Ends of processes that are counted at a time. */
const EXITS_MAX = 1_000
/** A stopped lobby of which no run is known by then never had one. */
const NO_RUN_MS = 10 * 60_000
/** A run whose end is never reported is treated as ended after this time. */
const NO_END_MS = 7 * 24 * 60 * 60_000

export type Aggregation = { stop: () => Promise<void> }
type Ctx = Pick<Context, 'pool' | 'now' | 'log'>
type ListeningCtx = Ctx & { listener: Pick<Context['listener'], 'on'> }

export function startAggregation(ctx: ListeningCtx, rows_max = ROWS_MAX): Aggregation {
  let is_stopped = false
  let has_begun = false
  let aggregating: Promise<void> | null = null
  /** There is something new since the last round began, or that round has not done all. */
  let has_news = true

  async function round(): Promise<void> {
    try {
      if (!has_begun) await begin(ctx)
      has_begun = true
      for (let count = 0; count < ROUND_MAX && !is_stopped; count++) {
        const began = performance.now()
        if (!(await aggregate(ctx, rows_max))) return
        await setTimeout(Math.min(performance.now() - began, REST_MS_MAX))
      }
      has_news = true
    } catch (error) {
      has_news = true
      ctx.log.warn({ err: error }, 'the journal could not be folded for analytics; trying again')
    }
  }
  const beginRound = (): void => {
    if (aggregating !== null) return
    has_news = false
    aggregating = round().finally(() => {
      aggregating = null
    })
  }
  // It runs for one interval after a round, so that the next one waits, and goes on while there is something new.
  const rounds = createTimerWhileNeeded(FOLD_EVERY_MS, () => {
    const goes_on = has_news || aggregating !== null
    if (has_news) beginRound()
    return goes_on
  })
  const wake = (): void => {
    has_news = true
    if (rounds.need()) beginRound()
  }
  const unsubscribes = [CHANNELS.journal, CHANNELS.lobby_runs].map((channel) => ctx.listener.on(channel, wake))
  const timer = setInterval(wake, FOLD_UNASKED_EVERY_MS)
  wake()
  return {
    async stop() {
      is_stopped = true
      for (const unsubscribe of unsubscribes) unsubscribe()
      clearInterval(timer)
      rounds.close()
      await aggregating
    },
  }
}

/** One step. Returns whether there may be more to do at once. */
export async function aggregate(ctx: Ctx, rows_max = ROWS_MAX): Promise<boolean> {
  try {
    const has_more_rows = await foldJournal(ctx, rows_max)
    const has_more_exits = await foldExits(ctx)
    return has_more_rows || has_more_exits
  } catch (error) {
    if (!(error instanceof JournalGap)) throw error
    ctx.log.error({ err: error }, 'a part of the journal was removed before analytics had read it; it is not counted')
    return begin(ctx)
  }
}

async function foldJournal(ctx: Ctx, rows_max: number): Promise<boolean> {
  return inTransaction(ctx.pool, async (client) => {
    const { rows } = await client.query<{ shard: number; read_seq: number }>({
      name: 'analytics-behind',
      text: BEHIND_SQL,
    })
    if (rows.length === 0) return false
    const tail = await readTail(client, new Map(rows.map(({ shard, read_seq }) => [shard, read_seq])), { rows_max })
    await write(client, tail)
    await client.query(MOVE_SQL, [[...tail.read.keys()], [...tail.read.values()]])
    return tail.is_cut
  })
}

async function write(client: ClientBase, { facts, live_state }: Pick<Tail, 'facts' | 'live_state'>): Promise<void> {
  const { lobbies } = live_state.touched()
  const idOf = await seriesIds(
    client,
    [...facts, ...lobbies].map(({ series }) => series),
  )
  await add(client, facts, idOf)
  await writeLiveState(client, live_state, idOf)
}

/** Ends of processes, and lobbies whose process no runner reports any more. */
async function foldExits(ctx: Ctx): Promise<boolean> {
  return inTransaction(ctx.pool, async (client) => {
    const { rows } = await client.query<Series & { lobby_id: string; stop_ts: Date; exit_code: number | null }>({
      name: 'analytics-exits',
      text: EXITS_SQL,
      values: [new Date(ctx.now() - NO_RUN_MS), new Date(ctx.now() - NO_END_MS), EXITS_MAX],
    })
    if (rows.length === 0) return false
    const facts = rows.flatMap(({ stop_ts, exit_code, namespace_id, region, game_mode }) =>
      exit_code === null ? [] : [exitOf({ namespace_id, region, game_mode }, stop_ts.getTime(), exit_code)],
    )
    const idOf = await seriesIds(
      client,
      facts.map(({ series }) => series),
    )
    await add(client, facts, idOf)
    await client.query('delete from analytics_lobbies where lobby_id = any($1)', [rows.map(({ lobby_id }) => lobby_id)])
    return rows.length === EXITS_MAX
  })
}

async function add(client: ClientBase, facts: readonly Fact[], idOf: (series: Series) => number): Promise<void> {
  await makeDayPartitions(
    client,
    'analytics_events',
    facts.map(({ ms }) => ms),
  )
  await addFacts(client, facts, idOf)
}

/**
 * Moves a position that is new, or that is behind a gap, to the oldest journal row that exists. Returns whether any position
 * changed.
 */
async function begin(ctx: Ctx): Promise<boolean> {
  return inTransaction(ctx.pool, async (client) => {
    const { rows } = await client.query<{ shard: number; read_seq: number }>(BEGIN_SQL, [SHARD_COUNT - 1])
    if (rows.length === 0) return false
    const positions = new Map(rows.map(({ shard, read_seq }) => [shard, read_seq]))
    for (let count = 0; count < ROUND_MAX; count++) {
      const ended = await rowsOfEnded(client, positions, ctx.now())
      if (ended.length === 0) break
      await write(client, await factsOfRows(client, ended))
    }
    return true
  })
}

const FIRST_SQL = `
  select shard, 'analytics', coalesce((select seq - 1 from journal where journal.shard = shards.shard order by seq limit 1), 0)
  from generate_series(0, $1::integer) as shards (shard)`
const BEGIN_SQL = `
  insert into journal_readers (shard, reader, read_seq) ${FIRST_SQL}
  on conflict (shard, reader) do update set read_seq = excluded.read_seq
  where journal_readers.read_seq < excluded.read_seq
  returning shard, read_seq`
const BEHIND_SQL = `
  select shard, read_seq from journal_readers
  where reader = 'analytics'
    and exists (select from journal where journal.shard = journal_readers.shard and seq > read_seq)
  for update skip locked`
const MOVE_SQL = `
  update journal_readers set read_seq = moved.seq
  from unnest($1::integer[], $2::bigint[]) as moved (shard, seq)
  where reader = 'analytics' and journal_readers.shard = moved.shard`
const EXITS_SQL = `
  select lobby_id, analytics_series.namespace_id, analytics_series.region, game_mode, stop_ts, exit_code
  from analytics_lobbies
  join analytics_series using (series_id)
  left join lobby_runs using (lobby_id)
  where stop_ts is not null
    and (exit_ts is not null or (lobby_runs.create_ts is null and stop_ts < $1) or stop_ts < $2)
  limit $3
  for update of analytics_lobbies skip locked`
