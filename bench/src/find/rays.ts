// What rays cost a find: two platforms that differ in nothing but MUSTER_RAYS_PER_SECOND, asked in turn. The difference
// is smaller than what one process has over another by luck, so each pair of platforms is only one life of several; and
// what is compared is the matchmaker's own time on the processor for a find, which a busy machine disturbs least.
import { readFileSync } from 'node:fs'
import { median, runRound } from '../load.ts'
import { type BenchPlatform, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import type { BenchGame } from './games.ts'
import { findTarget, freeSeats, gameWithLobbies, requireSeats } from './rounds.ts'

/** The edge is there for the upload of a build. */
const ROLES = ['api', 'matchmaker', 'edge'] as const
const LIVES = 5
const WARM_UP_ROUNDS = 3
const ROUNDS = 8
const FINDS_PER_ROUND = 2_400
const CONNECTIONS = 64
const LOBBIES = 10
const COST_MAX = 0.01
/** USER_HZ, the unit of /proc/PID/stat. */
const TICKS_PER_SECOND = 100

type Side = { platform: BenchPlatform; game: BenchGame; rates: number[]; ticks: number; finds: number }

export async function run(): Promise<void> {
  const costs: number[] = []
  const rates: { with_rays: number[]; without: number[] } = { with_rays: [], without: [] }
  for (let life = 0; life < LIVES; life++) {
    const platforms = [await startPlatform(ROLES), await startPlatform(ROLES, { MUSTER_RAYS_PER_SECOND: '0' })] as const
    try {
      const [with_rays, without] = [await sideOf(platforms[0]), await sideOf(platforms[1])]
      // Whoever begins has the colder machine: each begins as often as the other.
      for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round++) {
        const sides = (round + life) % 2 === 0 ? [with_rays, without] : [without, with_rays]
        for (const side of sides) await playRound(side, round >= WARM_UP_ROUNDS)
      }
      costs.push(ticksOfFind(with_rays) / ticksOfFind(without) - 1)
      rates.with_rays.push(...with_rays.rates)
      rates.without.push(...without.rates)
    } finally {
      for (const platform of platforms) await platform.stop()
    }
  }
  const ratio = median(rates.with_rays.map((rate, round) => rate / rates.without[round]!))
  const percents = costs.map((cost) => `${(cost * 100).toFixed(1)} %`).join(' ')
  console.log(
    `\n  rays: ${LIVES} pairs of platforms, ${ROUNDS} rounds of ${FINDS_PER_ROUND} each; processor time more a find`,
  )
  console.log(`  (${percents})`)
  verdict('what rays cost of a find, median', median(costs), COST_MAX, 'at most')
  console.log(`  finds a second with rays / without: ${ratio.toFixed(3)}`)
}

async function sideOf(platform: BenchPlatform): Promise<Side> {
  return { platform, game: await gameWithLobbies(platform, LOBBIES), rates: [], ticks: 0, finds: 0 }
}

async function playRound(side: Side, is_counted: boolean): Promise<void> {
  const { platform, game } = side
  const before = ticksOf(platform.process_ids.matchmaker!)
  const { per_second, answers } = await runRound(findTarget(platform, game), {
    count: FINDS_PER_ROUND,
    connections: CONNECTIONS,
  })
  const ticks = ticksOf(platform.process_ids.matchmaker!) - before
  await freeSeats(platform, game, requireSeats(answers))
  if (!is_counted) return
  side.rates.push(per_second)
  side.ticks += ticks
  side.finds += answers.length
}

const ticksOfFind = ({ ticks, finds }: Side): number => ticks / TICKS_PER_SECOND / finds

/** On the processor so far, in user and in system mode: fields 14 and 15, counted from behind the name. */
function ticksOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')
  return Number(fields[11]) + Number(fields[12])
}
