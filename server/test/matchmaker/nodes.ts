// Several matchmakers on one database: the first with the api, the others like further machines, with the same keys.
import { cp, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { sql } from 'kysely'
import { SHARD_COUNT, shardOf } from '../../src/journal/pages.ts'
import { createDatabase } from '../support/database.ts'
import {
  type GameOptions,
  type Platform,
  type PlatformOptions,
  startPlatform,
  type TestGame,
} from '../support/platform.ts'
import { until } from '../support/until.ts'

const GAMES_MAX = 24

export type Nodes = {
  first: Platform
  /** Starts a further matchmaker. */
  join: (options?: PlatformOptions) => Promise<Platform>
}

export async function startNodes(t: TestContext, options: PlatformOptions = {}): Promise<Nodes> {
  const database_url = await createDatabase(t)
  const first = await startPlatform(t, { ...options, database_url })
  return {
    first,
    async join(more = {}) {
      const data_dir = await mkdtemp(join(tmpdir(), 'muster-node-'))
      await cp(join(first.data_dir, 'keys'), join(data_dir, 'keys'), { recursive: true })
      return startPlatform(t, { ...options, roles: 'matchmaker', ...more, database_url, data_dir })
    },
  }
}

/** A runner that reports nothing more: its node is away, and gets lobbies since no other node is there. */
export async function addNode({ ctx }: Platform, node_id: string, cpu_cores: number): Promise<void> {
  await ctx.db
    .insertInto('runners')
    .values({
      runner_id: node_id,
      regions: ctx.config.regions.map(({ name }) => name),
      disk_free_bytes: 1e12,
      cpu_cores,
      memory_mb: null,
      port_count: 1_000,
    })
    .execute()
  await sql`select pg_notify('nodes', '')`.execute(ctx.db)
}

/** The shards by the node that has them. */
export async function sharesOf({ ctx }: Platform): Promise<Map<string, number[]>> {
  const rows = await ctx.db
    .selectFrom('shard_leases')
    .innerJoin('matchmakers', 'matchmakers.writer', 'shard_leases.writer')
    .where('is_served', '=', true)
    .select(['node_id', 'shard'])
    .orderBy('shard')
    .execute()
  const shares = new Map<string, number[]>()
  for (const { node_id, shard } of rows) shares.set(node_id, [...(shares.get(node_id) ?? []), shard])
  return shares
}

/** Waits until the nodes have all shards in even shares. */
export async function evenShares(nodes: readonly Platform[]): Promise<Map<string, number[]>> {
  return until('even shares', async () => {
    const shares = await sharesOf(nodes[0]!)
    const counts = nodes.map(({ ctx }) => shares.get(ctx.config.node_id)?.length ?? 0)
    const sum = counts.reduce((total, count) => total + count, 0)
    return sum === SHARD_COUNT && Math.max(...counts) - Math.min(...counts) <= 1 ? shares : null
  })
}

/** A game whose namespace is in one of these shards. */
export async function gameIn(platform: Platform, shards: readonly number[], options?: GameOptions): Promise<TestGame> {
  for (let count = 0; count < GAMES_MAX; count++) {
    const game = await platform.game(options)
    if (shards.includes(shardOf(game.namespace_id))) return game
  }
  throw new Error(`none of ${GAMES_MAX} games is in one of these shards`)
}
