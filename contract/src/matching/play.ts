// Plays the arrivals of players against rules in simulated time. Each arrival and each widening of a limit is one search.
import type { Attributes, MatchingConfig } from '../matching-config.ts'
import { type Candidate, type Latencies, valuesOf } from './candidate.ts'
import { type MatchRules, matchRulesOf, nextStep } from './rules.ts'
import { findMatch, type Match } from './search.ts'

/** A player or a party that asks at `at_s`. Default: at once, without attributes. */
export type PlayedRequest = {
  at_s?: number
  attributes?: Attributes
  party?: readonly Attributes[]
  latencies_ms?: Latencies
}

/** Largest number of players of a lobby. */
const LOBBY_PLAYERS_MAX = 256
const MS_PER_S = 1_000

/** `requests`: indexes of the requests in the given order. `differences`: the greatest difference of each attribute of a `near` rule. */
export type PlayedMatch = {
  at_s: number
  requests: number[]
  player_count: number
  waits_s: number[]
  differences: Record<string, number>
}

type QueuedPlayers = { candidate: Candidate; step_ms: number }

export function playMatches(
  matching: MatchingConfig,
  players: readonly PlayedRequest[],
): { matches: PlayedMatch[]; waiting_count: number } {
  const rules = matchRulesOf(matching, LOBBY_PLAYERS_MAX)
  const arrivals = players
    .map((player, index) => candidateOf(rules, player, index))
    .sort((a, b) => a.since_ms - b.since_ms)
  const queue = new Map<string, QueuedPlayers>()
  const matches: PlayedMatch[] = []
  const search = (anchor: QueuedPlayers, now_ms: number): void => {
    const step_ms = nextStep(rules, now_ms - anchor.candidate.since_ms)
    anchor.step_ms = step_ms === null ? Number.POSITIVE_INFINITY : anchor.candidate.since_ms + step_ms
    const others = [...queue.values()].map(({ candidate }) => candidate).filter((other) => other !== anchor.candidate)
    const match = findMatch(rules, anchor.candidate, nearestFirst(rules, anchor.candidate, others), now_ms)
    if (match === null) return
    for (const { id } of match.members) queue.delete(id)
    matches.push(matchOf(rules, match, now_ms))
  }
  for (;;) {
    const due = earliest(queue)
    const next = arrivals[0]
    if (next !== undefined && next.since_ms <= (due?.step_ms ?? Number.POSITIVE_INFINITY)) {
      arrivals.shift()
      const anchor = { candidate: next, step_ms: Number.POSITIVE_INFINITY }
      queue.set(next.id, anchor)
      search(anchor, next.since_ms)
    } else if (due !== undefined && Number.isFinite(due.step_ms)) search(due, due.step_ms)
    else break
  }
  return { matches, waiting_count: [...queue.values()].reduce((sum, { candidate }) => sum + candidate.player_count, 0) }
}

function candidateOf(rules: MatchRules, player: PlayedRequest, index: number): Candidate {
  const members = player.party ?? [player.attributes ?? {}]
  const { latencies_ms } = player
  return {
    id: String(index).padStart(6, '0'),
    since_ms: Math.round((player.at_s ?? 0) * MS_PER_S),
    player_count: members.length,
    values: valuesOf(rules, members),
    regions: latencies_ms === undefined ? ['any'] : Object.keys(latencies_ms),
    latencies: latencies_ms ?? null,
  }
}

/** As the matchmaker's sorted list returns them: by the number of the first `near` rule. */
function nearestFirst({ rules }: MatchRules, anchor: Candidate, others: readonly Candidate[]): readonly Candidate[] {
  const index = rules.findIndex(({ kind }) => kind === 'near')
  const own = anchor.values[index]
  if (typeof own !== 'number') return others
  const away = ({ values }: Candidate): number => {
    const value = values[index]
    return typeof value === 'number' ? Math.abs(value - own) : Number.POSITIVE_INFINITY
  }
  return others.toSorted((a, b) => away(a) - away(b))
}

function earliest(queue: ReadonlyMap<string, QueuedPlayers>): QueuedPlayers | undefined {
  let first: QueuedPlayers | undefined
  for (const waiting of queue.values()) if (first === undefined || waiting.step_ms < first.step_ms) first = waiting
  return first
}

function matchOf({ rules }: MatchRules, { members }: Match, now_ms: number): PlayedMatch {
  const differences: Record<string, number> = {}
  for (const [index, rule] of rules.entries()) {
    if (rule.kind !== 'near') continue
    const numbers = members.map(({ values }) => values[index]).filter((value) => typeof value === 'number')
    if (numbers.length > 0) differences[rule.attribute] = Math.max(...numbers) - Math.min(...numbers)
  }
  return {
    at_s: now_ms / MS_PER_S,
    requests: members.map(({ id }) => Number(id)),
    player_count: members.reduce((sum, { player_count }) => sum + player_count, 0),
    waits_s: members.flatMap(({ since_ms, player_count }) =>
      Array.from({ length: player_count }, () => (now_ms - since_ms) / MS_PER_S),
    ),
    differences,
  }
}
