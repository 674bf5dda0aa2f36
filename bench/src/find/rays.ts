// Measures what rays cost a find in processor time of the matchmaker. PostgreSQL and the edge are not counted. The recorder's
// part of a find is smaller than the noise of a machine, so it is measured alone, many times, and compared with a find.
// The matchmaker's rays are also switched on and off in turn. That shows further costs, and how large the noise is.
import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createLog } from '@musterhost/server/observe/log'
import { phase } from '@musterhost/server/observe/ray'
import { createRecorder } from '@musterhost/server/observe/recorder'
import { boundsOfMedian, median, runRound } from '../load.ts'
import { type BenchPlatform, startPlatform } from '../platform.ts'
import { verdict } from '../report.ts'
import { findTarget, freeSeats, gameWithLobbies, requireSeats } from './rounds.ts'
import type { Switch, Switched } from './switched-matchmaker.ts'

const SWITCHED_MATCHMAKER = fileURLToPath(new URL('./switched-matchmaker.ts', import.meta.url))
/** The edge is needed for the upload of a build. */
const ROLES = ['api', 'matchmaker', 'edge'] as const
const WARM_UP_PAIRS = 6
const PAIRS = 60
const FINDS_PER_ROUND = 1_200
const CONNECTIONS = 64
const LOBBIES = 10
const COST_MAX = 0.01
/** The spans of a find that begins with 'http'. */
const PHASES = ['auth', 'http', 'handle', 'choose', 'commit', 'answer']
const RAYS = 200_000
const RAY_ROUNDS = 9

export async function run(): Promise<void> {
  const platform = await startPlatform(ROLES, {}, { matchmaker: SWITCHED_MATCHMAKER })
  try {
    const game = await gameWithLobbies(platform, LOBBIES)
    const matchmaker = platform.processes.matchmaker!
    /** Processor time of each find of a round, in microseconds. */
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
      // The first of a pair runs on a colder machine, so both are first equally often.
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

/** Returns the processor time so far, in microseconds. */
async function switchRays(matchmaker: ChildProcess, are_kept: boolean): Promise<number> {
  matchmaker.send({ kind: 'rays', are_kept } satisfies Switch)
  const [answer] = (await once(matchmaker, 'message')) as [Switched]
  return answer.cpu_us
}

/** Processor time of all calls of one find to the recorder, in microseconds. */
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
  const costs = with_rays.map((us, pair) => us - without[pair]!)
  const of_find = median(without)
  // The difference is small compared to the noise.
  const [least, most] = boundsOfMedian(costs)
  const percent = (us: number) => `${((us / of_find) * 100).toFixed(2)} %`
  console.log(`\n  a find: ${of_find.toFixed(1)} us of processor time of the matchmaker, without rays`)
  console.log(`  with them, in ${costs.length} pairs of ${FINDS_PER_ROUND} finds: ${percent(median(costs))} more`)
  console.log(`  (with 95 % certainty ${percent(least)} to ${percent(most)})`)
  console.log(`  the recorder's part of one find, measured alone: ${ray_us.toFixed(2)} us, ${percent(ray_us)}`)
  verdict('what rays cost of a find, measured alone', ray_us / of_find, COST_MAX, 'at most')
  verdict('what rays cost of a find, at least surely', Math.max(0, least) / of_find, COST_MAX, 'at most')
}
