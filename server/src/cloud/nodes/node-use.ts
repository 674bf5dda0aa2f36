// What machines used over time: the api stores the newest report of each runner once a minute. Several processes of the api
// store the same rows.
import {
  type getNodeUse,
  NODE_USE_HOURS_DEFAULT,
  NODE_USE_NODES_MAX,
  type QueryOf,
  type ResponseOf,
} from '@musterhost/contract'
import type { Context } from '../../context.ts'
import { type Watch, watchEvery } from '../../database/poller.ts'
import { type OldRows, removeOld } from '../../database/remove-old.ts'
import { isNowSql } from './freshness.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const KEPT_MS = 7 * 24 * HOUR_MS
/** Points of a line. */
const POINTS_MAX = 240
const OLD_USE: OldRows = { table: 'node_use', ended: 'ts' }

const STORE_SQL = `
  insert into node_use (node_id, ts, cpu_cores, memory_mb, cpu_cores_max, memory_mb_max)
  select runner_id, $1, used_cpu_cores, used_memory_mb, machine_cpu_cores, machine_memory_mb from runners
  where ${isNowSql('ts')} and used_cpu_cores is not null
  on conflict (node_id, ts) do nothing`

const READ_SQL = `
  with nodes as (
    select distinct node_id from node_use where ts >= $1 order by node_id limit $3
  )
  select node_id, max(cpu_cores_max) as cpu_cores_max, max(memory_mb_max) as memory_mb_max,
    array_agg(round(date_part('epoch', bucket) * 1000)::bigint order by bucket) as ts,
    array_agg(cpu_cores order by bucket) as cpu_cores, array_agg(memory_mb order by bucket) as memory_mb
  from (
    select node_id, date_bin($2::float8 * interval '1 millisecond', ts, 'epoch') as bucket,
      round(avg(cpu_cores)::numeric, 2)::float8 as cpu_cores, avg(memory_mb)::integer as memory_mb,
      max(cpu_cores_max) as cpu_cores_max, max(memory_mb_max) as memory_mb_max
    from node_use join nodes using (node_id) where ts >= $1 group by node_id, bucket
  ) as buckets
  group by node_id order by node_id`

export function startNodeUse(ctx: Context): Pick<Watch, 'close'> {
  return watchEvery(ctx, MINUTE_MS, {
    run: () => storeNodeUse(ctx),
    failure: 'what machines use could not be stored; trying again in a minute',
  })
}

export async function storeNodeUse(ctx: Context): Promise<void> {
  const now_ms = ctx.now()
  await ctx.pool.query(STORE_SQL, [new Date(now_ms - (now_ms % MINUTE_MS))])
  await removeOld(ctx.pool, OLD_USE, now_ms - KEPT_MS)
}

export async function tellNodeUse(
  ctx: Context,
  { hours = NODE_USE_HOURS_DEFAULT }: QueryOf<typeof getNodeUse>,
): Promise<ResponseOf<typeof getNodeUse>> {
  const width_ms = Math.max(1, Math.ceil((hours * HOUR_MS) / MINUTE_MS / POINTS_MAX)) * MINUTE_MS
  const from = new Date(ctx.now() - hours * HOUR_MS)
  const { rows } = await ctx.pool.query<ResponseOf<typeof getNodeUse>['nodes'][number]>(READ_SQL, [
    from,
    width_ms,
    NODE_USE_NODES_MAX + 1,
  ])
  return { nodes: rows.slice(0, NODE_USE_NODES_MAX), is_complete: rows.length <= NODE_USE_NODES_MAX }
}
