// The nodes of the platform: what their roles report, what their lobbies use, and their drains. A node is known from the
// reports of its roles; a row of `nodes` is what the operator decided about it. The matchmaker reads both every second
// (matchmaker/watch/nodes.ts), and a notification wakes it.
import {
  ApiError,
  type BodyOf,
  type cancelNodeDrain,
  type drainNode,
  type listNodes,
  NODES_MAX,
  type ResponseOf,
  type removeNode,
} from '@musterhost/contract'
import type { Transaction } from 'kysely'
import { sql } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Members } from '../../audit/members.ts'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { timestamp } from '../times.ts'
import { isFreshSql, isNowSql } from './freshness.ts'

type Node = ResponseOf<typeof listNodes>['nodes'][number]
type NodeRow = {
  node_id: string
  roles: string[]
  regions: string[] | null
  version: string | null
  cpu_cores_max: number | null
  memory_mb_max: number | null
  disk_free_bytes: number | null
  seen_ts: Date | null
  is_fresh: boolean
  refusal: 'no_manager' | 'not_available' | null
  lobby_count: number
  player_count: number
  cpu_cores: number
  memory_mb: number
  drain_ts: Date | null
  drain_at_match_end: boolean | null
  drain_deadline_ts: Date | null
  removed_ts: Date | null
  round_trip_ms: number | null
  clock_offset_ms: number | null
  certificate_expire_ts: Date | null
}

/** Cores are fractions; sums are rounded to a ten-thousandth. */
const CORE_PARTS = 10_000
/** Round trips are rounded to a hundredth of a millisecond. */
const MS_PARTS = 100

export async function listAllNodes(ctx: Context): Promise<ResponseOf<typeof listNodes>> {
  const nodes = await readNodes(ctx, null)
  return { nodes: nodes.slice(0, NODES_MAX), is_complete: nodes.length <= NODES_MAX }
}

export async function drain(ctx: ChangeContext, body: BodyOf<typeof drainNode>): Promise<{ node: Node }> {
  const { node_id, at_match_end = false, deadline_s } = body
  await requireNode(ctx, node_id)
  await changes(ctx, {}, async (trx) => {
    const before = await lockNode(trx, node_id)
    const deadline = deadline_s === undefined ? null : sql<Date>`now() + make_interval(secs => ${deadline_s})`
    const after = await trx
      .updateTable('nodes')
      .set({
        drain_ts: sql<Date>`coalesce(drain_ts, now())`,
        drain_at_match_end: at_match_end,
        drain_deadline_ts: deadline,
      })
      .where('node_id', '=', node_id)
      .returningAll()
      .executeTakeFirstOrThrow()
    return { before: membersOf(before), after: membersOf(after) }
  })
  return notifyChange(ctx, node_id)
}

export async function cancelDrain(ctx: ChangeContext, body: BodyOf<typeof cancelNodeDrain>): Promise<{ node: Node }> {
  const { node_id } = body
  await requireNode(ctx, node_id)
  await changes(ctx, {}, async (trx) => {
    const before = await lockNode(trx, node_id)
    // Its certificate is revoked, and its machine has given up.
    if (before.removed_ts !== null && (await hasJoined(trx, node_id))) throw new ApiError('NODE_REMOVED', { node_id })
    const cancelled = { drain_ts: null, drain_at_match_end: false, drain_deadline_ts: null, removed_ts: null }
    await trx.updateTable('nodes').set(cancelled).where('node_id', '=', node_id).execute()
    return { before: membersOf(before), after: membersOf({ node_id, ...cancelled }) }
  })
  return notifyChange(ctx, node_id)
}

/**
 * A node that runs lobbies is removed with `force` only. The matchmaker ends its lobbies. The link of a joined node is revoked
 * in the same transaction.
 */
export async function remove(ctx: ChangeContext, body: BodyOf<typeof removeNode>): Promise<Record<string, never>> {
  const { node_id, force = false } = body
  const { lobby_count } = await requireNode(ctx, node_id)
  if (lobby_count > 0 && !force) throw new ApiError('NODE_HAS_LOBBIES', { node_id, lobby_count })
  await changes(ctx, {}, async (trx) => {
    const before = await lockNode(trx, node_id)
    const after = await trx
      .updateTable('nodes')
      .set({ removed_ts: sql<Date>`coalesce(removed_ts, now())` })
      .where('node_id', '=', node_id)
      .returningAll()
      .executeTakeFirstOrThrow()
    await trx
      .updateTable('node_links')
      .set({ revoke_ts: sql<Date>`coalesce(revoke_ts, now())` })
      .where('node_id', '=', node_id)
      .execute()
    return { before: membersOf(before), after: { ...membersOf(after), force } }
  })
  await ctx.listener.notify(CHANNELS.nodes, node_id)
  return {}
}

async function notifyChange(ctx: Context, node_id: string): Promise<{ node: Node }> {
  await ctx.listener.notify(CHANNELS.nodes, node_id)
  return { node: await requireNode(ctx, node_id) }
}

async function requireNode(ctx: Context, node_id: string): Promise<Node> {
  const [node] = await readNodes(ctx, node_id)
  if (node === undefined) throw new ApiError('NODE_NOT_FOUND', { node_id })
  return node
}

type Decided = {
  node_id: string
  drain_ts: Date | null
  drain_at_match_end: boolean
  drain_deadline_ts: Date | null
  removed_ts: Date | null
}

/** Returns the row of the node, which is made where it is missing. */
async function lockNode(trx: Transaction<Schema>, node_id: string): Promise<Decided> {
  await trx
    .insertInto('nodes')
    .values({ node_id })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return trx.selectFrom('nodes').where('node_id', '=', node_id).selectAll().forUpdate().executeTakeFirstOrThrow()
}

async function hasJoined(trx: Transaction<Schema>, node_id: string): Promise<boolean> {
  const row = await trx.selectFrom('node_links').where('node_id', '=', node_id).select('node_id').executeTakeFirst()
  return row !== undefined
}

function membersOf({ node_id, drain_ts, drain_at_match_end, drain_deadline_ts, removed_ts }: Decided): Members {
  return {
    node_id,
    is_draining: drain_ts !== null,
    at_match_end: drain_at_match_end,
    deadline_ts: drain_deadline_ts === null ? null : timestamp(drain_deadline_ts),
    is_removed: removed_ts !== null,
  }
}

/**
 * A node with a runner is open only while that runner reports, whatever its other roles do: it runs lobbies.
 *
 * `only`: null: all nodes, and one more than a response lists. A removed node is listed while it reports or has lobbies, or when it is asked for.
 */
async function readNodes({ pool }: Context, only: string | null): Promise<Node[]> {
  const { rows } = await pool.query<NodeRow>(
    `with known as (
        select runner_id as node_id, 'runner' as role, ts as seen_ts from runners
        union all select node_id, 'matchmaker', seen_ts from matchmakers
        union all select node_id, 'edge', coalesce(silent_ts, now()) from edges
        union all select node_id, null, null from nodes
        union all select distinct node_id, null, null::timestamptz from lobbies where stop_ts is null and node_id is not null
      ), named as (
        select node_id, array_remove(array_agg(distinct role), null) as roles, max(seen_ts) as seen_ts
        from known where $1::text is null or node_id = $1 group by node_id
      ), used as (
        select node_id, count(*)::integer as lobby_count, sum(player_count)::integer as player_count,
          sum(cpu_cores)::float8 as cpu_cores, sum(memory_mb)::float8 as memory_mb
        from lobbies where stop_ts is null and node_id is not null group by node_id
      )
      select named.node_id, named.roles, regions, runners.version, runners.cpu_cores as cpu_cores_max,
        runners.memory_mb as memory_mb_max, disk_free_bytes, named.seen_ts,
        coalesce(${isNowSql('runners.ts')}, ${isFreshSql('named.seen_ts')}, false) as is_fresh, refusal,
        coalesce(lobby_count, 0) as lobby_count, coalesce(player_count, 0) as player_count,
        coalesce(used.cpu_cores, 0) as cpu_cores, coalesce(used.memory_mb, 0) as memory_mb,
        drain_ts, drain_at_match_end, drain_deadline_ts, removed_ts, round_trip_ms, clock_offset_ms, certificate_expire_ts
      from named
      left join runners on runners.runner_id = named.node_id
      left join used on used.node_id = named.node_id
      left join nodes on nodes.node_id = named.node_id
      left join node_links on node_links.node_id = named.node_id
      where removed_ts is null or $1::text is not null or lobby_count > 0
        or ${isFreshSql('named.seen_ts')}
      order by named.node_id limit ${NODES_MAX + 1}`,
    [only],
  )
  return rows.map(nodeOf)
}

function nodeOf(row: NodeRow): Node {
  const { node_id, roles, regions, lobby_count, player_count, memory_mb, drain_ts } = row
  return {
    node_id,
    state: stateOf(row),
    roles,
    regions: regions ?? [],
    ...(row.version === null ? {} : { version: row.version }),
    lobby_count,
    player_count,
    cpu_cores: Math.round(row.cpu_cores * CORE_PARTS) / CORE_PARTS,
    ...(row.cpu_cores_max === null ? {} : { cpu_cores_max: row.cpu_cores_max }),
    memory_mb,
    ...(row.memory_mb_max === null ? {} : { memory_mb_max: row.memory_mb_max }),
    ...(row.disk_free_bytes === null ? {} : { disk_free_bytes: row.disk_free_bytes }),
    ...(row.certificate_expire_ts === null ? {} : { link: linkOf(row, row.certificate_expire_ts) }),
    ...(row.seen_ts === null ? {} : { seen_ts: timestamp(row.seen_ts) }),
    ...(drain_ts === null
      ? {}
      : {
          drain: {
            begin_ts: timestamp(drain_ts),
            at_match_end: row.drain_at_match_end === true,
            ...(row.drain_deadline_ts === null ? {} : { deadline_ts: timestamp(row.drain_deadline_ts) }),
          },
        }),
  }
}

function linkOf({ round_trip_ms, clock_offset_ms }: NodeRow, certificate_expire_ts: Date): NonNullable<Node['link']> {
  return {
    ...(round_trip_ms === null ? {} : { round_trip_ms: Math.round(round_trip_ms * MS_PARTS) / MS_PARTS }),
    ...(clock_offset_ms === null ? {} : { clock_offset_ms: Math.round(clock_offset_ms) }),
    certificate_expire_ts: timestamp(certificate_expire_ts),
  }
}

function stateOf({ removed_ts, drain_ts, lobby_count, is_fresh, refusal }: NodeRow): Node['state'] {
  if (removed_ts !== null) return 'removed'
  if (drain_ts !== null) return lobby_count === 0 ? 'drained' : 'draining'
  return is_fresh ? (refusal ?? 'open') : 'away'
}
