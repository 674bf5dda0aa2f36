// A book in which requests wait for matches by rules, driven without a platform: time is set, and every change is kept so that
// it can be undone or applied to another book.
import assert from 'node:assert/strict'
import type { Attributes, MatchingConfig } from '@musterhost/contract'
import { type MatchRules, matchRulesOf } from '@musterhost/contract/matching'
import type { Change } from '../../../src/journal/changes.ts'
import type { Decision, Env, Undo } from '../../../src/matchmaker/book/commands.ts'
import * as decide from '../../../src/matchmaker/book/decide.ts'
import { apply } from '../../../src/matchmaker/book/evolve.ts'
import { advanceMatching, findWithRules, type MatchOrWait } from '../../../src/matchmaker/book/matching/find-match.ts'
import type { TicketCall } from '../../../src/matchmaker/book/matching/ticket.ts'
import { Book } from '../../../src/matchmaker/book/state.ts'
import { at, findRequest, idOf, lobbyPlan, PLACE, START_MS } from '../plain-requests.ts'

const MAX_PLAYERS = 10

export type Asking = {
  attributes?: Attributes
  key?: string | null
  identity_id?: string | null
  client_key?: string
  has_party?: boolean
  regions?: readonly string[]
  latencies?: Readonly<Record<string, number>>
}

/** A request that was made: its ticket or player has this id. */
export type Asked = { id: string; call: TicketCall; key: string | null }

export class QueueWorld {
  readonly rules: MatchRules
  readonly #max_players: number
  readonly changes: Change[] = []
  readonly undos: Undo[] = []
  /** Called after the changes of each command. */
  onCommand?: (changes: readonly Change[]) => void
  book = new Book()
  now_ms = START_MS
  #last_id = 0

  constructor(config: MatchingConfig, max_players = MAX_PLAYERS) {
    this.rules = matchRulesOf(config, max_players)
    this.#max_players = max_players
  }

  newId(): string {
    return idOf(++this.#last_id)
  }

  decide<T>(decision: Decision<T>): T {
    assert.ok('changes' in decision, `refused: ${JSON.stringify(decision)}`)
    this.apply(decision.changes)
    return decision.result
  }

  apply(changes: readonly Change[]): void {
    for (const change of changes) {
      this.undos.push(apply(this.book, change))
      this.changes.push(change)
    }
    this.onCommand?.(changes)
  }

  /** Asks for a seat. A repetition has the same key. */
  find(asking: Asking = {}): { asked: Asked; result: MatchOrWait } {
    const { call, decision } = this.#ask(asking, at(this.now_ms))
    const result = this.decide(decision)
    const id = 'seat' in result ? result.seat.player_id : result.ticket_id
    return { asked: { id, call, key: asking.key ?? null }, result }
  }

  tryFind(asking: Asking, env: Env): Decision<MatchOrWait> {
    return this.#ask(asking, env).decision
  }

  #ask(asking: Asking, env: Env): { call: TicketCall; decision: Decision<MatchOrWait> } {
    const { attributes = {}, key = null, identity_id = null, client_key = '192.0.2.1', has_party = false } = asking
    const { regions = ['local'], latencies = null } = asking
    const plan = lobbyPlan({
      max_players_normal: this.#max_players,
      max_players_direct: this.#max_players,
      max_players_party: this.#max_players,
    })
    const plans = regions.map((region) => ({ ...plan, region }))
    const call = { terms: { rules: this.rules, plans, lobby_count_max: 1_000_000, lobby_id: this.newId() } }
    const player_id = this.newId()
    const member_ids = has_party ? Array.from({ length: 31 }, () => this.newId()) : []
    const request = {
      ...findRequest({ keys: [PLACE], plan, client_key, identity_id, seat_key: key }),
      ...{ call, regions, latencies, attributesOf: () => attributes },
      party: has_party ? { playersMaxOf: () => 1_000_000 } : null,
    }
    const ids = { player_id, lobby_id: call.terms.lobby_id, member_ids }
    return { call, decision: findWithRules(this.book, request, ids, env) }
  }

  /** Lets time pass, and makes what it makes possible. */
  pass(ms: number): void {
    this.now_ms += ms
    this.settle()
  }

  settle(): void {
    for (let change = decide.expire(this.book, this.now_ms); change !== null; ) {
      this.apply([change])
      change = decide.expire(this.book, this.now_ms)
    }
    for (let changes = advanceMatching(this.book, at(this.now_ms)); changes !== null; ) {
      this.apply(changes)
      changes = advanceMatching(this.book, at(this.now_ms))
    }
  }

  hangUp({ id, call }: Asked): void {
    this.book.matching.detach(id, call, this.now_ms, true)
  }

  return({ id, call }: Asked): void {
    this.book.matching.detach(id, call, this.now_ms, false)
  }

  lobbyOf({ id }: Asked): string | null {
    const player = this.book.players.get(id)
    return player === undefined || player.remove_ms !== null ? null : player.lobby_id
  }

  teamOf({ id }: Asked): string | null {
    return this.book.players.get(id)?.match?.team ?? null
  }

  isWaiting({ id }: Asked): boolean {
    return this.book.matching.get(id) !== undefined
  }
}
