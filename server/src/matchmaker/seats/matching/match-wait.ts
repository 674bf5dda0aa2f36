// Says what a request waits for: to its caller, and to developers who ask for an explanation. It says nothing about other
// players but how many there are.
import type { ErrorMetadata, MatchWait } from '@musterhost/contract'
import {
  limitAt,
  type MatchRule,
  type MatchRules,
  REFUSED_BY_REGION,
  REFUSED_BY_SIZE,
} from '@musterhost/contract/matching'
import type { QueueProgress } from '../../book/matching/find-match.ts'

export function matchWaitOf({ rules }: MatchRules, progress: QueueProgress, usual_wait_ms: number | null): MatchWait {
  const { waited_ms, players_waiting, players_missing, counts } = progress
  const by_count = [...counts.refusals].sort(([, a], [, b]) => b - a)
  return {
    waited_ms,
    ...(usual_wait_ms !== null && { usual_wait_ms }),
    players_waiting,
    players_missing,
    candidates: counts.candidates,
    refused_by: by_count.map(([index, candidates]) => ({ ...ruleAt(rules, index, waited_ms), candidates })),
  }
}

/** The metadata of MATCHMAKER_WAITING. */
export function waitingMetadata({ candidates, ...match_wait }: MatchWait): ErrorMetadata {
  return { reason: 'waiting', ...match_wait }
}

export function ruleName(rule: MatchRule): string {
  return 'attribute' in rule ? `${rule.kind} ${rule.attribute}` : rule.kind
}

function ruleAt(
  rules: MatchRules['rules'],
  index: number,
  waited_ms: number,
): Omit<MatchWait['refused_by'][number], 'candidates'> {
  if (index === REFUSED_BY_REGION) return { rule: 'regions' }
  if (index === REFUSED_BY_SIZE) return { rule: 'size' }
  const rule = rules[index]!
  const name = { rule: ruleName(rule) }
  if (!('steps' in rule)) return name
  const next = rule.steps.find(([after_ms]) => after_ms > waited_ms)
  return {
    ...name,
    limit: limitAt(rule.steps, waited_ms),
    ...(next !== undefined && { widens_in_ms: next[0] - waited_ms }),
  }
}
