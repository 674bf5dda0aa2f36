// Rounds in which the primary of the platform's PostgreSQL dies under the full load, and a synchronous standby takes over.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fullLoad } from './load/load.ts'
import type { Random } from './random.ts'
import type { Round } from './report.ts'
import { acknowledge, type Harm, playRounds, type RunOptions, type RunResult, withRun } from './run.ts'

/** Operations that are acknowledged before the primary dies. */
const BEFORE_ACKNOWLEDGED_MAX = 200
/** The platform serves again within this time after the death of the primary. */
const FAILOVER_MS_MAX = 30_000

export type ReplicatedDatabase = {
  /** Of all servers. */
  url: string
  /** Ends the primary. Resolves when another server accepts writes, with what has happened. */
  strike(random: Random): Promise<string>
  /** Makes the server that has died a standby again. */
  repair(): Promise<void>
}

export async function runFailoverRounds(
  options: RunOptions & { database: ReplicatedDatabase },
  tell: (number: number, round: Round) => void,
): Promise<RunResult> {
  const { database, seed } = options
  const folder = await mkdtemp(join(tmpdir(), 'muster-failover-'))
  // As `muster start` makes it: lobbies run as other users.
  await chmod(folder, 0o711)
  try {
    return await withRun({ folder, seed, env: { DATABASE_URL: database.url } }, (run) => {
      const { platform, history, random } = run
      const load = fullLoad({ platform, history, random: random.fork('load') })
      const strikes = random.fork('strikes')
      const harm = async (): Promise<Harm> => {
        await database.repair()
        const count = strikes.int(BEFORE_ACKNOWLEDGED_MAX)
        await acknowledge(history, count)
        const begin_ms = performance.now()
        const what = await database.strike(strikes)
        return { what: `after ${count}: ${what}`, whole_after_ms: performance.now() - begin_ms, may_end: [] }
      }
      return playRounds(run, load, options, harm, tell)
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Rounds in which a player waited too long for a seat. */
export function lateRounds(rounds: readonly Round[]): string[] {
  return rounds.flatMap(({ whole_after_ms, find_after_ms }, index) => {
    const ms = whole_after_ms + find_after_ms
    return ms <= FAILOVER_MS_MAX ? [] : [`round ${index + 1}: a find succeeded after ${Math.round(ms)} ms`]
  })
}
