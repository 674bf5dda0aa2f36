// What rays cost a find: one matchmaker, whose rays are switched on and off in turn, and the time on the processor that
// it takes for a find with them and without. Of whatever else a find takes (PostgreSQL, the edge) nothing is counted.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { median, runRound } from '../load.ts'
import { startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { findTarget, freeSeats, gameWithLobbies, requireSeats } from './rounds.ts'
import type { Switch, Switched } from './switched-matchmaker.ts'

const SWITCHED_MATCHMAKER = fileURLToPath(new URL('./switched-matchmaker.ts', import.meta.url))
/** The edge is there for the upload of a build. */
const ROLES = ['api', 'matchmaker', 'edge'] as const
const WARM_UP_PAIRS = 6
const PAIRS = 60
const FINDS_PER_ROUND = 1_200
const CONNECTIONS = 64
const LOBBIES = 10
const COST_MAX = 0.01

export async function run(): Promise<void> {
  const platform = await startPlatform(ROLES, {}, { matchmaker: SWITCHED_MATCHMAKER })
  try {
    const game = await gameWithLobbies(platform, LOBBIES)
    const matchmaker = platform.processes.matchmaker!
    /** Microseconds on the processor for each find of a round. */
    const playRound = async (are_kept: boolean): Promise<number> => {
      const before = await switchRays(matchmaker, are_kept)
      const { answers } = await runRound(findTarget(platform, game), {
        count: FINDS_PER_ROUND,
        connections: CONNECTIONS,
      })
      const after = await switchRays(matchmaker, are_kept)
      await freeSeats(platform, game, requireSeats(answers))
      return (after - before) / answers.length
    }
    const with_rays: number[] = []
    const without: number[] = []
    for (let pair = 0; pair < WARM_UP_PAIRS + PAIRS; pair++) {
      // Whoever begins has the colder machine: each begins as often as the other.
      const order = pair % 2 === 0 ? [true, false] : [false, true]
      for (const are_kept of order) {
        const us = await playRound(are_kept)
        if (pair >= WARM_UP_PAIRS) (are_kept ? with_rays : without).push(us)
      }
    }
    report(with_rays, without)
  } finally {
    await platform.stop()
  }
}

/** Answers the time on the processor so far, in microseconds. */
async function switchRays(matchmaker: ChildProcess, are_kept: boolean): Promise<number> {
  matchmaker.send({ kind: 'rays', are_kept } satisfies Switch)
  const [answer] = (await once(matchmaker, 'message')) as [Switched]
  return answer.cpu_us
}

function report(with_rays: readonly number[], without: readonly number[]): void {
  const costs = with_rays.map((us, pair) => us - without[pair]!).toSorted((x, y) => x - y)
  const of_find = median(without)
  // The rank interval of the median (binomial, 95 %), for a difference that is small beside the noise.
  const reach = Math.ceil(0.98 * Math.sqrt(costs.length))
  const middle = Math.floor(costs.length / 2)
  const [least, most] = [costs[middle - reach]!, costs[middle + reach]!]
  const percent = (us: number) => `${((us / of_find) * 100).toFixed(2)} %`
  console.log(`\n  a find: ${of_find.toFixed(1)} us of the matchmaker's time on the processor, without rays`)
  console.log(`  rays, of ${costs.length} pairs of ${FINDS_PER_ROUND} finds: ${median(costs).toFixed(2)} us more`)
  console.log(`  that is ${percent(median(costs))}, with 95 % certainty ${percent(least)} to ${percent(most)}`)
  verdict('what rays cost of a find', median(costs) / of_find, COST_MAX, 'at most')
}
