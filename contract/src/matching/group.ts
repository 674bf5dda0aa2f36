// A group of candidates that may become a match, and what its rules still admit. A group is a value: withMember() makes another one.
import { type Candidate, inBoth, type Latencies, type RuleValue } from './candidate.ts'
import { limitAt, type MatchRule, type MatchRules } from './rules.ts'

/** What the members together have for a rule. Null: no member has a value. */
type RuleState =
  | null
  | { text: string }
  | { low: number; high: number }
  | { texts: ReadonlySet<string> }
  | { sum: number }
  | { worst: Latencies }

export type CandidateGroup = {
  members: readonly Candidate[]
  player_count: number
  /** When the first and the last member came. */
  oldest_ms: number
  youngest_ms: number
  /** By rule: when the last member came that has a value for it. */
  youngest_by_rule: readonly number[]
  states: readonly RuleState[]
  /** Regions that all members accept, in the order of the first member. */
  regions: readonly string[]
  /** The members play already. What sets them apart is accepted, and a newcomer is compared with each of them. */
  has_begun: boolean
}

/** What refused a candidate: the index of a rule, or one of these. */
export const REFUSED_BY_REGION = -1
export const REFUSED_BY_SIZE = -2

export function groupOf(rules: MatchRules, first: Candidate, has_begun = false): CandidateGroup {
  return {
    members: [first],
    player_count: first.player_count,
    oldest_ms: first.since_ms,
    youngest_ms: first.since_ms,
    youngest_by_rule: youngest(rules, null, first),
    states: rules.rules.map((rule, index) => joined(rule, null, first, index, first.regions)),
    regions: first.regions,
    has_begun,
  }
}

/** The group with one more member, which refusal() admits. */
export function withMember(rules: MatchRules, group: CandidateGroup, candidate: Candidate): CandidateGroup {
  const regions = group.regions.filter((region) => candidate.regions.includes(region))
  return {
    members: [...group.members, candidate],
    player_count: group.player_count + candidate.player_count,
    oldest_ms: Math.min(group.oldest_ms, candidate.since_ms),
    youngest_ms: Math.max(group.youngest_ms, candidate.since_ms),
    youngest_by_rule: youngest(rules, group, candidate),
    states: rules.rules.map((rule, index) => joined(rule, group.states[index]!, candidate, index, regions)),
    regions,
    has_begun: group.has_begun,
  }
}

/**
 * Why the candidate may not join the group now; null: it may. A limit follows the member who has waited least of those with
 * a value, so that it is the same from all sides and in every order.
 */
export function refusal(rules: MatchRules, group: CandidateGroup, candidate: Candidate, now_ms: number): number | null {
  if (group.player_count + candidate.player_count > rules.players_max) return REFUSED_BY_SIZE
  if (!group.regions.some((region) => candidate.regions.includes(region))) return REFUSED_BY_REGION
  for (let index = 0; index < rules.rules.length; index++) {
    const rule = rules.rules[index]!
    if (!concerns(rule, candidate, index)) continue
    const age_ms = now_ms - Math.max(group.youngest_by_rule[index]!, candidate.since_ms)
    if (rule.optional_ms <= age_ms) continue
    if (!admits(rule, group, group.states[index]!, candidate, candidate.values[index]!, age_ms)) return index
  }
  return null
}

/** How far the candidate is from another one: 0 for equal values, 1 at the limit of each rule, by weight. */
export function distance(rules: MatchRules, from: Candidate, to: Candidate, now_ms: number): number {
  const age_ms = now_ms - Math.max(from.since_ms, to.since_ms)
  let sum = 0
  for (let index = 0; index < rules.rules.length; index++) {
    const rule = rules.rules[index]!
    if (rule.weight === 0) continue
    sum += rule.weight * ruleDistance(rule, from, to, index, age_ms)
  }
  return sum
}

/** The regions in which a `ping` rule admits the group, the one with the least worst latency first. */
export function regionsOf(rules: MatchRules, group: CandidateGroup, now_ms: number): string[] {
  const index = rules.rules.findIndex((rule) => rule.kind === 'ping')
  const rule = rules.rules[index]
  const state = group.states[index] ?? null
  if (rule?.kind !== 'ping' || state === null || !('worst' in state)) return [...group.regions]
  const { worst } = state
  const age_ms = now_ms - group.youngest_ms
  const limit = rule.optional_ms <= age_ms ? Number.POSITIVE_INFINITY : limitAt(rule.steps, age_ms)
  return group.regions
    .filter((region) => (worst[region] ?? 0) <= limit)
    .toSorted((a, b) => (worst[a] ?? 0) - (worst[b] ?? 0))
}

/** A candidate without a value for the rule matches any other. */
function concerns({ kind }: MatchRule, { values }: Candidate, index: number): boolean {
  return kind === 'ping' || kind === 'sum' || (values[index] ?? null) !== null
}

function youngest({ rules }: MatchRules, group: CandidateGroup | null, candidate: Candidate): number[] {
  return rules.map((rule, index) => {
    const before = group?.youngest_by_rule[index] ?? Number.NEGATIVE_INFINITY
    return concerns(rule, candidate, index) ? Math.max(before, candidate.since_ms) : before
  })
}

function admits(
  rule: MatchRule,
  group: CandidateGroup,
  state: RuleState,
  candidate: Candidate,
  value: RuleValue,
  age_ms: number,
): boolean {
  switch (rule.kind) {
    case 'same':
      return state === null || value === null || !('text' in state) || state.text === value
    case 'near': {
      if (state === null || !('low' in state) || typeof value !== 'number') return true
      const { low, high } = state
      const spread = group.has_begun
        ? Math.max(high - value, value - low)
        : Math.max(high, value) - Math.min(low, value)
      return spread <= limitAt(rule.steps, age_ms)
    }
    case 'share': {
      if (state === null || !('texts' in state) || !(value instanceof Set)) return true
      return inBoth(state.texts, value).size >= limitAt(rule.steps, age_ms)
    }
    case 'sum':
      return (state !== null && 'sum' in state ? state.sum : 0) + (typeof value === 'number' ? value : 0) <= rule.most
    case 'ping':
      return canReach(group, state, candidate, limitAt(rule.steps, age_ms))
    case 'balance':
    case 'even_teams':
      // These need the teams: see teams.ts.
      return true
  }
}

function canReach({ regions }: CandidateGroup, state: RuleState, candidate: Candidate, limit: number): boolean {
  const worst = state !== null && 'worst' in state ? state.worst : {}
  return regions.some(
    (region) =>
      candidate.regions.includes(region) &&
      (worst[region] ?? 0) <= limit &&
      (candidate.latencies?.[region] ?? 0) <= limit,
  )
}

function joined(
  rule: MatchRule,
  state: RuleState,
  candidate: Candidate,
  index: number,
  regions: readonly string[],
): RuleState {
  const value = candidate.values[index] ?? null
  switch (rule.kind) {
    case 'same':
      return state ?? (typeof value === 'string' ? { text: value } : null)
    case 'near':
      if (typeof value !== 'number') return state
      if (state === null || !('low' in state)) return { low: value, high: value }
      return { low: Math.min(state.low, value), high: Math.max(state.high, value) }
    case 'share': {
      if (!(value instanceof Set)) return state
      return { texts: state === null || !('texts' in state) ? value : inBoth(state.texts, value) }
    }
    case 'sum':
      return { sum: (state !== null && 'sum' in state ? state.sum : 0) + (typeof value === 'number' ? value : 0) }
    case 'ping': {
      const worst = state !== null && 'worst' in state ? state.worst : {}
      const latencies = candidate.latencies ?? {}
      return {
        worst: Object.fromEntries(
          regions.map((region) => [region, Math.max(worst[region] ?? 0, latencies[region] ?? 0)]),
        ),
      }
    }
    case 'balance':
    case 'even_teams':
      return null
  }
}

/** A missing value is as far as the limit: it comes last. */
function ruleDistance(rule: MatchRule, from: Candidate, to: Candidate, index: number, age_ms: number): number {
  const a = from.values[index] ?? null
  const b = to.values[index] ?? null
  switch (rule.kind) {
    case 'same':
      return a !== null && a === b ? 0 : 1
    case 'near': {
      if (typeof a !== 'number' || typeof b !== 'number') return 1
      return Math.abs(a - b) / Math.max(limitAt(rule.steps, age_ms), Number.EPSILON)
    }
    case 'share': {
      if (!(a instanceof Set) || !(b instanceof Set)) return 1
      return 1 - inBoth(a, b).size / Math.max(1, Math.min(a.size, b.size))
    }
    case 'ping': {
      const limit = Math.max(limitAt(rule.steps, age_ms), 1)
      const both = from.regions.filter((region) => to.regions.includes(region))
      const worst = both.map((region) => Math.max(from.latencies?.[region] ?? limit, to.latencies?.[region] ?? limit))
      return worst.length === 0 ? 1 : Math.min(...worst) / limit
    }
    case 'sum':
    case 'balance':
    case 'even_teams':
      return 0
  }
}
