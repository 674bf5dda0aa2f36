// A full disk under the full load. The database, uploads, logs and lobbies share it. Once there is room again, the platform
// recovers without an operator.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { putKvEntry } from '@musterhost/contract'
import type { SmallDisk } from '../support/small-disk.ts'
import { until } from '../support/until.ts'
import { type Outcome, outcomeOf } from './history.ts'
import { isWhole } from './kill.ts'
import { fullLoad } from './load/load.ts'
import type { FaultyPlatform } from './platform.ts'
import type { Round } from './report.ts'
import { acknowledge, type Harm, playRounds, type RunOptions, type RunResult, randomWhile, withRun } from './run.ts'

export const DISK_BYTES = 1024 * 1024 * 1024

const BEFORE_ACKNOWLEDGED_MAX = 100
/** Bytes of an entry that uses up the space that PostgreSQL has reserved. */
const VALUE_BYTES = 150_000
/** Fills the disk until an entry cannot be written, and keeps it full for a random time. */
const FULL_MS_MAX = 3_000
const WRITE_MS_MAX = 10_000
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
      await disk.fill()
      await until('a write to fail', async () => (await writeEntry(platform)).status === 'unknown')
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

/** A large incompressible entry, in a namespace without other writers. */
function writeEntry(platform: FaultyPlatform): Promise<Outcome> {
  const { cloud_token, namespaces } = platform.game
  const body = { namespace_id: namespaces.probes, key: 'large', value: randomBytes(VALUE_BYTES).toString('base64') }
  const signal = AbortSignal.timeout(WRITE_MS_MAX)
  return outcomeOf(platform.as(cloud_token).call(putKvEntry, { body, signal }))
}
