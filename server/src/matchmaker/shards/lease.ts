// Who has which shard. Each matchmaker process has a row in `matchmakers`, which it renews: its heartbeat. Each shard has a
// row in `shard_leases`, with its holder. A lease lives while the heartbeat of its holder does. A lease only says which process
// to ask. Safety does not depend on it: that is the fence (fence.ts).
import type { Pool, PoolClient, QueryConfig } from 'pg'
import type { ProcessNumber } from '../../config/processes.ts'
import { inTransaction } from '../../database/transaction.ts'
import { decodePage, SHARD_COUNT } from '../../journal/pages.ts'
import { CHANNELS } from '../../wire/channels.ts'

/** To the response to a heartbeat. */
const BEAT_MS_MAX = 2_000
/** A heartbeat that is older says nothing about the time of the books. By the database's clock. */
const FRESH_S = 10
const REGISTER_LOCK = 1_400_332

/** `address`: where other nodes reach it, over mutual TLS. */
type Holder = { writer: string; node_id: string; address: string }
/** `seen`: changes with each heartbeat. `age_ms`: of the heartbeat, by the database's clock. */
export type Member = Holder & { seen: string; age_ms: number; is_leaving: boolean }
export type LeaseView = {
  /** The process has its row. */
  is_member: boolean
  /** In the order of their start. */
  members: readonly Member[]
  /** The writer by shard; null: no process has it. */
  holders: readonly (string | null)[]
  /** Shards whose holder has marked them as served. */
  served: ReadonlySet<number>
}

export type Beat = {
  writer: string
  book_ms: number
  /** Until when all its shards were served; null: one of them cannot be served at the moment. */
  served_ms: number | null
  is_leaving: boolean
}

/** The latest times that are known. `live_ms`: the time of the books of a process that lives; null: there is none. */
export type ReachedTimes = { reached_ms: number; live_ms: number | null }

/**
 * Makes this process known. A process that has just started (`is_restart`) replaces the earlier process of its number on its node,
 * and has its leases at once. The first one also replaces those that the node has no more. `timeOf` returns the time of this process's books.
 */
export async function register(
  pool: Pool,
  holder: Holder & { process: ProcessNumber; is_restart: boolean },
  timeOf: (reached: ReachedTimes) => number,
): Promise<void> {
  const { writer, node_id, process, address, is_restart } = holder
  const replaced = [process.number, process.count]
  await inTransaction(pool, async (client) => {
    await client.query('select pg_advisory_xact_lock($1)', [REGISTER_LOCK])
    if (is_restart) {
      await client.query(
        `update shard_leases set writer = $1, is_served = false, served_ms = ${SERVED_BY_EARLIER}
          from matchmakers as earlier where earlier.writer = shard_leases.writer
            and earlier.node_id = $2 and ${isReplacedSql('earlier.process')}`,
        [writer, node_id, ...replaced],
      )
      await client.query(
        `delete from matchmakers where writer <> $1 and node_id = $2 and ${isReplacedSql('process')}`,
        [writer, node_id, ...replaced],
      )
    }
    const book_ms = timeOf(await reachedTimes(client))
    // Only processes of an earlier build read speaks_tls, during an upgrade.
    await client.query(
      'insert into matchmakers (writer, node_id, process, address, book_ms, speaks_tls) values ($1, $2, $3, $4, $5, true)',
      [writer, node_id, process.number, address, book_ms],
    )
    await notify(client)
  })
}

/** Matches the process with the number $3, and for the first one also all from the number $4 on. */
function isReplacedSql(column: string): string {
  return `(${column} = $3 or ($3 = 0 and ${column} >= $4))`
}

/** Renews the heartbeat, and returns who has what. */
export async function beat(pool: Pool, of: Beat): Promise<LeaseView> {
  const { rows } = await pool.query<{
    is_known: boolean
    members: Member[] | null
    leases: { writer: string; shards: number[] }[] | null
    served: number[] | null
  }>(
    timed({
      name: 'matchmaker-beat',
      text: BEAT_SQL,
      values: [of.writer, of.book_ms, of.served_ms, of.is_leaving],
    }),
  )
  const { is_known, members, leases, served } = rows[0]!
  const holders: (string | null)[] = Array.from({ length: SHARD_COUNT }, () => null)
  for (const { writer, shards } of leases ?? []) for (const shard of shards) holders[shard] = writer
  return { is_member: is_known, members: members ?? [], holders, served: new Set(served) }
}

/**
 * Takes shards without a holder, or whose holders do not live: `from` has the holder of each, and `seen` its last heartbeat.
 * Returns those that this process has now.
 */
export async function takeLeases(
  pool: Pool,
  writer: string,
  wanted: readonly { shard: number; from: string | null; seen: string | null }[],
): Promise<number[]> {
  const { rows } = await pool.query<{ shard: number }>(
    `with wanted as (
        select * from unnest($2::smallint[], $3::uuid[], $4::text[]) as wanted (shard, holder, seen)
      )
      update shard_leases set writer = $1, is_served = false, served_ms = ${SERVED_BY_EARLIER}
      from wanted left join matchmakers as earlier on earlier.writer = wanted.holder
      where shard_leases.shard = wanted.shard and shard_leases.writer is not distinct from wanted.holder
        and earlier.seen_ts::text is not distinct from wanted.seen
        and exists (select from matchmakers where writer = $1)
      returning shard_leases.shard`,
    [writer, wanted.map(({ shard }) => shard), wanted.map(({ from }) => from), wanted.map(({ seen }) => seen)],
  )
  await notify(pool)
  return rows.map(({ shard }) => shard)
}

/** Until when each of the shards was served, in book time. Shards that this process does not have are left out. */
export async function servedTimes(pool: Pool, writer: string, shards: readonly number[]): Promise<Map<number, number>> {
  const { rows } = await pool.query<{ shard: number; served_ms: number }>(
    'select shard, served_ms from shard_leases where writer = $1 and shard = any($2)',
    [writer, shards],
  )
  return new Map(rows.map(({ shard, served_ms }) => [shard, served_ms]))
}

/** From now on `served_ms` of the process holds for these shards too. */
export async function markServed(pool: Pool, writer: string, shards: readonly number[]): Promise<void> {
  await pool.query('update shard_leases set is_served = true where writer = $1 and shard = any($2)', [writer, shards])
}

/** Gives a shard away, which was served until `served_ms`. `to`: null: no process. */
export async function giveLease(
  pool: Pool,
  { shard, from, to, served_ms }: { shard: number; from: string; to: string | null; served_ms: number },
): Promise<void> {
  await pool.query(
    `update shard_leases set writer = $3, is_served = false, served_ms = greatest(served_ms, $4)
      where shard = $1 and writer = $2`,
    [shard, from, to, served_ms],
  )
  await notify(pool)
}

/** After an orderly stop: no process waits until this one counts as dead. `served_ms`: null as in Beat. */
export async function leave(pool: Pool, writer: string, served_ms: number | null): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query('select pg_advisory_xact_lock($1)', [REGISTER_LOCK])
    await client.query('update matchmakers set served_ms = coalesce($2, served_ms) where writer = $1', [
      writer,
      served_ms,
    ])
    await client.query(
      `update shard_leases set writer = null, is_served = false, served_ms = ${SERVED_BY_EARLIER}
        from matchmakers as earlier where earlier.writer = shard_leases.writer and earlier.writer = $1`,
      [writer],
    )
    await client.query('delete from matchmakers where writer = $1', [writer])
    await notify(client)
  })
}

/** Removes the rows of dead processes that have no lease any more. */
export async function removeDead(pool: Pool, dead: readonly Member[]): Promise<void> {
  await pool.query(
    `delete from matchmakers using unnest($1::uuid[], $2::text[]) as dead (writer, seen)
      where matchmakers.writer = dead.writer and seen_ts::text = dead.seen
        and not exists (select from shard_leases where shard_leases.writer = matchmakers.writer)`,
    [dead.map(({ writer }) => writer), dead.map(({ seen }) => seen)],
  )
}

/** What the process that had the shard before has served of it. */
const SERVED_BY_EARLIER = `greatest(shard_leases.served_ms, case when is_served then earlier.served_ms end)`

const BEAT_SQL = `
  with beat as (
    update matchmakers set seen_ts = clock_timestamp(), book_ms = $2, served_ms = coalesce($3, served_ms), is_leaving = $4
    where writer = $1 returning 1
  )
  select exists (select from beat) as is_known,
    (select json_agg(member) from (
      select writer, node_id, address, seen_ts::text as seen, is_leaving,
        extract(epoch from clock_timestamp() - seen_ts)::float8 * 1000 as age_ms
      from matchmakers order by start_ts, writer
    ) as member) as members,
    (select json_agg(lease) from (
      select writer, json_agg(shard) as shards from shard_leases where writer is not null group by writer
    ) as lease) as leases,
    (select json_agg(shard) from shard_leases where is_served) as served`

async function reachedTimes(client: PoolClient): Promise<ReachedTimes> {
  const { rows } = await client.query<{ served_ms: number | null; live_ms: number | null }>(
    `select (select max(served_ms) from shard_leases) as served_ms, (
        select max(book_ms + trunc(extract(epoch from clock_timestamp() - seen_ts) * 1000))::bigint from matchmakers
        where seen_ts > clock_timestamp() - make_interval(secs => ${FRESH_S})
      ) as live_ms`,
  )
  const { served_ms, live_ms } = rows[0]!
  return { reached_ms: Math.max(served_ms ?? 0, await lastPageTime(client)), live_ms }
}

/** The latest book time of any shard's journal; 0 when all are empty. */
async function lastPageTime(client: PoolClient): Promise<number> {
  const { rows } = await client.query<{ payload: Buffer }>(
    `select last.payload from generate_series(0, $1::integer) as shards (shard)
      cross join lateral (select payload from journal where journal.shard = shards.shard order by seq desc limit 1) as last`,
    [SHARD_COUNT - 1],
  )
  return Math.max(0, ...rows.map(({ payload }) => decodePage(payload).ms))
}

async function notify(client: Pool | PoolClient): Promise<void> {
  await client.query(`select pg_notify('${CHANNELS.shard_leases}', '')`)
}

/** The driver knows `query_timeout`, its types do not. */
function timed(query: QueryConfig): QueryConfig {
  return Object.assign(query, { query_timeout: BEAT_MS_MAX })
}
