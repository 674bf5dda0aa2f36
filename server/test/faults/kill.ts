// Kills parts of the platform with SIGKILL, alone and in pairs. The output of the supervisor shows when all parts run again.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { roleOf } from '../supervisor/started.ts'
import { until } from '../support/until.ts'
import type { FaultyPlatform } from './platform.ts'
import type { Random } from './random.ts'

const VICTIMS = ['api', 'matchmaker', 'runner', 'edge', 'PostgreSQL', 'supervisor'] as const
type Victim = (typeof VICTIMS)[number]

/** One part is killed, or one and after a while another. */
export type Strike = { victims: readonly Victim[]; gap_ms: number }

const GAP_MS_MAX = 1_500
/** Longest time after which an operator, or systemd, starts the platform again. */
const ABSENCE_MS_MAX = 500

/**
 * An endless sequence of strikes: single ones and pairs in turn. Six in a row hit every part at least once.
 */
export function* strikesOf(random: Random): Generator<Strike, never> {
  let singles: Victim[] = []
  let pairs: Victim[] = []
  for (;;) {
    if (singles.length === 0) singles = random.shuffle(VICTIMS)
    yield { victims: singles.splice(0, 1), gap_ms: 0 }
    if (pairs.length === 0) pairs = random.shuffle(VICTIMS)
    yield { victims: pairs.splice(0, 2), gap_ms: random.int(GAP_MS_MAX) }
  }
}

/** Kills them; a supervisor is started again. Resolves when the platform is whole again. */
export async function strike(platform: FaultyPlatform, { victims, gap_ms }: Strike, random: Random): Promise<void> {
  const heard = platform.started.output().length
  const killed: Victim[] = []
  for (const [index, victim] of victims.entries()) {
    if (index > 0) await sleep(gap_ms)
    if (kill(platform, victim)) killed.push(victim)
  }
  if (killed.includes('supervisor')) {
    await sleep(random.int(ABSENCE_MS_MAX))
    await platform.startAgain()
    return
  }
  await until(`${killed.join(' and ')} to be back`, () => {
    const said = platform.started.output().slice(heard)
    return killed.every((victim) => wentDown(said, victim)) && isWhole(said)
  })
}

/** Parts that ended though nothing killed them, by the supervisor's output since the fault. */
export function endedUnharmed(said: string, killed: readonly string[]): Victim[] {
  return VICTIMS.filter((part) => wentDown(said, part) && !killed.includes(part))
}

/** False: it has no process at the moment. */
function kill({ folder, started }: FaultyPlatform, victim: Victim): boolean {
  const pid =
    victim === 'supervisor' ? started.pid : victim === 'PostgreSQL' ? postmasterOf(folder) : roleOf(folder, victim)
  if (pid === undefined) return false
  try {
    process.kill(pid, 'SIGKILL')
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

function postmasterOf(folder: string): number | undefined {
  try {
    return Number(readFileSync(join(folder, 'postgres', 'postmaster.pid'), 'utf8').split('\n', 1)[0])
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Every part that ended is back. `said`: what the supervisor printed since the fault. */
export function isWhole(said: string): boolean {
  return VICTIMS.every((part) => {
    const down = said.lastIndexOf(downLine(said, part) ?? '\0')
    return down === -1 || said.indexOf(`${part} is back.`, down) !== -1
  })
}

function wentDown(said: string, part: Victim): boolean {
  return downLine(said, part) !== undefined
}

function downLine(said: string, part: Victim): string | undefined {
  return said.split('\n').findLast((line) => line.includes(` ${part} `) && line.includes('starting it again'))
}
