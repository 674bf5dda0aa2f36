// The output of a run: a line for each round, and at the end a table of times and a table of operations.
import type { Counts, History } from './history.ts'
import { RECOVERY_MS_MAX } from './probe.ts'

const REASONS_SHOWN_MAX = 6

export type Round = {
  what: string
  /** From the fault, or from its end, until every part worked again. */
  whole_after_ms: number
  /** Duration of a find before the fault, under the same load. */
  find_before_ms: number
  /** From the moment at which every part worked again until a find succeeded. */
  find_after_ms: number
  /** Moments between the fault and that find. */
  steps?: string | undefined
  counts: Counts
  findings: string[]
}

export function roundLine(number: number, round_count: number, round: Round): string {
  const { counts, findings } = round
  return [
    `round ${String(number).padStart(2)}/${round_count}`,
    round.what.padEnd(46),
    `${round.steps ?? `whole after ${seconds(round.whole_after_ms)}`}, find in ${seconds(round.find_after_ms)} (before: ${seconds(round.find_before_ms)})`,
    `${counts.acknowledged} acknowledged, ${counts.refused} refused, ${counts.unknown} unknown`,
    findings.length === 0 ? 'ok' : `${findings.length} WRONG`,
  ].join(' | ')
}

/** The median and the largest of each time. */
export function timeTable(rounds: readonly Round[]): string[] {
  const line = (name: string, values: readonly number[]): string => {
    const sorted = values.toSorted((a, b) => a - b)
    return `| ${name} | ${seconds(sorted[Math.floor(sorted.length / 2)]!)} | ${seconds(sorted.at(-1)!)} |`
  }
  return [
    '| | median | largest |',
    '|---|---|---|',
    line(
      'a find before the fault',
      rounds.map(({ find_before_ms }) => find_before_ms),
    ),
    line(
      'every part is there again',
      rounds.map(({ whole_after_ms }) => whole_after_ms),
    ),
    line(
      'and then a find',
      rounds.map(({ find_after_ms }) => find_after_ms),
    ),
  ]
}

export function operationTable(history: History): string[] {
  const lines = history.summary().map(({ kind, counts, reasons }) => {
    const shown = reasons.slice(0, REASONS_SHOWN_MAX).join(', ')
    return `| ${kind} | ${counts.acknowledged} | ${counts.refused} | ${counts.unknown} | ${shown} |`
  })
  const { acknowledged, refused, unknown } = history.counts
  return [
    '| operation | acknowledged | refused | unknown | refusals and unknown outcomes |',
    '|---|---|---|---|---|',
    ...lines,
    `| all | ${acknowledged} | ${refused} | ${unknown} | |`,
  ]
}

/** Rounds in which a find took longer than law L11 allows, beyond what it took before the fault. */
export function slowRounds(rounds: readonly Round[]): string[] {
  return rounds.flatMap(({ find_before_ms, find_after_ms }, index) =>
    find_after_ms <= RECOVERY_MS_MAX + find_before_ms
      ? []
      : [`L11: round ${index + 1}: a find took ${seconds(find_after_ms)}`],
  )
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}
