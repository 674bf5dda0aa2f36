// The tickets of a namespace: requests that wait for a match by the rules of their game mode, and the lobbies that such players
// may still enter. put() and end() make a change true and return how to undo it. All else is in memory only: which calls
// wait, and when a ticket is checked again.
//
// A ticket is kept while a call waits for it. After a call has returned without a match, the same call may come again within
// PLACE_MS: until then the ticket is still matched. After a hang-up, and after a start of this process, the ticket keeps its age
// for PLACE_MS and is not matched, so that no match waits for a player who is gone.
import {
  type Candidate,
  type CandidateGroup,
  groupOf,
  type MatchRules,
  nextStep,
  valuesOf,
  withMember,
} from '@musterhost/contract/matching'
import type { TicketEnd, TicketRecord } from '../../../journal/changes.ts'
import type { Undo } from '../commands.ts'
import { createHeap } from '../heap.ts'
import type { Lobby, Player } from '../lobby.ts'
import { isOpen } from '../rules.ts'
import { type MatchableTicket, Queue } from './queue.ts'
import { queueOf, type Ticket, type TicketCall } from './ticket.ts'

/** Tickets of a namespace, about 2 kB each. */
export const TICKETS_MAX = 50_000
/** How long a ticket waits for its call to come again. */
export const PLACE_MS = 15_000
/** Tickets without a match whose end is remembered. The one that ended first is forgotten first. */
const ENDS_MAX = 1_000

export class Matching {
  readonly #countClient: (client_key: string, sign: 1 | -1) => void
  readonly #tickets = new Map<string, Ticket>()
  readonly #by_key = new Map<string, Ticket>()
  /** In the order of their ends. */
  readonly #ended = new Map<string, Ticket>()
  /** Tickets of parties, by the identity of the leader. */
  readonly #by_leader = new Map<string, Ticket>()
  /** Tickets that are put, by the identities of their players, the newest last. */
  readonly #by_identity = new Map<string, Ticket[]>()
  readonly #ends = new Map<string, TicketEnd>()
  /** Calls that wait, by ticket; from before their ticket is put. */
  readonly #calls = new Map<string, Set<TicketCall>>()
  readonly #queues = new Map<string, Queue>()
  readonly #due = createHeap<Ticket>((a, b) => a.due_ms < b.due_ms)
  /** Lobbies of matched players with free seats, by queue. */
  readonly #open_lobbies = new Map<string, Set<Lobby>>()
  /** Lobbies that tickets have not been compared with since a seat became free. */
  readonly #vacant = new Set<Lobby>()
  readonly #groups = new WeakMap<Lobby, CandidateGroup>()
  #is_used = false

  constructor(countClient: (client_key: string, sign: 1 | -1) => void) {
    this.#countClient = countClient
  }

  /** Tickets that wait, and those that have just ended. */
  get size(): number {
    return this.#tickets.size + this.#ended.size
  }

  /** Whether a game mode of this namespace has rules, as far as the book has seen. */
  get is_used(): boolean {
    return this.#is_used
  }

  /** A player has come by rules. */
  use(): void {
    this.#is_used = true
  }

  get(player_id: string): Ticket | undefined {
    return this.#tickets.get(player_id)
  }

  ofKey(seat_key: string | null): Ticket | undefined {
    return seat_key === null ? undefined : this.#by_key.get(seat_key)
  }

  /** The newest ticket of this identity, or of the leader of its party. */
  ofIdentity(identity_id: string): Ticket | undefined {
    return this.#by_identity.get(identity_id)?.at(-1)
  }

  all(): Iterable<Ticket> {
    return this.#tickets.values()
  }

  /** The tickets that can be matched with each other; undefined: none can. */
  queue(of: Pick<TicketRecord, 'version_id' | 'game_mode' | 'tags'>): Queue | undefined {
    return this.#queues.get(queueOf(of))
  }

  /** `is_provisional`: to find out whether there is a match, and undone at once. */
  put(record: TicketRecord, is_provisional = false): Undo {
    this.#is_used = true
    const calls = this.#calls.get(record.player_id) ?? new Set()
    const in_memory = { calls, terms: null, candidate: null, due_ms: 0, is_provisional, is_outdated: false, end: null }
    const ticket: Ticket = { ...record, ...in_memory }
    this.#add(ticket)
    return () => this.#remove(ticket)
  }

  end(player_id: string, ms: number, reason: TicketEnd): Undo {
    const ticket = this.#tickets.get(player_id)
    if (ticket === undefined) throw new Error(`the book has no ticket ${player_id}`)
    this.#remove(ticket)
    ticket.end = { ms, reason }
    this.#ended.set(player_id, ticket)
    return () => {
      ticket.end = null
      this.#ended.delete(player_id)
      this.#add(ticket)
    }
  }

  /** A ticket that has ended, until forget(). */
  ended(player_id: string): Ticket | undefined {
    return this.#ended.get(player_id)
  }

  /** Why a ticket has ended, as far as it is remembered. */
  endOf(player_id: string): TicketEnd | undefined {
    return this.#ended.get(player_id)?.end?.reason ?? this.#ends.get(player_id)
  }

  /** `durable_ms`: changes until then cannot be undone any more. */
  forget(durable_ms: number): void {
    for (const [player_id, { end }] of this.#ended) {
      if (end!.ms > durable_ms) return
      this.#ended.delete(player_id)
      // A match is remembered by its seats.
      if (end!.reason === 'matched') continue
      this.#ends.set(player_id, end!.reason)
      if (this.#ends.size > ENDS_MAX) this.#ends.delete(this.#ends.keys().next().value!)
    }
  }

  load(records: readonly TicketRecord[]): void {
    for (const record of records) this.put(record)
  }

  /** A call waits for the ticket, which need not be put yet. A repetition of attach() has no effect. */
  attach(player_id: string, call: TicketCall, now_ms: number): void {
    const ticket = this.#tickets.get(player_id)
    const calls = this.#calls.get(player_id) ?? ticket?.calls ?? new Set()
    this.#calls.set(player_id, calls.add(call))
    if (ticket === undefined) return
    ticket.calls = calls
    if (ticket.candidate === null) this.#begin(ticket)
    this.schedule(ticket, now_ms)
  }

  /** The call has returned, or its caller has hung up. */
  detach(player_id: string, call: TicketCall, now_ms: number, has_hung_up: boolean): void {
    const calls = this.#calls.get(player_id)
    calls?.delete(call)
    if (calls === undefined || calls.size > 0) return
    this.#calls.delete(player_id)
    const ticket = this.#tickets.get(player_id)
    if (ticket === undefined) return
    if (has_hung_up) this.#pause(ticket)
    this.postpone(ticket, now_ms + PLACE_MS)
  }

  /** When tickets must be checked; infinity: never. */
  dueMs(): number {
    if (this.#vacant.size > 0) return Number.NEGATIVE_INFINITY
    return this.#due.peek()?.due_ms ?? Number.POSITIVE_INFINITY
  }

  /** The next ticket that is due. */
  nextDue(now_ms: number): Ticket | undefined {
    const next = this.#due.peek()
    return next !== undefined && next.due_ms <= now_ms ? next : undefined
  }

  /** Sets when the ticket is checked again: when one of its limits widens. */
  schedule(ticket: Ticket, now_ms: number): void {
    if (ticket.calls.size === 0) return
    const step_ms = ticket.terms === null ? null : nextStep(ticket.terms.rules, now_ms - ticket.create_ms)
    ticket.due_ms = step_ms === null ? Number.POSITIVE_INFINITY : ticket.create_ms + step_ms
    this.#due.put(ticket)
  }

  /** The ticket is checked again at that time. */
  postpone(ticket: Ticket, due_ms: number): void {
    ticket.due_ms = due_ms
    this.#due.put(ticket)
  }

  /** A version is drained: all tickets are checked again. */
  wakeAll(): void {
    for (const ticket of this.#tickets.values()) this.postpone(ticket, Number.NEGATIVE_INFINITY)
  }

  /** Other versions are deployed or rolled out: tickets for outdated ones end. */
  outdate(isOutdated: (version_id: string) => boolean): void {
    for (const ticket of this.#tickets.values()) {
      if (!isOutdated(ticket.version_id)) continue
      ticket.is_outdated = true
      this.postpone(ticket, Number.NEGATIVE_INFINITY)
    }
  }

  /** The party of these identities has changed. */
  wakeParty(identity_ids: Iterable<string>): void {
    for (const identity_id of identity_ids) {
      const ticket = this.#by_leader.get(identity_id)
      if (ticket !== undefined) this.postpone(ticket, Number.NEGATIVE_INFINITY)
    }
  }

  /** To be called after any change of a lobby's seats or openness. */
  arrange(lobby: Lobby): void {
    this.#groups.delete(lobby)
    const key = queueOf(lobby)
    const lobbies = this.#open_lobbies.get(key)
    if (!isOpen(lobby) || !hasMatch(lobby)) {
      this.#vacant.delete(lobby)
      if (lobbies?.delete(lobby) && lobbies.size === 0) this.#open_lobbies.delete(key)
      return
    }
    if (lobbies === undefined) this.#open_lobbies.set(key, new Set([lobby]))
    else lobbies.add(lobby)
    if (this.#queues.has(key)) this.#vacant.add(lobby)
  }

  remove(lobby: Lobby): void {
    const lobbies = this.#open_lobbies.get(queueOf(lobby))
    if (lobbies?.delete(lobby) && lobbies.size === 0) this.#open_lobbies.delete(queueOf(lobby))
    this.#vacant.delete(lobby)
  }

  openLobbies(of: Pick<TicketRecord, 'version_id' | 'game_mode' | 'tags'>): ReadonlySet<Lobby> | undefined {
    return this.#open_lobbies.get(queueOf(of))
  }

  /** A lobby that has free seats since the last call. */
  takeVacant(): Lobby | undefined {
    const [lobby] = this.#vacant
    if (lobby !== undefined) this.#vacant.delete(lobby)
    return lobby
  }

  /** The players of a lobby as a group, which came before every ticket. */
  groupOf(rules: MatchRules, lobby: Lobby): CandidateGroup {
    const known = this.#groups.get(lobby)
    if (known !== undefined) return known
    let group: CandidateGroup | null = null
    for (const candidate of candidatesIn(rules, lobby)) {
      group = group === null ? groupOf(rules, candidate, true) : withMember(rules, group, candidate)
    }
    if (group === null) throw new Error(`the lobby ${lobby.lobby_id} has no matched players`)
    this.#groups.set(lobby, group)
    return group
  }

  #add(ticket: Ticket): void {
    this.#tickets.set(ticket.player_id, ticket)
    if (ticket.seat_key !== null) this.#by_key.set(ticket.seat_key, ticket)
    for (const { client } of ticket.players) this.#countClient(client, 1)
    const leader = leaderOf(ticket)
    if (leader !== null) this.#by_leader.set(leader, ticket)
    if (!ticket.is_provisional) this.#addIdentities(ticket)
    if (ticket.calls.size > 0) this.#begin(ticket)
    // A ticket without a call, which was read at a start, gets its time when it is checked first.
    this.postpone(ticket, ticket.calls.size > 0 ? ticket.create_ms : Number.NEGATIVE_INFINITY)
  }

  #remove(ticket: Ticket): void {
    this.#pause(ticket)
    this.#due.remove(ticket)
    this.#tickets.delete(ticket.player_id)
    if (ticket.seat_key !== null && this.#by_key.get(ticket.seat_key) === ticket) this.#by_key.delete(ticket.seat_key)
    for (const { client } of ticket.players) this.#countClient(client, -1)
    const leader = leaderOf(ticket)
    if (leader !== null && this.#by_leader.get(leader) === ticket) this.#by_leader.delete(leader)
    if (!ticket.is_provisional) this.#removeIdentities(ticket)
  }

  #addIdentities(ticket: Ticket): void {
    for (const { identity_id } of ticket.players) {
      if (identity_id === null) continue
      const tickets = this.#by_identity.get(identity_id)
      if (tickets === undefined) this.#by_identity.set(identity_id, [ticket])
      else tickets.push(ticket)
    }
  }

  #removeIdentities(ticket: Ticket): void {
    for (const { identity_id } of ticket.players) {
      const tickets = identity_id === null ? undefined : this.#by_identity.get(identity_id)
      if (tickets === undefined) continue
      tickets.splice(tickets.indexOf(ticket), 1)
      if (tickets.length === 0) this.#by_identity.delete(identity_id!)
    }
  }

  /** From now on the ticket can be matched. */
  #begin(ticket: Ticket): void {
    const [call] = ticket.calls
    if (call === undefined || ticket.candidate !== null) return
    ticket.terms = call.terms
    const { rules } = call.terms
    ticket.candidate = {
      id: ticket.player_id,
      since_ms: ticket.create_ms,
      player_count: ticket.players.length,
      values: valuesOf(
        rules,
        ticket.players.map(({ attributes }) => attributes),
      ),
      regions: ticket.regions,
      latencies: ticket.latencies,
    }
    const key = queueOf(ticket)
    let queue = this.#queues.get(key)
    if (queue === undefined) {
      queue = new Queue(rules)
      this.#queues.set(key, queue)
    }
    queue.add(ticket as MatchableTicket)
  }

  #pause(ticket: Ticket): void {
    if (ticket.candidate === null) return
    const key = queueOf(ticket)
    const queue = this.#queues.get(key)
    queue?.remove(ticket as MatchableTicket)
    if (queue?.size === 0) this.#queues.delete(key)
    ticket.candidate = null
    ticket.terms = null
  }
}

function leaderOf({ is_party, players }: Ticket): string | null {
  return is_party ? players[0]!.identity_id : null
}

function hasMatch({ players }: Lobby): boolean {
  for (const { match } of players.values()) if (match != null) return true
  return false
}

/**
 * Players of one ticket count together, as they did before. Players who came without rules have no values. A player with a seat
 * waits no more, so that the limits of the newcomer hold.
 */
function candidatesIn(rules: MatchRules, lobby: Lobby): Candidate[] {
  const by_ticket = Map.groupBy(lobby.players.values(), ({ match }) => match?.ticket_id)
  return [...by_ticket].flatMap(([ticket_id, players]) =>
    ticket_id === undefined ? [] : candidateIn(rules, lobby, players),
  )
}

function candidateIn(rules: MatchRules, lobby: Lobby, players: readonly Player[]): Candidate {
  const { player_id, match } = players[0]!
  return {
    id: player_id,
    since_ms: 0,
    player_count: players.length,
    values: valuesOf(
      rules,
      players.map((player) => player.match!.attributes),
    ),
    regions: [lobby.region],
    latencies: match!.latencies,
  }
}
