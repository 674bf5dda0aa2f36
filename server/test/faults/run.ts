// The frame of every kind of fault: starts a platform with a history of its load, plays the rounds, stops the platform and
// runs `muster verify`.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../support/until.ts'
import { type Checked, checkPlatform, verify } from './checks/check.ts'
import { JournalLaws } from './checks/laws.ts'
import { type Counts, History } from './history.ts'
import { endedUnharmed } from './kill.ts'
import type { Load } from './load/load.ts'
import { FaultyPlatform, type FaultyPlatformOptions, PROD_LIMITS } from './platform.ts'
import { firstFind } from './probe.ts'
import { createRandom, type Random } from './random.ts'
import type { Round } from './report.ts'

/** Rounds between two runs of `muster verify` beside the running platform. */
const VERIFY_EVERY_ROUNDS = 10
/** The level of a line that a role logs before it ends because of a fault. */
const FATAL = '"level":60'
/** Operations that are acknowledged after the platform is whole again. */
const AFTER_ACKNOWLEDGED = 50

export type Run = Checked & { random: Random }
export type RunOptions = { rounds: number; seed: number }
export type RunResult = { rounds: Round[]; history: History; findings: string[]; journal_row_count: number }

/** The effect of a fault, for the round's line of the report. */
export type Harm = Pick<Round, 'what' | 'whole_after_ms'> & {
  /** Parts that the fault may have ended. */
  may_end: readonly string[]
  /** Undoes what is left of the fault after the first find, and before the checks. */
  restore?: () => Promise<void>
  /** Called after the first find: the moments between the fault and that find. */
  note?: () => Promise<string>
}

/** Starts the platform, runs `play`, and kills every remaining process at the end. */
export async function withRun(
  options: FaultyPlatformOptions & { seed: number },
  play: (run: Run) => Promise<RunResult>,
): Promise<RunResult> {
  const platform = await FaultyPlatform.start(options)
  try {
    const laws = new JournalLaws(new Map([[platform.game.namespaces.prod, PROD_LIMITS]]))
    return await play({ platform, history: new History(), laws, random: createRandom(options.seed) })
  } finally {
    await platform.close()
  }
}

/** Plays rounds of one load. `harm` resolves when nothing is broken any more. `onRound` is called after each round. */
export async function playRounds(
  run: Run,
  load: Load,
  { rounds: round_count }: RunOptions,
  harm: () => Promise<Harm>,
  onRound: (number: number, round: Round) => void,
): Promise<RunResult> {
  const { platform, history, laws } = run
  const rounds: Round[] = []
  const findings: string[] = []
  const known = new Set<string>()
  for (let number = 1; number <= round_count; number++) {
    const round = await playRound(run, load, harm).catch((error: unknown) => {
      load.abandon()
      throw error
    })
    if (number % VERIFY_EVERY_ROUNDS === 1) round.findings.push(...(await verify(platform)))
    // A finding repeats in later rounds. It belongs to the round in which it was found first.
    round.findings = round.findings.filter((finding) => !known.has(finding))
    for (const finding of round.findings) known.add(finding)
    rounds.push(round)
    findings.push(...round.findings.map((finding) => `round ${number}: ${finding}`))
    onRound(number, round)
  }
  await platform.stop()
  findings.push(...(await verify(platform)).map((finding) => `stopped: ${finding}`))
  return { rounds, history, findings, journal_row_count: laws.row_count }
}

async function playRound(run: Run, load: Load, harm: () => Promise<Harm>): Promise<Round> {
  const { platform, history } = run
  const before = { ...history.counts }
  load.resume()
  const find_before_ms = await durationOf(() => firstFind(platform))
  const started = platform.started
  const output_length = started.output().length
  const { may_end, restore, note, ...harmed } = await harm()
  const find_after_ms = await durationOf(() => firstFind(platform))
  const steps = await note?.()
  await acknowledge(history, AFTER_ACKNOWLEDGED)
  await restore?.()
  await load.pause()
  const findings = [...(await checkPlatform(run))]
  if (platform.started === started) {
    const output = started.output().slice(output_length)
    for (const part of endedUnharmed(output, may_end)) {
      findings.push(`${part} ended though nothing killed it:\n${output}${lastFault(platform.folder, part)}`)
    }
  }
  return { ...harmed, steps, find_before_ms, find_after_ms, counts: difference(history.counts, before), findings }
}

/** Waits until `count` more operations were acknowledged. */
export function acknowledge(history: History, count: number): Promise<unknown> {
  const enough = history.counts.acknowledged + count
  return until(`${count} more operations to be acknowledged`, () => history.counts.acknowledged >= enough)
}

/** Waits a random time: for the length of a fault, or the moment of its beginning. */
export function randomWhile(random: Random, ms_max: number): Promise<void> {
  return sleep(random.int(ms_max))
}

/** What a role logged as the reason of its end. */
function lastFault(folder: string, part: string): string {
  const path = join(folder, 'logs', `${part}.log`)
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
  return lines.findLast((line) => line.includes(FATAL)) ?? 'its log has no fatal line'
}

async function durationOf(work: () => Promise<unknown>): Promise<number> {
  const begin_ms = performance.now()
  await work()
  return performance.now() - begin_ms
}

function difference(now: Readonly<Counts>, before: Readonly<Counts>): Counts {
  return {
    acknowledged: now.acknowledged - before.acknowledged,
    refused: now.refused - before.refused,
    unknown: now.unknown - before.unknown,
  }
}
