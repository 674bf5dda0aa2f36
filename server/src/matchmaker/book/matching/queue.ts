// The tickets of one queue that can be matched, arranged so that the nearest others of a ticket are found without a scan. Tickets
// with other texts for the `same` rules that never become optional cannot meet, so each combination of texts has a list of its
// own. A list is in the order of the first `near` rule, and of age without one.
import { CANDIDATES_MAX, type Candidate, isEarlier, limitAt, type MatchRules } from '@musterhost/contract/matching'
import { createSorted, type Sorted } from '../sorted.ts'
import type { Ticket } from './ticket.ts'

/** A ticket that can be matched. */
export type MatchableTicket = Ticket & { candidate: Candidate }

/** `near`: tickets with a number for the first `near` rule. `others`: without one, by age. */
type Lane = { near: Sorted<MatchableTicket>; others: Sorted<MatchableTicket> }

export class Queue {
  readonly rules: MatchRules
  readonly #same: readonly number[]
  readonly #near: number
  readonly #lanes = new Map<string, Lane>()
  /** Lanes of tickets that lack a text. */
  readonly #open_lanes = new Set<Lane>()
  #size = 0
  #player_count = 0

  constructor(rules: MatchRules) {
    this.rules = rules
    this.#same = rules.rules.flatMap((rule, index) =>
      rule.kind === 'same' && rule.optional_ms === Number.POSITIVE_INFINITY ? [index] : [],
    )
    this.#near = rules.rules.findIndex(({ kind }) => kind === 'near')
  }

  get size(): number {
    return this.#size
  }

  get player_count(): number {
    return this.#player_count
  }

  add(ticket: MatchableTicket): void {
    const text = this.#textOf(ticket.candidate)
    let lane = this.#lanes.get(text)
    if (lane === undefined) {
      lane = { near: createSorted((a, b) => this.#isNearBefore(a, b)), others: createSorted(isOlder) }
      this.#lanes.set(text, lane)
      if (this.#lacksText(ticket.candidate)) this.#open_lanes.add(lane)
    }
    this.#listOf(lane, ticket).add(ticket)
    this.#size++
    this.#player_count += ticket.players.length
  }

  remove(ticket: MatchableTicket): void {
    const text = this.#textOf(ticket.candidate)
    const lane = this.#lanes.get(text)
    if (lane === undefined) return
    this.#listOf(lane, ticket).remove(ticket)
    if (lane.near.size() + lane.others.size() === 0) {
      this.#lanes.delete(text)
      this.#open_lanes.delete(lane)
    }
    this.#size--
    this.#player_count -= ticket.players.length
  }

  /** Others that the candidate may be matched with: at most CANDIDATES_MAX, the nearest first. */
  nearest(candidate: Candidate, now_ms: number): MatchableTicket[] {
    const found: MatchableTicket[] = []
    for (const lane of this.#lanesFor(candidate)) {
      this.#addNearest(lane, candidate, now_ms, found)
      for (let index = 0; index < lane.others.size() && found.length < CANDIDATES_MAX; index++) {
        const other = lane.others.at(index)!
        if (other.candidate !== candidate) found.push(other)
      }
      if (found.length >= CANDIDATES_MAX) break
    }
    return found
  }

  /** Adds to the refusals those beyond the limit of the first `near` rule, which nearest() leaves out. */
  countBeyondLimit(candidate: Candidate, now_ms: number, refusals: Map<number, number>): void {
    const value = this.#numberOf(candidate)
    const limit = this.#limitOf(candidate, now_ms)
    if (value === null || limit === Number.POSITIVE_INFINITY) return
    let count = 0
    for (const { near } of this.#lanesFor(candidate)) {
      const below = near.countBefore((other) => this.#numberOf(other.candidate)! < value - limit)
      const reached = near.countBefore((other) => this.#numberOf(other.candidate)! <= value + limit)
      count += near.size() - (reached - below)
    }
    if (count > 0) refusals.set(this.#near, (refusals.get(this.#near) ?? 0) + count)
  }

  /** The lane of its texts, and those of tickets that lack a text. A ticket that lacks one meets other lanes as well. */
  *#lanesFor(candidate: Candidate): Iterable<Lane> {
    const own = this.#lanes.get(this.#textOf(candidate))
    if (own !== undefined) yield own
    let checked = 0
    for (const lane of this.#lacksText(candidate) ? this.#lanes.values() : this.#open_lanes) {
      if (++checked > CANDIDATES_MAX) return
      if (lane !== own && this.#mayMeet(lane, candidate)) yield lane
    }
  }

  #lacksText({ values }: Candidate): boolean {
    return this.#same.some((index) => (values[index] ?? null) === null)
  }

  /** All tickets of a lane have the same texts. */
  #mayMeet({ near, others }: Lane, candidate: Candidate): boolean {
    const { values } = (near.at(0) ?? others.at(0)!).candidate
    return this.#same.every((index) => {
      const a = values[index] ?? null
      const b = candidate.values[index] ?? null
      return a === null || b === null || a === b
    })
  }

  /** Walks to both sides from the candidate's number, as far as its own limit reaches. */
  #addNearest({ near }: Lane, candidate: Candidate, now_ms: number, found: MatchableTicket[]): void {
    const value = this.#numberOf(candidate)
    let up = value === null ? 0 : near.countBefore((other) => this.#numberOf(other.candidate)! < value)
    let down = up - 1
    const limit = this.#limitOf(candidate, now_ms)
    while (found.length < CANDIDATES_MAX) {
      const above = near.at(up)
      const below = down < 0 ? undefined : near.at(down)
      if (above === undefined && below === undefined) return
      const next = isCloser(this.#awayFrom(value, above), this.#awayFrom(value, below)) ? above! : below!
      if (this.#awayFrom(value, next) > limit) return
      if (next === above) up++
      else down--
      if (next.candidate !== candidate) found.push(next)
    }
  }

  #awayFrom(value: number | null, ticket: MatchableTicket | undefined): number {
    if (ticket === undefined) return Number.POSITIVE_INFINITY
    return value === null ? 0 : Math.abs(this.#numberOf(ticket.candidate)! - value)
  }

  /** The limit of two follows the younger one, so it is at most that of the candidate. */
  #limitOf({ since_ms }: Candidate, now_ms: number): number {
    const rule = this.rules.rules[this.#near]
    if (rule?.kind !== 'near' || rule.optional_ms <= now_ms - since_ms) return Number.POSITIVE_INFINITY
    return limitAt(rule.steps, now_ms - since_ms)
  }

  #listOf(lane: Lane, { candidate }: MatchableTicket): Sorted<MatchableTicket> {
    return this.#numberOf(candidate) === null ? lane.others : lane.near
  }

  #numberOf({ values }: Candidate): number | null {
    const value = values[this.#near]
    return typeof value === 'number' ? value : null
  }

  #textOf({ values }: Candidate): string {
    return this.#same.length === 0 ? '' : JSON.stringify(this.#same.map((index) => values[index] ?? null))
  }

  #isNearBefore(a: MatchableTicket, b: MatchableTicket): boolean {
    const difference = this.#numberOf(a.candidate)! - this.#numberOf(b.candidate)!
    return difference === 0 ? isOlder(a, b) : difference < 0
  }
}

function isOlder(a: MatchableTicket, b: MatchableTicket): boolean {
  return isEarlier(a.candidate, b.candidate)
}

/** Equal distances: the one above first, so that the order is the same after every start. */
function isCloser(a: number, b: number): boolean {
  return a <= b && a !== Number.POSITIVE_INFINITY
}
