// Measures what a find costs with 1, 2 and 4 matchmakers that share the shards: the processor time of all matchmakers, the edge and
// PostgreSQL, per find. All processes share the cores of one machine, so their throughput says nothing. Each find goes through
// the edge. The games are in all shards, so most finds need the edge to know whose they are.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { findLobby } from '@muster/contract'
import type { BenchGame } from '../find/games.ts'
import { freeSeats, gameWithLobbies, requireSeats, type Seat } from '../find/rounds.ts'
import { median, postRequest, runRound, type Target } from '../load.ts'
import { type BenchPlatform, type FurtherMatchmaker, startMatchmaker, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'

const NODE_COUNTS = [1, 2, 4] as const
const CYCLES = 3
const GAMES = 8
const LOBBIES_PER_GAME = 4
const FINDS_PER_ROUND = 2_400
const WARM_UP_FINDS = 600
const CONNECTIONS = 64
const RATIO_MAX = 1.15
const LOOK_EVERY_MS = 100
/** Linux counts processor time in hundredths of a second. */
const MS_PER_TICK = 10

type Part = 'matchmakers' | 'edge' | 'PostgreSQL'
type Cost = Record<Part, number>

export async function run(): Promise<void> {
  const platform = await startPlatform(['api', 'matchmaker', 'edge'])
  const further: FurtherMatchmaker[] = []
  try {
    const games: BenchGame[] = []
    for (let count = 0; count < GAMES; count++) games.push(await gameWithLobbies(platform, LOBBIES_PER_GAME))
    const costs = new Map<number, Cost[]>(NODE_COUNTS.map((count) => [count, []]))
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      for (const count of NODE_COUNTS) {
        while (further.length > count - 1) await further.pop()!.stop()
        while (further.length < count - 1) further.push(await startMatchmaker(platform, further.length + 2))
        await untilEven(platform, count)
        await returnSeats(platform, games, (await find(platform, games, WARM_UP_FINDS)).seats)
        costs.get(count)!.push(await measure(platform, games, further))
      }
    }
    report(costs)
  } finally {
    for (const one of further) await one.stop()
    await platform.stop()
  }
}

function report(costs: ReadonlyMap<number, readonly Cost[]>): void {
  const totals = new Map<number, number>()
  console.log('\n  processor time per find, microseconds: median of the rounds (all)')
  for (const [count, rounds] of costs) {
    const all = rounds.map((cost) => cost.matchmakers + cost.edge + cost.PostgreSQL)
    totals.set(count, median(all))
    const parts = (['matchmakers', 'edge', 'PostgreSQL'] as const).map(
      (part) => `${part} ${Math.round(median(rounds.map((cost) => cost[part])))}`,
    )
    console.log(`  ${count} nodes: ${Math.round(median(all))} (${all.map(Math.round).join(' ')}): ${parts.join(', ')}`)
  }
  for (const count of NODE_COUNTS.slice(1)) {
    verdict(`a find with ${count} nodes / with 1`, totals.get(count)! / totals.get(1)!, RATIO_MAX, 'at most')
  }
}

async function measure(
  platform: BenchPlatform,
  games: readonly BenchGame[],
  further: readonly FurtherMatchmaker[],
): Promise<Cost> {
  const matchmakers = [platform.processes.matchmaker!.pid!, ...further.map(({ pid }) => pid)]
  const edge = [platform.processes.edge!.pid!]
  const read = (): Cost => ({
    matchmakers: sum(matchmakers.map(ticksOf)),
    edge: sum(edge.map(ticksOf)),
    PostgreSQL: postgresTicks(platform),
  })
  const before = read()
  const { per_second, seats } = await find(platform, games, FINDS_PER_ROUND)
  const after = read()
  await returnSeats(platform, games, seats)
  const cost = (part: Part): number => ((after[part] - before[part]) * MS_PER_TICK * 1_000) / FINDS_PER_ROUND
  console.log(`  ${matchmakers.length} nodes: ${Math.round(per_second)} finds/s`)
  return { matchmakers: cost('matchmakers'), edge: cost('edge'), PostgreSQL: cost('PostgreSQL') }
}

/** Through the edge, in all games in turn. */
async function find(
  platform: BenchPlatform,
  games: readonly BenchGame[],
  count: number,
): Promise<{ per_second: number; seats: Seat[] }> {
  const requests = games.map(({ public_token }) =>
    postRequest(
      findLobby.path,
      { authorization: `Bearer ${public_token}` },
      { game_modes: ['default'], prevent_auto_create_lobby: true },
    ),
  )
  const requestOf = (connection: number): Buffer => requests[connection % requests.length]!
  const target: Target = { port: platform.config.edge_http_port, request: requestOf(0), requestOf }
  const { answers, per_second } = await runRound(target, { count, connections: CONNECTIONS })
  return { per_second, seats: requireSeats(answers) }
}

async function returnSeats(
  platform: BenchPlatform,
  games: readonly BenchGame[],
  seats: readonly Seat[],
): Promise<void> {
  const rows = await platform.database.db.selectFrom('lobbies').select(['lobby_id', 'namespace_id']).execute()
  const namespaces = new Map(rows.map(({ lobby_id, namespace_id }) => [lobby_id, namespace_id]))
  for (const game of games) {
    const own = seats.filter(({ lobby }) => namespaces.get(lobby.lobby_id) === game.namespace_id)
    await freeSeats(platform, game, own)
  }
}

async function untilEven({ database }: BenchPlatform, count: number): Promise<void> {
  for (;;) {
    const { rows } = await database.pool.query<{ node_count: number; shard_count: number }>(
      `select count(distinct writer)::integer as node_count, count(*)::integer as shard_count
        from shard_leases where writer is not null and is_served`,
    )
    const [{ node_count, shard_count }] = rows as [{ node_count: number; shard_count: number }]
    if (node_count === count && shard_count === 64) return
    await delay(LOOK_EVERY_MS)
  }
}

/** The processor time of a process, with the children that it has waited for. */
function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return sum(fields.slice(11, 15).map(Number))
}

function postgresTicks({ config }: BenchPlatform): number {
  const postmaster = Number(readFileSync(join(config.data_dir, 'postgres', 'postmaster.pid'), 'utf8').split('\n', 1)[0])
  const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').trim().split(' ')
  return sum([postmaster, ...children.map(Number)].map(ticksOf))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
