// Which team each member of a match gets. Parties stay whole. The largest come first, each into the team with the most room;
// then members of equal size change places as long as that brings the averages of the teams closer.
import type { Candidate } from './candidate.ts'
import type { CandidateGroup } from './group.ts'
import { limitAt, type MatchRules, type TeamRule } from './rules.ts'

/** Exchanges of two members that are tried. */
const SWAPS_MAX = 200

type Side = { rule: TeamRule; members: Candidate[]; player_count: number }

/** A team's players that are there already, by name; for a lobby that has begun. */
export type TakenTeams = ReadonlyMap<string, { player_count: number; members: readonly Candidate[] }>

/** The team of each member, in their order; null: they fit into no teams. Without teams each has null. */
export function assignTeams(rules: MatchRules, group: CandidateGroup, now_ms: number): (string | null)[] | null {
  if (rules.teams.length === 0) return group.members.map(() => null)
  const sides = rules.teams.map((rule): Side => ({ rule, members: [], player_count: 0 }))
  const largest_first = group.members.toSorted((a, b) => b.player_count - a.player_count)
  for (const member of largest_first) {
    const side = roomiest(sides, member)
    if (side === null) return null
    enter(side, member)
  }
  if (sides.some(({ rule, player_count }) => player_count < rule.min)) return null
  const index = rules.rules.findIndex(({ kind }) => kind === 'balance')
  if (index !== -1) exchange(sides, index)
  if (!areFair(rules, sides, now_ms - group.youngest_ms)) return null
  return group.members.map((member) => sides.find(({ members }) => members.includes(member))!.rule.name)
}

/** The team of a lobby that has begun in which the candidate fits best; undefined: in none. Null: the lobby has no teams. */
export function teamIn(
  rules: MatchRules,
  taken: TakenTeams,
  candidate: Candidate,
  now_ms: number,
): string | null | undefined {
  if (rules.teams.length === 0) return null
  const sides = rules.teams.map((rule): Side => {
    const { members = [], player_count = 0 } = taken.get(rule.name) ?? {}
    return { rule, members: [...members], player_count }
  })
  const age_ms = now_ms - candidate.since_ms
  const by_room = sides
    .filter(({ rule, player_count }) => player_count + candidate.player_count <= rule.max)
    .toSorted((a, b) => roomOf(b) - roomOf(a))
  for (const side of by_room) {
    const others = sides.filter((one) => one !== side)
    const with_candidate = { ...side, members: [...side.members, candidate] }
    with_candidate.player_count += candidate.player_count
    // A lobby that a player has left is uneven already: a newcomer must not make it worse.
    if (areFair(rules, [with_candidate, ...others], age_ms) || isEvener(with_candidate, side, others)) {
      return side.rule.name
    }
  }
  return undefined
}

function roomiest(sides: readonly Side[], member: Candidate): Side | null {
  let best: Side | null = null
  for (const side of sides) {
    if (side.player_count + member.player_count > side.rule.max) continue
    if (best === null || roomOf(side) > roomOf(best)) best = side
  }
  return best
}

function roomOf({ rule, player_count }: Side): number {
  return rule.max - player_count
}

function enter(side: Side, member: Candidate): void {
  side.members.push(member)
  side.player_count += member.player_count
}

/** Exchanges members of equal size as long as that lowers the greatest difference of the averages. */
function exchange(sides: readonly Side[], index: number): void {
  let tried = 0
  let is_better = true
  while (is_better) {
    is_better = false
    for (const [one, other] of pairsOf(sides)) {
      for (let i = 0; i < one.members.length; i++) {
        for (let j = 0; j < other.members.length; j++) {
          const a = one.members[i]!
          const b = other.members[j]!
          if (a.player_count !== b.player_count) continue
          if (++tried > SWAPS_MAX) return
          const before = spreadOf(sides, index)
          one.members[i] = b
          other.members[j] = a
          if (spreadOf(sides, index) < before) is_better = true
          else {
            one.members[i] = a
            other.members[j] = b
          }
        }
      }
    }
  }
}

function pairsOf(sides: readonly Side[]): [Side, Side][] {
  return sides.flatMap((one, index) => sides.slice(index + 1).map((other): [Side, Side] => [one, other]))
}

function areFair(rules: MatchRules, sides: readonly Side[], age_ms: number): boolean {
  return rules.rules.every((rule, index) => {
    if (rule.optional_ms <= age_ms) return true
    if (rule.kind === 'balance') return spreadOf(sides, index) <= limitAt(rule.steps, age_ms)
    if (rule.kind !== 'even_teams') return true
    const counts = sides.map(({ player_count }) => player_count)
    return Math.max(...counts) - Math.min(...counts) <= limitAt(rule.steps, age_ms)
  })
}

/** Whether the side was the smallest, and is no larger than the largest of the others now. */
function isEvener(after: Side, before: Side, others: readonly Side[]): boolean {
  if (others.length === 0) return true
  const counts = others.map(({ player_count }) => player_count)
  return before.player_count < Math.max(...counts) && after.player_count <= Math.max(...counts)
}

/** The greatest difference of the teams' averages. Teams without a value do not count. */
function spreadOf(sides: readonly Side[], index: number): number {
  const averages = sides.flatMap(({ members }) => averageOf(members, index) ?? [])
  return averages.length < 2 ? 0 : Math.max(...averages) - Math.min(...averages)
}

function averageOf(members: readonly Candidate[], index: number): number | null {
  let sum = 0
  let player_count = 0
  for (const member of members) {
    const value = member.values[index]
    if (typeof value !== 'number') continue
    sum += value * member.player_count
    player_count += member.player_count
  }
  return player_count === 0 ? null : sum / player_count
}
