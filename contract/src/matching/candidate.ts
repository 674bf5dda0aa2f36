// A request that waits for a match, as the search sees it: a player or a whole party, with one value for each rule.
import type { Attributes, AttributeValue } from '../matching-config.ts'
import type { MatchRule, MatchRules } from './rules.ts'

/** Milliseconds by region; a region that is missing was not measured. */
export type Latencies = Readonly<Record<string, number>>

/** The value with which a candidate counts for a rule. Null: it has none, and matches any other. */
export type RuleValue = number | string | ReadonlySet<string> | null

export type Candidate = {
  /** Decides between equals, so that a search is the same after every start. */
  id: string
  since_ms: number
  player_count: number
  /** By rule, in their order. */
  values: readonly RuleValue[]
  /** Acceptable regions, the best first. */
  regions: readonly string[]
  latencies: Latencies | null
}

/** The values of a party, whose members come in order with the leader first, or of a single player. */
export function valuesOf(rules: MatchRules, members: readonly Attributes[]): RuleValue[] {
  return rules.rules.map((rule) => ruleValue(rule, members, rules.defaults))
}

function ruleValue(rule: MatchRule, members: readonly Attributes[], defaults: Attributes): RuleValue {
  if (rule.kind === 'ping' || rule.kind === 'even_teams') return null
  const of_members = members.map((attributes) => attributes[rule.attribute] ?? defaults[rule.attribute] ?? null)
  switch (rule.kind) {
    case 'same':
      return textOf(of_members[0] ?? null)
    case 'near':
      return partyNumber(numbersOf(of_members), rule.party)
    case 'balance':
      return partyNumber(numbersOf(of_members), 'average')
    case 'sum':
      return numbersOf(of_members).reduce((sum, number) => sum + number, 0)
    case 'share':
      return commonOf(of_members)
  }
}

function textOf(value: AttributeValue | null): string | null {
  if (value === null) return null
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function numbersOf(values: readonly (AttributeValue | null)[]): number[] {
  return values.filter((value): value is number => typeof value === 'number')
}

function partyNumber(numbers: readonly number[], party: 'average' | 'least' | 'greatest'): number | null {
  if (numbers.length === 0) return null
  if (party === 'least') return Math.min(...numbers)
  if (party === 'greatest') return Math.max(...numbers)
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length
}

/** The texts that all members have who have any. */
function commonOf(values: readonly (AttributeValue | null)[]): ReadonlySet<string> | null {
  let common: ReadonlySet<string> | null = null
  for (const value of values) {
    if (value === null || typeof value === 'number') continue
    common = common === null ? new Set(typeof value === 'string' ? [value] : value) : inBoth(common, value)
  }
  return common
}

/** The texts of `value` that `texts` has too. */
export function inBoth(texts: ReadonlySet<string>, value: AttributeValue | ReadonlySet<string>): ReadonlySet<string> {
  if (typeof value === 'number') return new Set()
  const others = typeof value === 'string' ? [value] : value
  return new Set([...others].filter((text) => texts.has(text)))
}

/** Before in the order of waiting: the older, among equals the lower id. */
export function isEarlier(a: Candidate, b: Candidate): boolean {
  return a.since_ms === b.since_ms ? a.id < b.id : a.since_ms < b.since_ms
}
