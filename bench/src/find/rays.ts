// What rays cost a find, of the matchmaker's time on the processor; whatever else a find takes (PostgreSQL, the edge) is not
// counted. What a find asks of the recorder takes less than a machine's moods differ from one second to the next: it is
// measured by itself, many times over, and set against a find. Beside it the matchmaker's rays are switched on and off in
// turn, which shows what else they may cost, and how far such a look can be believed.
import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createLog } from '@muster/server/observe/log'
import { phase } from '@muster/server/observe/ray'
import { createRecorder } from '@muster/server/observe/recorder'
import { median, runRound } from '../load.ts'
import { type BenchPlatform, startPlatform } from '../platform.ts'
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
/** Those of a find that begins with 'http'. */
const PHASES = ['auth', 'http', 'handle', 'choose', 'commit', 'answer']
const RAYS = 200_000
const RAY_ROUNDS = 9

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
    report(with_rays, without, await rayUs(platform))
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

/** Microseconds on the processor for all that one find asks of the recorder. */
async function rayUs({ config, database: { pool } }: BenchPlatform): Promise<number> {
  const { rays_per_second } = config
  const log = createLog({ who: 'bench', level: 'error' })
  const recorder = createRecorder({ pool, log, now: () => performance.timeOrigin + performance.now(), rays_per_second })
  const ids = Array.from({ length: 1_000 }, () => randomUUID())
  const rounds: number[] = []
  for (let round = 0; round <= RAY_ROUNDS; round++) {
    const before = process.cpuUsage()
    for (let count = 0; count < RAYS; count++) {
      const ray = recorder.open('matchmaker', ids[count % ids.length]!)
      for (const label of PHASES) phase(ray, label)
      recorder.end(ray, null)
    }
    const used = process.cpuUsage(before)
    if (round > 0) rounds.push((used.user + used.system) / RAYS)
  }
  await recorder.close()
  return median(rounds)
}

function report(with_rays: readonly number[], without: readonly number[], ray_us: number): void {
  const costs = with_rays.map((us, pair) => us - without[pair]!).toSorted((x, y) => x - y)
  const of_find = median(without)
  // The rank interval of the median (binomial, 95 %), for a difference that is small beside the noise.
  const reach = Math.ceil(0.98 * Math.sqrt(costs.length))
  const middle = Math.floor(costs.length / 2)
  const [least, most] = [costs[middle - reach]!, costs[middle + reach]!]
  const percent = (us: number) => `${((us / of_find) * 100).toFixed(2)} %`
  console.log(`\n  a find: ${of_find.toFixed(1)} us of the matchmaker's time on the processor, without rays`)
  console.log(`  with them, in ${costs.length} pairs of ${FINDS_PER_ROUND} finds: ${percent(median(costs))} more`)
  console.log(`  (with 95 % certainty ${percent(least)} to ${percent(most)})`)
  console.log(`  what one find asks of the recorder, by itself: ${ray_us.toFixed(2)} us, ${percent(ray_us)}`)
  verdict('what rays cost of a find', ray_us / of_find, COST_MAX, 'at most')
}
