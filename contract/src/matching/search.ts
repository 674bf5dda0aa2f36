// Looks for a match that a candidate makes possible. The search is deterministic, and its cost has a bound: it gets at most
// CANDIDATES_MAX others, and gives up after BACKTRACKS_MAX dead ends.
import { type Candidate, isEarlier } from './candidate.ts'
import { type CandidateGroup, distance, groupOf, refusal, regionsOf, withMember } from './group.ts'
import type { MatchRules } from './rules.ts'
import { assignTeams } from './teams.ts'

/** Others that a search checks. */
export const CANDIDATES_MAX = 128
/** Groups that a search gives up before it ends without a match. */
const BACKTRACKS_MAX = 64
/** Candidates that a search begins with, those who have waited longest. */
const SEEDS_MAX = 8

/** `teams`: of each member, in their order. `regions`: where the match may run, the best first. */
export type Match = { members: readonly Candidate[]; teams: readonly (string | null)[]; regions: readonly string[] }

/** `refusals`: by what refused a candidate (group.ts), how many it refused. */
export type SearchCounts = { candidates: number; compatible_players: number; refusals: Map<number, number> }

/**
 * The match that has the anchor in it; null: there is none now. All groups without the anchor were checked before, when
 * their last member came. The seed is the candidate that has waited longest of those that the anchor may play with; others
 * join it by distance, then by age, then by id. `counts` is filled.
 */
export function findMatch(
  rules: MatchRules,
  anchor: Candidate,
  others: readonly Candidate[],
  now_ms: number,
  counts: SearchCounts = { candidates: 0, compatible_players: 0, refusals: new Map() },
): Match | null {
  const alone = groupOf(rules, anchor)
  const compatible: Candidate[] = []
  let player_count = anchor.player_count
  let oldest_ms = anchor.since_ms
  for (const other of others.slice(0, CANDIDATES_MAX)) {
    counts.candidates++
    const refused_by = refusal(rules, alone, other, now_ms)
    if (refused_by !== null) {
      counts.refusals.set(refused_by, (counts.refusals.get(refused_by) ?? 0) + 1)
      continue
    }
    compatible.push(other)
    player_count += other.player_count
    oldest_ms = Math.min(oldest_ms, other.since_ms)
  }
  counts.compatible_players = player_count
  const is_late = now_ms - oldest_ms >= rules.start_after_ms
  if (player_count < (is_late ? rules.players_min : rules.players_max)) return null
  const search = new Search(rules, now_ms)
  const seeds = [anchor, ...compatible].sort((a, b) => (isEarlier(a, b) ? -1 : 1)).slice(0, SEEDS_MAX)
  for (const seed of seeds) {
    const group = seed === anchor ? alone : withMember(rules, groupOf(rules, seed), anchor)
    const rest = search.nearest(
      seed,
      compatible.filter((other) => other !== seed),
    )
    const match = search.complete(group, rest, 0)
    if (match !== null || search.is_over) return match
  }
  return null
}

class Search {
  readonly #rules: MatchRules
  readonly #now_ms: number
  #dead_ends = 0

  constructor(rules: MatchRules, now_ms: number) {
    this.#rules = rules
    this.#now_ms = now_ms
  }

  get is_over(): boolean {
    return this.#dead_ends >= BACKTRACKS_MAX
  }

  nearest(seed: Candidate, others: readonly Candidate[]): Candidate[] {
    return others
      .map((other) => ({ other, away: distance(this.#rules, seed, other, this.#now_ms) }))
      .sort((a, b) => a.away - b.away || (isEarlier(a.other, b.other) ? -1 : 1))
      .map(({ other }) => other)
  }

  /** The group with members from `rest`, from that index on, until it is a match. */
  complete(group: CandidateGroup, rest: readonly Candidate[], from: number): Match | null {
    const { players_max, players_min, start_after_ms } = this.#rules
    if (group.player_count === players_max) return this.#ended(group)
    for (let index = from; index < rest.length; index++) {
      const candidate = rest[index]!
      if (refusal(this.#rules, group, candidate, this.#now_ms) !== null) continue
      const match = this.complete(withMember(this.#rules, group, candidate), rest, index + 1)
      if (match !== null || this.is_over) return match
    }
    const is_late = this.#now_ms - group.oldest_ms >= start_after_ms
    if (is_late && group.player_count >= players_min) return this.#ended(group)
    this.#dead_ends++
    return null
  }

  #ended(group: CandidateGroup): Match | null {
    const { members } = group
    const regions = regionsOf(this.#rules, group, this.#now_ms)
    const teams = this.#hasSums(group) && regions.length > 0 ? assignTeams(this.#rules, group, this.#now_ms) : null
    if (teams !== null) return { members, teams, regions }
    this.#dead_ends++
    return null
  }

  #hasSums({ states, youngest_ms }: CandidateGroup): boolean {
    const age_ms = this.#now_ms - youngest_ms
    return this.#rules.rules.every((rule, index) => {
      if (rule.kind !== 'sum' || rule.optional_ms <= age_ms) return true
      const state = states[index] ?? null
      return state !== null && 'sum' in state && state.sum >= rule.least
    })
  }
}
