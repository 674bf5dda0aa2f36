// Measures what a find costs with 1, 2 and 4 matchmakers that share the shards: the processor time of all matchmakers, the edge
// and PostgreSQL. Each find goes through the edge, and n nodes have n times the clients of one.
//
// All processes share the cores of one machine, so n nodes here are n times slower than n machines. What a node uses while it
// is idle would then count n times too often. So it is measured alone, and subtracted. It is added again for the rate of
// finds that one node had here: that is the cost of n machines with as much load each as the one.
//
// Node compiles what it runs often, and a find of a fresh process costs a multiple. So each process gets finds first.
import { setTimeout as delay } from 'node:timers/promises'
import { findLobby } from '@muster/contract'
import type { BenchGame } from '../find/games.ts'
import { freeSeats, gameWithLobbies, requireSeats, type Seat } from '../find/rounds.ts'
import { median, postRequest, runRound, type Target } from '../load.ts'
import { type BenchPlatform, freePorts, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { type Cpu, Nodes, PARTS, type Sample } from './nodes.ts'

/** Up and down again, so that a machine that becomes slower or faster meanwhile changes no ratio. */
const NODE_COUNTS = [1, 2, 4, 4, 2, 1] as const
const ROUNDS = 2
/** More than nodes, so that the shares of load differ little. */
const GAMES = 16
/** Three times the seats that a game gets on average: some shards are faster than others. */
const LOBBIES_PER_GAME = 8
/** Per node. */
const FINDS_PER_ROUND = 2_400
const WARM_UP_ROUNDS = 3
const CONNECTIONS = 64
const IDLE_MS = 6_000
/** Of the game that shows the ceiling of one namespace. */
const CEILING_LOBBIES = 16
const CEILING_ROUNDS = 5
const RATIO_MAX = 1.15

/** Microseconds. `idle`: per second. */
type Cost = { find: Cpu; idle: Cpu; per_second: number; forwarded: number; finds_per_row: number }

export async function run(): Promise<void> {
  const [metrics_port] = await freePorts(1)
  const platform = await startPlatform(['api', 'matchmaker', 'edge'], { MUSTER_METRICS_PORT: String(metrics_port) })
  const nodes = new Nodes(platform)
  try {
    const games: BenchGame[] = []
    for (let count = 0; count < GAMES; count++) games.push(await gameWithLobbies(platform, LOBBIES_PER_GAME))
    const costs = new Map<number, Cost[]>()
    for (const [index, count] of NODE_COUNTS.entries()) {
      const is_larger = (await nodes.resize(count)) || index === 0
      const idle = await measureIdle(nodes)
      const measured = { nodes, games, count, idle }
      // The first line shows what a find costs in a process that has not compiled it yet.
      for (let round = 0; is_larger && round < WARM_UP_ROUNDS; round++) await measure(platform, measured)
      const rounds = costs.get(count) ?? []
      costs.set(count, rounds)
      for (let round = 0; round < ROUNDS; round++) rounds.push(await measure(platform, measured))
    }
    report(costs)
    await reportCeiling(platform, nodes)
  } finally {
    await nodes.stop()
    await platform.stop()
  }
}

function report(costs: ReadonlyMap<number, readonly Cost[]>): void {
  const node_per_second = median(costs.get(1)!.map(({ per_second }) => per_second))
  const totals = new Map<number, number>()
  console.log('\n  processor time in microseconds, median of the rounds')
  console.log(
    '  | nodes | a find | as n machines | all rounds | matchmakers | edge | PostgreSQL | idle, ms/s | finds per row |',
  )
  console.log('  |---|---|---|---|---|---|---|---|---|')
  for (const [count, rounds] of costs) {
    const finds = rounds.map(({ find }) => total(find))
    const idle = median(rounds.map((round) => total(round.idle)))
    // n machines do n times the finds of one machine in a second.
    totals.set(count, median(finds) + idle / (node_per_second * count))
    const cells = [
      count,
      Math.round(median(finds)),
      Math.round(totals.get(count)!),
      finds.map(Math.round).join(' '),
      ...PARTS.map((part) => Math.round(median(rounds.map(({ find }) => find[part])))),
      `${(idle / 1_000).toFixed(1)} (${PARTS.map((part) => (median(rounds.map((round) => round.idle[part])) / 1_000).toFixed(1)).join(' + ')})`,
      median(rounds.map(({ finds_per_row }) => finds_per_row)).toFixed(2),
    ]
    console.log(`  | ${cells.join(' | ')} |`)
  }
  for (const [count, rounds] of costs) {
    if (count === 1) continue
    const forwarded = Math.max(...rounds.map((round) => round.forwarded))
    console.log(`  ${count} nodes: at most ${(forwarded * 100).toFixed(2)} % of the finds were sent on by another node`)
    verdict(`a find with ${count} nodes / with 1`, totals.get(count)! / totals.get(1)!, RATIO_MAX, 'at most')
  }
}

/** A namespace is in one shard, whose decisions one process makes: its processor time is what limits them. One node is left. */
async function reportCeiling(platform: BenchPlatform, nodes: Nodes): Promise<void> {
  const games = [await gameWithLobbies(platform, CEILING_LOBBIES)]
  const measured = { nodes, games, count: 1, idle: await measureIdle(nodes) }
  const rounds: Cost[] = []
  for (let round = 0; round < CEILING_ROUNDS; round++) rounds.push(await measure(platform, measured))
  const of_matchmaker = median(rounds.map(({ find }) => find.matchmakers))
  console.log(
    `  one namespace: ${Math.round(median(rounds.map(({ per_second }) => per_second)))} finds/s with all processes on this machine; ` +
      `a find takes ${Math.round(of_matchmaker)} us of its matchmaker, so a core of its own carries ${Math.round(1_000_000 / of_matchmaker)} finds/s`,
  )
}

type Measured = { nodes: Nodes; games: readonly BenchGame[]; count: number; idle: Cpu }

async function measure(platform: BenchPlatform, { nodes, games, count, idle }: Measured): Promise<Cost> {
  const finds = FINDS_PER_ROUND * count
  const before = await nodes.sample()
  const { per_second, seats } = await find(platform, games, { finds, connections: CONNECTIONS * count })
  const after = await nodes.sample()
  await returnSeats(platform, games, seats)
  const used = rateOf(before, after)
  const per_find = (part: (typeof PARTS)[number]): number =>
    ((used[part] - idle[part]) * (after.at_ms - before.at_ms)) / 1_000 / finds
  const cost: Cost = {
    find: { matchmakers: per_find('matchmakers'), edge: per_find('edge'), PostgreSQL: per_find('PostgreSQL') },
    idle,
    per_second,
    forwarded: (after.forwarded - before.forwarded) / finds,
    finds_per_row: finds / (after.row_count - before.row_count),
  }
  console.log(
    `  ${count} nodes: ${Math.round(per_second)} finds/s, ${Math.round(total(cost.find))} us, ` +
      `${cost.finds_per_row.toFixed(1)} finds per row, ${after.forwarded - before.forwarded} sent on`,
  )
  return cost
}

/** Per second. */
async function measureIdle(nodes: Nodes): Promise<Cpu> {
  const before = await nodes.sample()
  await delay(IDLE_MS)
  return rateOf(before, await nodes.sample())
}

function rateOf(before: Sample, after: Sample): Cpu {
  const seconds = (after.at_ms - before.at_ms) / 1_000
  const rate = (part: (typeof PARTS)[number]): number => (after.cpu[part] - before.cpu[part]) / seconds
  return { matchmakers: rate('matchmakers'), edge: rate('edge'), PostgreSQL: rate('PostgreSQL') }
}

/** Through the edge, in all games in turn. */
async function find(
  platform: BenchPlatform,
  games: readonly BenchGame[],
  { finds, connections }: { finds: number; connections: number },
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
  const { answers, per_second } = await runRound(target, { count: finds, connections })
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

function total(cpu: Cpu): number {
  return cpu.matchmakers + cpu.edge + cpu.PostgreSQL
}
