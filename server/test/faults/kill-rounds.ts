// Rounds of kill -9 under the full load. A round lets the load run until a random number of operations was acknowledged,
// kills one part or two, and waits until the supervisor reports that all parts run again.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { strike, strikesOf } from './kill.ts'
import { fullLoad } from './load/load.ts'
import type { Round } from './report.ts'
import { acknowledge, type Harm, playRounds, type RunOptions, type RunResult, withRun } from './run.ts'

/** Operations that are acknowledged before a strike. */
const BEFORE_ACKNOWLEDGED_MAX = 200

export async function runKillRounds(
  options: RunOptions,
  tell: (number: number, round: Round) => void,
): Promise<RunResult> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-faults-'))
  try {
    return await withRun({ folder, seed: options.seed }, (run) => {
      const { platform, history, random } = run
      const load = fullLoad({ platform, history, random: random.fork('load') })
      const strikes = strikesOf(random.fork('strikes'))
      const harm = async (): Promise<Harm> => {
        const next = strikes.next().value
        const count = random.int(BEFORE_ACKNOWLEDGED_MAX)
        await acknowledge(history, count)
        const begin_ms = performance.now()
        await strike(platform, next, random)
        const [first, second] = next.victims
        const what = second === undefined ? `${first}` : `${first}, ${next.gap_ms} ms later ${second}`
        return { what: `after ${count}: ${what}`, whole_after_ms: performance.now() - begin_ms, may_end: next.victims }
      }
      return playRounds(run, load, options, harm, tell)
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
