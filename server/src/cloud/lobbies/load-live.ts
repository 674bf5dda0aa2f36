// The lobbies of a namespace that run, as they are now: the tables at the seq that they reflect, and the journal behind it,
// in one snapshot of the database. What was answered to anybody before is in it.
import { ApiError } from '@musterhost/contract'
import type { PoolClient } from 'pg'
import type { Context } from '../../context.ts'
import { shardOf } from '../../journal/pages.ts'
import { READ_ROWS_MAX, type Row, readRows } from '../../journal/read.ts'
import { type DeployedVersions, LiveLobbies, type LoadedLobby, type LobbySample } from './live.ts'

type LobbyRow = Omit<LoadedLobby, 'seats' | 'create_ms' | 'use'> & {
  used_cores: number | null
  used_bytes: number | null
  create_ts: Date
  player_ids: string[] | null
  are_connected: boolean[] | null
}

const LOBBIES_SQL = `
  select l.lobby_id, l.version_id, l.game_mode, l.region, l.create_ts, l.is_closed, l.is_stalled, l.ready_ts is not null as is_ready,
    l.max_players_normal, l.max_players_direct, l.max_players_party, l.cpu_cores, l.memory_mb, p.player_ids, p.are_connected,
    u.cpu_cores as used_cores, u.memory_bytes as used_bytes
  from lobbies l left join (
    select lobby_id, array_agg(player_id) as player_ids, array_agg(connect_ts is not null) as are_connected
    from players where shard = $1 and namespace_id = $2 and remove_ts is null and not is_spectator group by lobby_id
  ) as p on p.lobby_id = l.lobby_id left join lobby_usage u on u.lobby_id = l.lobby_id
  where l.shard = $1 and l.namespace_id = $2 and l.stop_ts is null
  order by l.create_ts, l.lobby_id`

/** Throws NAMESPACE_NOT_FOUND. */
export async function loadLiveLobbies(ctx: Context, namespace_id: string): Promise<LiveLobbies> {
  const client = await ctx.pool.connect()
  let broken: Error | undefined
  try {
    await client.query('begin isolation level repeatable read read only')
    const live = await readSnapshot(client, namespace_id)
    await client.query('commit')
    return live
  } catch (error) {
    if (error instanceof ApiError) await client.query('rollback')
    else broken = error as Error
    throw error
  } finally {
    client.release(broken)
  }
}

async function readSnapshot(client: PoolClient, namespace_id: string): Promise<LiveLobbies> {
  const shard = shardOf(namespace_id)
  const deployed = await readDeployed(client, namespace_id)
  if (deployed === undefined) throw new ApiError('NAMESPACE_NOT_FOUND')
  const { rows: shards } = await client.query<{ projected_seq: number }>(
    'select projected_seq from shards where shard = $1',
    [shard],
  )
  const { rows } = await client.query<LobbyRow>(LOBBIES_SQL, [shard, namespace_id])
  const live = new LiveLobbies(shards[0]?.projected_seq ?? 0, deployed, rows.map(loadedOf))
  for (let count = READ_ROWS_MAX; count === READ_ROWS_MAX; ) {
    const tail = await readRows(client, { shard, after: live.seq })
    for (const row of tail) applyRow(live, namespace_id, row)
    count = tail.length
  }
  return live
}

/** Undefined: the namespace does not exist. */
export async function readDeployed(
  db: Pick<PoolClient, 'query'>,
  namespace_id: string,
): Promise<DeployedVersions | undefined> {
  const { rows } = await db.query<DeployedVersions>(
    `select n.version_id, r.version_id as rollout_version_id
      from namespaces n left join rollouts r on r.namespace_id = n.namespace_id and r.end_ts is null
      where n.namespace_id = $1`,
    [namespace_id],
  )
  return rows[0]
}

/** The newest samples of all running lobbies of the namespace. */
export async function readUsage(ctx: Context, namespace_id: string): Promise<LobbySample[]> {
  const { rows } = await ctx.pool.query<LobbySample>({
    name: 'live-usage',
    text: 'select lobby_id, cpu_cores, memory_bytes from lobby_usage where namespace_id = $1',
    values: [namespace_id],
  })
  return rows
}

export function applyRow(live: LiveLobbies, namespace_id: string, { seq, page }: Row): void {
  const changes = page.entries.flatMap((entry) => (entry.namespace_id === namespace_id ? entry.changes : []))
  live.apply(seq, changes)
}

function loadedOf({ create_ts, player_ids, are_connected, used_cores, used_bytes, ...lobby }: LobbyRow): LoadedLobby {
  const seats = new Map((player_ids ?? []).map((player_id, at) => [player_id, are_connected?.[at] === true]))
  const use = used_cores === null ? null : { cpu_cores: used_cores, memory_bytes: used_bytes ?? 0 }
  return { ...lobby, create_ms: create_ts.getTime(), seats, use }
}
