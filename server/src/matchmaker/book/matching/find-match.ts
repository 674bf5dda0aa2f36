// The commands of matching: a find in a game mode with rules, and what time does to those who wait. A match is made in the
// command that completes it. All its seats, and the lobby that it starts, are changes of one command.

import {
  type Candidate,
  findMatch,
  type Match,
  refusal,
  type SearchCounts,
  teamIn,
} from '@musterhost/contract/matching'
import type {
  Change,
  LobbyRecord,
  PlayerAttributes,
  PlayerMatch,
  TicketEnd,
  TicketRecord,
} from '../../../journal/changes.ts'
import type { Decision, Env, FindRequest, FreshIds, Granted, Refused, SeatTaken } from '../commands.ts'
import type { Lobby } from '../lobby.ts'
import { type Entrant, entrantsOf, grant, plannedLobby, refuse, refuseDraining, reserveSeats } from '../placement.ts'
import { takenSeats } from '../rules.ts'
import type { Book } from '../state.ts'
import { PLACE_MS, TICKETS_MAX } from './matching.ts'
import type { Ticket, TicketCall } from './ticket.ts'

/** Lobbies with free seats that one ticket is compared with. */
const OPEN_LOBBIES_MAX = 16
/** Tickets and lobbies that one call of advanceMatching() checks. */
const CHECKED_MAX = 256

/** A find in a game mode with rules. `attributesOf`: those of a member of the party, or of the caller (null). */
export type MatchRequest = FindRequest & {
  call: TicketCall
  attributesOf: (identity_id: string | null) => PlayerAttributes
  regions: readonly string[]
  latencies: Readonly<Record<string, number>> | null
}

/** `ticket_id`: the request waits under this id. */
export type MatchOrWait = { seat: SeatTaken } | { ticket_id: string }

/** A seat in an open lobby whose players fit, else in a match that the request completes, else a ticket that waits. */
export function findWithRules(book: Book, request: MatchRequest, ids: FreshIds, env: Env): Decision<MatchOrWait> {
  const before = book.seatOf(request.seat_key, env.now_ms)
  if (before !== null) return grant({ seat: before })
  const known = book.matching.get(ids.player_id) ?? book.matching.ofKey(request.seat_key)
  if (known !== undefined) {
    book.matching.attach(known.player_id, request.call, env.now_ms)
    return seatOrWait(book, known, env)
  }
  const entrants = entrantsOf(book, request, ids)
  if ('refused' in entrants) return entrants
  if (book.isDraining(request.keys)) return refuseDraining(book)
  const { players_max } = request.call.terms.rules
  if (entrants.length > players_max) return refuse('MATCHMAKER_PARTY_TOO_LARGE')
  if (book.matching.size >= TICKETS_MAX) return refuse('API_NOT_AVAILABLE')
  return enter(book, request, ticketOf(request, entrants, env.now_ms), env)
}

/** The next changes that time or a free seat makes; null: none. To be called again until it returns null. */
export function advanceMatching(book: Book, env: Env): readonly Change[] | null {
  const { matching } = book
  for (let checked = 0; checked < CHECKED_MAX; checked++) {
    const lobby = matching.takeVacant()
    if (lobby !== undefined) {
      const changes = fillLobby(book, lobby, env.now_ms)
      if (changes !== null) return changes
      continue
    }
    const ticket = matching.nextDue(env.now_ms)
    if (ticket === undefined) return null
    const changes = lookAgain(book, ticket, env)
    if (changes !== null) return changes
  }
  return null
}

/** What a ticket waits for, at this moment. `players_missing`: until the match begins at once. */
export type QueueProgress = {
  waited_ms: number
  players_waiting: number
  players_missing: number
  counts: SearchCounts
  next_step_ms: number | null
}

export function progressOf(book: Book, player_id: string, now_ms: number): QueueProgress | null {
  const ticket = book.matching.get(player_id)
  const queue = ticket && book.matching.queue(ticket)
  if (ticket?.candidate == null || queue === undefined) return null
  const counts: SearchCounts = { candidates: 0, compatible_players: 0, refusals: new Map() }
  findMatch(queue.rules, ticket.candidate, candidatesNear(book, ticket, ticket.candidate, now_ms), now_ms, counts)
  queue.countBeyondLimit(ticket.candidate, now_ms, counts.refusals)
  return {
    waited_ms: now_ms - ticket.create_ms,
    players_waiting: queue.player_count,
    players_missing: Math.max(0, queue.rules.players_max - counts.compatible_players),
    counts,
    next_step_ms: Number.isFinite(ticket.due_ms) ? Math.max(0, ticket.due_ms - now_ms) : null,
  }
}

function ticketOf(request: MatchRequest, entrants: readonly Entrant[], now_ms: number): TicketRecord {
  const key = request.keys[0]!
  return {
    player_id: entrants[0]!.player_id,
    version_id: key.version_id,
    game_mode: key.game_mode,
    tags: Object.fromEntries(request.tags),
    create_ms: now_ms,
    seat_key: request.seat_key,
    is_party: request.party !== null,
    players: entrants.map(({ player_id, client_key, players_max, identity_id }) => ({
      player_id,
      client: client_key,
      players_max,
      identity_id,
      attributes: request.attributesOf(identity_id),
    })),
    regions: request.regions,
    latencies: request.latencies,
  }
}

/** The ticket is not put yet: with a seat at once it never is. */
function enter(book: Book, request: MatchRequest, record: TicketRecord, env: Env): Decision<MatchOrWait> {
  const undo = book.matching.put(record, true)
  let found: Granted<SeatTaken> | Refused | null
  try {
    book.matching.attach(record.player_id, request.call, env.now_ms)
    found = seatFor(book, book.matching.get(record.player_id)!, env)
  } finally {
    undo()
  }
  if (found !== null && 'refused' in found) return found
  if (found !== null) return { changes: found.changes, result: { seat: found.result } }
  if (request.plan === null) return refuse('MATCHMAKER_NO_AVAILABLE_LOBBIES')
  return grant({ ticket_id: record.player_id }, { kind: 'ticket_put', ticket: record })
}

function seatOrWait(book: Book, ticket: Ticket, env: Env): Decision<MatchOrWait> {
  const found = seatFor(book, ticket, env)
  if (found === null) return grant({ ticket_id: ticket.player_id })
  if ('refused' in found) return found
  return { changes: found.changes, result: { seat: found.result } }
}

function lookAgain(book: Book, ticket: Ticket, env: Env): readonly Change[] | null {
  const { now_ms } = env
  if (hasEndedVersion(book, ticket)) return [ended(ticket, now_ms, 'version_ended')]
  if (hasChangedParty(book, ticket)) return [ended(ticket, now_ms, 'party_changed')]
  if (ticket.calls.size > 0) {
    book.matching.schedule(ticket, now_ms)
    const found = seatFor(book, ticket, env)
    // A refusal concerns the platform's room. The ticket waits on, and is matched by the next that comes or widens.
    return found === null || 'refused' in found ? null : found.changes
  }
  if (Number.isFinite(ticket.due_ms)) return [ended(ticket, now_ms, 'withdrawn')]
  // The book was just read: the calls of its tickets have PLACE_MS to come again.
  book.matching.postpone(ticket, now_ms + PLACE_MS)
  return null
}

/** Seats for a ticket in an open lobby or in a match; null: it waits. */
function seatFor(book: Book, ticket: Ticket, env: Env): Granted<SeatTaken> | Refused | null {
  const { candidate, terms } = ticket
  if (candidate === null || terms === null || hasEndedVersion(book, ticket)) return null
  if (hasChangedParty(book, ticket)) return null
  const open = terms.rules.fills_open_lobbies ? openLobbyFor(book, ticket, candidate, env.now_ms) : null
  if (open !== null) {
    const seats = seatsOf(book, open.lobby, [{ ticket, team: open.team }], env.now_ms)
    return { changes: seats, result: takenBy(ticket, open.lobby) }
  }
  const others = candidatesNear(book, ticket, candidate, env.now_ms)
  const match = findMatch(terms.rules, candidate, others, env.now_ms)
  return match === null ? null : begin(book, ticket, match, env)
}

/** Other tickets that a search checks. */
function candidatesNear(book: Book, ticket: Ticket, candidate: Candidate, now_ms: number): Candidate[] {
  const near = book.matching.queue(ticket)?.nearest(candidate, now_ms) ?? []
  return near.filter((other) => !hasChangedParty(book, other)).map((other) => other.candidate)
}

/** Begins the match in an idle lobby, else in a new one, in the best region with room. */
function begin(book: Book, ticket: Ticket, match: Match, env: Env): Granted<SeatTaken> | Refused {
  const found = lobbyFor(book, ticket, match, env)
  if ('refused' in found) return found
  const { lobby, is_new } = found
  const members = match.members.map(({ id }, index) => ({
    ticket: book.matching.get(id)!,
    team: match.teams[index] ?? null,
  }))
  const created: Change[] = is_new ? [{ kind: 'lobby_created', lobby }] : []
  return { changes: [...created, ...seatsOf(book, lobby, members, env.now_ms)], result: takenBy(ticket, lobby) }
}

function lobbyFor(
  book: Book,
  { terms, version_id, game_mode, tags }: Ticket,
  { regions }: Match,
  env: Env,
): { lobby: LobbyRecord; is_new: boolean } | Refused {
  let refused: Refused = refuse('MATCHMAKER_NO_AVAILABLE_LOBBIES')
  for (const region of regions) {
    const idle = book.idle.emptyLobby({ version_id, region, game_mode })
    if (idle !== undefined && isFor(idle, tags)) return { lobby: idle, is_new: false }
    const plan = terms!.plans.find((one) => one.region === region)
    if (plan === undefined) continue
    const record = plannedLobby(book, plan, terms!.lobby_count_max, terms!.lobby_id, env)
    if (!('refused' in record)) return { lobby: record, is_new: true }
    refused = record
  }
  return refused
}

/** An idle lobby that was started ahead has no tags. */
function isFor({ tags: of_lobby }: Lobby, tags: Ticket['tags']): boolean {
  return Object.keys(of_lobby).length === 0 && Object.keys(tags).length === 0
}

/** The fullest open lobby whose players fit, and the team. */
function openLobbyFor(
  book: Book,
  ticket: Ticket,
  candidate: Candidate,
  now_ms: number,
): { lobby: Lobby; team: string | null } | null {
  const lobbies = [...(book.matching.openLobbies(ticket) ?? [])]
  if (lobbies.length > 1) lobbies.sort((a, b) => takenSeats(b) - takenSeats(a) || (a.lobby_id < b.lobby_id ? -1 : 1))
  for (const lobby of lobbies.slice(0, OPEN_LOBBIES_MAX)) {
    const team = teamFor(book, ticket, candidate, lobby, now_ms)
    if (team !== undefined) return { lobby, team }
  }
  return null
}

/** Undefined: the ticket does not fit into the lobby. */
function teamFor(
  book: Book,
  { terms }: Ticket,
  candidate: Candidate,
  lobby: Lobby,
  now_ms: number,
): string | null | undefined {
  const { rules } = terms!
  const seats_max = Math.min(rules.players_max, lobby.max_players_normal)
  if (takenSeats(lobby) + candidate.player_count > seats_max) return undefined
  const group = book.matching.groupOf(rules, lobby)
  if (refusal(rules, group, candidate, now_ms) !== null) return undefined
  if (rules.teams.length === 0) return null
  const taken = new Map<string, { player_count: number; members: Candidate[] }>()
  for (const member of group.members) {
    const team = lobby.players.get(member.id)?.match?.team ?? null
    if (team === null) continue
    const side = taken.get(team) ?? { player_count: 0, members: [] }
    taken.set(team, side)
    side.player_count += member.player_count
    side.members.push(member)
  }
  return teamIn(rules, taken, candidate, now_ms)
}

/** A lobby has a free seat: the ticket that has waited longest and fits gets it. */
function fillLobby(book: Book, lobby: Lobby, now_ms: number): readonly Change[] | null {
  const queue = book.matching.queue(lobby)
  if (queue === undefined || !queue.rules.fills_open_lobbies || book.isDraining([lobby])) return null
  const [like] = book.matching.groupOf(queue.rules, lobby).members
  const near = queue.nearest({ ...like!, id: '' }, now_ms)
  for (const ticket of near.sort((a, b) => a.create_ms - b.create_ms || (a.player_id < b.player_id ? -1 : 1))) {
    if (hasChangedParty(book, ticket)) continue
    const team = teamFor(book, ticket, ticket.candidate, lobby, now_ms)
    if (team !== undefined) return seatsOf(book, lobby, [{ ticket, team }], now_ms)
  }
  return null
}

/** Ends the tickets and gives their players their seats. */
function seatsOf(
  book: Book,
  lobby: LobbyRecord,
  members: readonly { ticket: Ticket; team: string | null }[],
  now_ms: number,
): Change[] {
  const is_ready = (book.lobbies.get(lobby.lobby_id)?.ready_ms ?? null) !== null
  const ends = members.flatMap(({ ticket }) => (ticket.is_provisional ? [] : [ended(ticket, now_ms, 'matched')]))
  const seats = members.flatMap(({ ticket, team }) => {
    const { seat_key, terms, latencies, players, is_party, player_id: ticket_id } = ticket
    const request = {
      client_key: players[0]!.client,
      seat_key,
      client_players_max: players[0]!.players_max,
      lobby_count_max: terms!.lobby_count_max,
      identity_id: players[0]!.identity_id,
      is_spectator: false,
      party: is_party ? { playersMaxOf: () => players[0]!.players_max } : null,
    }
    const entrants = players.map(
      ({ player_id, client, players_max, identity_id }): Entrant => ({
        ...{ player_id, client_key: client, players_max, identity_id, member: null },
      }),
    )
    const { changes } = reserveSeats(book, lobby, is_ready, request, entrants, now_ms)
    return changes.map((change): Change => {
      if (change.kind !== 'player_reserved') return change
      const { attributes } = players.find(({ player_id }) => player_id === change.player.player_id)!
      const match: PlayerMatch = { ticket_id, team, attributes, latencies }
      return { ...change, player: { ...change.player, match } }
    })
  })
  return [...ends, ...seats]
}

function takenBy(ticket: Ticket, lobby: LobbyRecord): SeatTaken {
  const is_ready = 'ready_ms' in lobby && lobby.ready_ms !== null
  return { lobby_id: lobby.lobby_id, player_id: ticket.player_id, is_ready }
}

function hasEndedVersion(book: Book, ticket: Ticket): boolean {
  return ticket.is_outdated || book.isDraining([ticket])
}

/** A party that has other members now is not the one that asked. */
function hasChangedParty(book: Book, { is_party, players }: TicketRecord): boolean {
  if (!is_party) return false
  const party = book.parties.ofMember(players[0]!.identity_id!)
  if (party === undefined || party.members.length !== players.length) return true
  return !players.every(({ identity_id }) => party.members.some((member) => member.identity_id === identity_id))
}

function ended({ player_id }: Ticket, ms: number, reason: TicketEnd): Change {
  return { kind: 'ticket_ended', player_id, ms, reason }
}
