// `npm run bench shards [ROUNDS]`: measures what a find costs with 1, 2 and 4 matchmakers that share the shards. That is the
// processor time of all matchmakers, the edge and PostgreSQL. Each find goes through the edge, and n nodes have n times the
// clients of one.
//
// There are three platforms, with 1, 2 and 4 nodes. Their rounds take turns, so what else the machine does hits all three
// alike, and each ratio is of two rounds that are seconds apart. All platforms are at rest together, over the same time.
//
// All processes share the cores of one machine, so n nodes here are n times slower than n machines. What a node uses while it
// is idle would then count n times too often. So it is measured alone, and subtracted. It is added again for the rate of
// finds that one node had here: that is the cost of n machines with as much load each as the one.
//
// Node compiles what it runs often, and a find of a fresh process costs a multiple. So each process gets finds first.
import { setTimeout as delay } from 'node:timers/promises'
import { findLobby } from '@musterhost/contract'
import type { BenchGame } from '../find/games.ts'
import { freeSeats, gameWithLobbies, requireSeats, type Seat } from '../find/rounds.ts'
import { median, postRequest, quantile, runRound, type Target } from '../load.ts'
import { verdict } from '../report.ts'
import { type Cpu, Nodes, PARTS, type Sample } from './nodes.ts'

const NODE_COUNTS = [1, 2, 4] as const
const ROUNDS_DEFAULT = 7
const ROUNDS_MAX = 100
/** More than nodes, so that the shares of load differ little. */
const GAMES = 16
/** Three times the seats that a game gets on average: some shards are faster than others. */
const LOBBIES_PER_GAME = 8
/** Per node. */
const FINDS_PER_ROUND = 2_400
const WARM_UP_ROUNDS = 3
const CONNECTIONS = 64
/** Until the tables and the analytics have what the rounds did. */
const SETTLE_MS = 15_000
const IDLE_MS = 40_000
/** Of the game that shows the ceiling of one namespace. */
const CEILING_LOBBIES = 16
const CEILING_ROUNDS = 5
const RATIO_MAX = 1.15

/** `used`: microseconds per second. */
type Round = { used: Cpu; per_second: number; forwarded: number; finds_per_row: number }
type Measured = { nodes: Nodes; games: readonly BenchGame[]; rounds: Round[] }
/** Microseconds. `as_machines`: with the share of the idle time that n machines pay. */
type Cost = { find: Cpu; as_machines: number }

export async function run(): Promise<void> {
  const round_count = Number(process.argv[3] ?? ROUNDS_DEFAULT)
  if (!(round_count >= 1 && round_count <= ROUNDS_MAX))
    throw new Error(`npm run bench shards [ROUNDS, at most ${ROUNDS_MAX}]`)
  const all: Measured[] = []
  try {
    for (const count of NODE_COUNTS) {
      const nodes = await Nodes.start(count)
      const games: BenchGame[] = []
      all.push({ nodes, games, rounds: [] })
      for (let game = 0; game < GAMES; game++) games.push(await gameWithLobbies(nodes.platform, LOBBIES_PER_GAME))
    }
    for (let round = 0; round < WARM_UP_ROUNDS; round++) for (const measured of all) await measure(measured)
    for (let round = 0; round < round_count; round++) {
      // Up and down in turns, so that no platform always comes after the same one.
      for (const measured of round % 2 === 0 ? all : all.toReversed()) measured.rounds.push(await measure(measured))
    }
    await delay(SETTLE_MS)
    const idle = await Promise.all(all.map(({ nodes }) => measureIdle(nodes)))
    report(all, idle)
    await reportCeiling(all[0]!, idle[0]!)
  } finally {
    for (const { nodes } of all) await nodes.stop()
  }
}

function report(all: readonly Measured[], idle: readonly Cpu[]): void {
  const one_per_second = median(all[0]!.rounds.map(({ per_second }) => per_second))
  const costs = all.map(({ nodes, rounds }, index) =>
    rounds.map((round) => costOf(round, idle[index]!, one_per_second * nodes.count)),
  )
  console.log('\n  processor time in microseconds, median of the rounds')
  console.log('  | nodes | a find | with idle time, as n machines | matchmakers | edge | PostgreSQL | finds per row |')
  console.log('  |---|---|---|---|---|---|---|')
  for (const [index, { nodes, rounds }] of all.entries()) {
    const finds = costs[index]!.map(({ find }) => find)
    const cells = [
      nodes.count,
      spread(finds.map(total), 0),
      spread(
        costs[index]!.map(({ as_machines }) => as_machines),
        0,
      ),
      ...PARTS.map((part) => Math.round(median(finds.map((find) => find[part])))),
      median(rounds.map(({ finds_per_row }) => finds_per_row)).toFixed(2),
    ]
    console.log(`  | ${cells.join(' | ')} |`)
  }
  console.log(`\n  at rest over ${IDLE_MS / 1_000} s, milliseconds of processor time per second`)
  console.log('  | nodes | all | matchmakers | edge | PostgreSQL | for each further node |')
  console.log('  |---|---|---|---|---|---|')
  for (const [index, { nodes }] of all.entries()) {
    const one = idle[index]!
    const further = index === 0 ? '' : ms((total(one) - total(idle[0]!)) / (nodes.count - 1))
    console.log(`  | ${[nodes.count, ms(total(one)), ...PARTS.map((part) => ms(one[part])), further].join(' | ')} |`)
  }
  for (const [index, { nodes, rounds }] of all.entries()) {
    if (index === 0) continue
    const forwarded = Math.max(...rounds.map((round) => round.forwarded))
    const ratios = (of: (cost: Cost) => number): number[] =>
      costs[index]!.map((cost, round) => of(cost) / of(costs[0]![round]!))
    console.log(
      `  ${nodes.count} nodes: at most ${(forwarded * 100).toFixed(2)} % of the finds were sent on by another node; ` +
        `without the idle time ${spread(
          ratios(({ find }) => total(find)),
          2,
        )}`,
    )
    const with_idle = ratios(({ as_machines }) => as_machines)
    console.log(`  ${nodes.count} nodes / 1, with the idle time: ${spread(with_idle, 2)}`)
    verdict(`a find with ${nodes.count} nodes / with 1`, median(with_idle), RATIO_MAX, 'at most')
  }
}

function costOf({ used, per_second }: Round, idle: Cpu, as_machines_per_second: number): Cost {
  const per_find = (part: (typeof PARTS)[number]): number => (used[part] - idle[part]) / per_second
  const find = { matchmakers: per_find('matchmakers'), edge: per_find('edge'), PostgreSQL: per_find('PostgreSQL') }
  // n machines do n times the finds of one machine in a second.
  return { find, as_machines: total(find) + total(idle) / as_machines_per_second }
}

/** A namespace is in one shard, whose decisions one process makes: its processor time is what limits them. */
async function reportCeiling({ nodes }: Measured, idle: Cpu): Promise<void> {
  const measured = { nodes, games: [await gameWithLobbies(nodes.platform, CEILING_LOBBIES)], rounds: [] }
  const rounds: Round[] = []
  for (let round = 0; round < CEILING_ROUNDS; round++) rounds.push(await measure(measured))
  const of_matchmaker = median(rounds.map((round) => costOf(round, idle, round.per_second).find.matchmakers))
  console.log(
    `  one namespace: ${Math.round(median(rounds.map(({ per_second }) => per_second)))} finds/s with all processes on this machine; ` +
      `a find takes ${Math.round(of_matchmaker)} us of its matchmaker, so a core of its own carries ${Math.round(1_000_000 / of_matchmaker)} finds/s`,
  )
}

async function measure({ nodes, games }: Measured): Promise<Round> {
  const finds = FINDS_PER_ROUND * nodes.count
  const before = await nodes.sample()
  const { per_second, seats } = await find(nodes, games, { finds, connections: CONNECTIONS * nodes.count })
  const after = await nodes.sample()
  await returnSeats(nodes, games, seats)
  const used = rateOf(before, after)
  const round = {
    used,
    // With the moments before and after, whose processor time counts too.
    per_second: (finds * 1_000) / (after.at_ms - before.at_ms),
    forwarded: (after.forwarded - before.forwarded) / finds,
    finds_per_row: finds / (after.row_count - before.row_count),
  }
  console.log(
    `  ${nodes.count} nodes: ${Math.round(per_second)} finds/s, ${Math.round(total(used) / round.per_second)} us with all idle time, ` +
      `${round.finds_per_row.toFixed(1)} finds per row, ${after.forwarded - before.forwarded} sent on`,
  )
  return round
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
  { platform }: Nodes,
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

async function returnSeats({ platform }: Nodes, games: readonly BenchGame[], seats: readonly Seat[]): Promise<void> {
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

function ms(us: number): string {
  return (us / 1_000).toFixed(1)
}

/** The median, with the least and the greatest. */
function spread(values: readonly number[], digits: number): string {
  const [least, greatest] = [quantile(values, 0), quantile(values, 1)]
  return `${median(values).toFixed(digits)} (${least.toFixed(digits)} to ${greatest.toFixed(digits)})`
}
