// A disk without a free byte, under the full load: the database, uploads, logs and lobbies share it. Once there is room
// again, everything goes on without an operator.
import { join } from 'node:path'
import type { SmallDisk } from '../small-disk.ts'
import { until } from '../until.ts'
import { isWhole } from './kill.ts'
import { fullLoad } from './load/load.ts'
import type { Round } from './report.ts'
import { acknowledge, type Harm, playRounds, type RunOptions, type RunResult, randomWhile, withRun } from './run.ts'

export const DISK_BYTES = 1024 * 1024 * 1024

const BEFORE_ACKNOWLEDGED_MAX = 100
/** The disk is full until the outcome of so many operations is unknown, and a random while longer. */
const UNKNOWN_MIN = 5
const FULL_MS_MAX = 3_000
/** On a full disk any part may end, and is started again. */
const MAY_END = ['api', 'matchmaker', 'runner', 'edge', 'PostgreSQL']

export function runDiskFull(
  disk: SmallDisk,
  options: RunOptions,
  tell: (number: number, round: Round) => void,
): Promise<RunResult> {
  return withRun({ folder: join(disk.folder, 'data'), seed: options.seed }, (run) => {
    const { platform, history, random } = run
    const load = fullLoad({ platform, history, random: random.fork('load') })
    const harm = async (): Promise<Harm> => {
      const count = random.int(BEFORE_ACKNOWLEDGED_MAX)
      await acknowledge(history, count)
      const heard = platform.started.output().length
      const unknown_before = history.counts.unknown
      await disk.fill()
      await until('operations to fail', () => history.counts.unknown >= unknown_before + UNKNOWN_MIN)
      await randomWhile(random, FULL_MS_MAX)
      await disk.empty()
      const begin_ms = performance.now()
      await until('every part to be back', () => isWhole(platform.started.output().slice(heard)))
      const what = `after ${count}: the disk is full`
      return { what, whole_after_ms: performance.now() - begin_ms, may_end: MAY_END }
    }
    return playRounds(run, load, options, harm, tell)
  })
}
