// `npm run bench cost [COMMIT]`: what a find costs in processor time, by role, in the working tree and in another commit. Both run
// at once, and take turns, so that changes of the machine affect both. Without COMMIT it is HEAD: what is not committed yet.
// It is the guard against creep. PostgreSQL is not counted: it does the same for both.
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Role } from '@musterhost/server/config/roles'
import type { BenchGame } from '../find/games.ts'
import { findTarget, freeSeats, gameWithLobbies, requireSeats } from '../find/rounds.ts'
import { boundsOfMedian, median, quantile, runRound, type Target } from '../load.ts'
import { type BenchPlatform, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { type CommitTree, openCommitTree } from './commit-tree.ts'

const ROLES = ['api', 'matchmaker', 'edge'] as const satisfies Role[]
const WARM_UP_ROUNDS = 3
/** Odd, so that a median is a round's own value. */
const ROUNDS = 21
const FINDS_PER_ROUND = 2_400
/** More than this is creep. */
const RATIO_MAX = 1.02
/** Longer than the intervals at which the matchmaker writes what follows a find: that belongs to its cost. */
const SETTLE_MS = 1_500
const CONNECTIONS = 64
const LOBBIES = 10
const NS_PER_US = 1_000
const COMMIT_DEFAULT = 'HEAD'

/** Where the finds are sent, and the roles on their way. */
const WAYS = [
  { name: 'direct', roles: ['matchmaker'] },
  { name: 'through the edge', roles: ['edge', 'matchmaker'] },
] as const

type WayName = (typeof WAYS)[number]['name']
type Measured = (typeof WAYS)[number]['roles'][number]
/** Microseconds of a processor for one find, of each round. */
type Rounds = Record<WayName, Record<Measured, number[]>>
type Tree = { name: string; platform: BenchPlatform; game: BenchGame; rounds: Rounds }

export async function run(): Promise<void> {
  const commit = await openCommitTree(process.argv[3] ?? COMMIT_DEFAULT)
  try {
    if (!commit.has_same_libraries)
      console.log('  package-lock.json has changed: both run with the libraries of this tree')
    await compare(commit)
  } finally {
    commit.remove()
  }
}

async function compare({ name, program, migrate }: CommitTree): Promise<void> {
  const trees: Tree[] = []
  try {
    const programs = { api: program, matchmaker: program, edge: program }
    trees.push(await openTree(name, await startPlatform(ROLES, {}, programs, {}, migrate)))
    trees.push(await openTree('this tree', await startPlatform(ROLES)))
    for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
      for (const way of WAYS) {
        const order = round % 2 === 0 ? trees : trees.toReversed()
        for (const tree of order) await playRound(tree, way.name, round >= WARM_UP_ROUNDS)
      }
    }
    report(trees[0]!, trees[1]!)
  } finally {
    for (const { platform } of trees) await platform.stop()
  }
}

async function openTree(name: string, platform: BenchPlatform): Promise<Tree> {
  const noRounds = (): Record<Measured, number[]> => ({ edge: [], matchmaker: [] })
  const rounds: Rounds = { direct: noRounds(), 'through the edge': noRounds() }
  return { name, platform, game: await gameWithLobbies(platform, LOBBIES), rounds }
}

async function playRound({ platform, game, rounds }: Tree, way: WayName, is_counted: boolean): Promise<void> {
  const { roles } = WAYS.find(({ name }) => name === way)!
  const spentUs = (): number[] => roles.map((role) => processorUs(platform.processes[role]!.pid!))
  const before = spentUs()
  const { answers } = await runRound(targetOf(platform, game, way), {
    count: FINDS_PER_ROUND,
    connections: CONNECTIONS,
  })
  await delay(SETTLE_MS)
  const after = spentUs()
  const seats = requireSeats(answers)
  await freeSeats(platform, game, seats)
  await delay(SETTLE_MS)
  if (!is_counted) return
  for (const [index, role] of roles.entries()) {
    rounds[way][role].push((after[index]! - before[index]!) / seats.length)
  }
}

function targetOf(platform: BenchPlatform, game: BenchGame, way: WayName): Target {
  const target = findTarget(platform, game)
  return way === 'direct' ? target : { ...target, port: platform.config.edge_http_port }
}

/** The processor time of all threads of a process, in microseconds. The kernel's other counters have steps of 10 ms. */
function processorUs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const ns = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  )
  return ns.reduce((sum, one) => sum + one, 0) / NS_PER_US
}

function report(before: Tree, now: Tree): void {
  console.log(
    `\n  processor time of a find, ${ROUNDS} rounds of ${FINDS_PER_ROUND}: median (middle half of the rounds)`,
  )
  console.log(`  ${''.padEnd(30)}${before.name.padStart(24)}${now.name.padStart(24)}`)
  for (const { name, roles } of WAYS) {
    for (const role of roles) {
      const [old_us, new_us] = [before, now].map((tree) => tree.rounds[name][role])
      console.log(`  ${`${name}: ${role}`.padEnd(30)}${figure(old_us!).padStart(24)}${figure(new_us!).padStart(24)}`)
    }
  }
  for (const { name, roles } of WAYS) {
    const sums = [before, now].map(({ rounds }) =>
      Array.from({ length: ROUNDS }, (_, round) => roles.reduce((sum, role) => sum + rounds[name][role][round]!, 0)),
    )
    const [old_us, new_us] = sums as [number[], number[]]
    const ratios = new_us.map((us, round) => us / old_us[round]!)
    const [least, most] = boundsOfMedian(ratios)
    const what = `find ${name}, this tree / ${before.name}`
    const bounds = `${least.toFixed(3)} to ${most.toFixed(3)}`
    console.log(`\n  ${what}: ${median(ratios).toFixed(3)} (${bounds}, 95 % certain)`)
    verdict(`${what}, at least surely`, least, RATIO_MAX, 'at most')
  }
}

function figure(us: readonly number[]): string {
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantile(us, share).toFixed(0))
  return `${middle} us (${low} to ${high})`
}
