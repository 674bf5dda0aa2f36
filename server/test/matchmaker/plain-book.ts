// The book as one would write it who has all the time in the world: two lists, searched from end to end. Written from
// the decisions and not from book.ts, so that both are wrong together only where the words are.
import type { ErrorCode } from '@muster/contract'
import type { Change, RemoveReason, StopReason } from '../../src/journal/changes.ts'
import type { LobbyPlan } from '../../src/matchmaker/book/commands.ts'
import { VERSION } from './plain-requests.ts'

const TEN_MINUTES_MS = 600_000
const EIGHT_HOURS_MS = 28_800_000
const HALF_HOUR_MS = 1_800_000
const DAY_MS = 86_400_000

export type PlainLobby = {
  id: string
  plan: LobbyPlan
  created: number
  ready_by: number
  ready: number | null
  closed: boolean
  stalled: boolean
  state: string | null
  /** When it was last left, or made, without a player; or has stalled without one. */
  empty_since: number | null
  stopped: number | null
  why: StopReason | null
  /** Its server has told of a player. */
  told: boolean
  /** Connections that are open, as the edges say; and when the last one was closed. */
  open: number
  closed_since: number | null
  /** Seats that expired, and connections that were open when it was stopped. */
  expired_open: number
  stopped_open: number | null
}

export type PlainPlayer = {
  id: string
  lobby: string
  client: string
  who: string | null
  /** The player id of the leader of the party that this player came with. */
  leader: string | null
  created: number
  deadline: number
  key: string | null
  connected: number | null
  connect_key: string | null
  left: number | null
  why: RemoveReason | null
  leave_key: string | null
}

/** Somebody who has solved a captcha. */
export type PlainSolver = { client: string; solved: number; until: number; requests: number }

/** A place that is kept for a player who is being verified. */
export type PlainHold = {
  player: string
  client: string
  who: string | null
  lobby: string
  request: SeatRequest
  action: 'find' | 'join' | 'create'
  until: number
}
/** Members in the order in which they came. */
export type PlainParty = { id: string; code: string; leader: string; members: PlainMember[]; until: number }
export type PlainMember = { who: string; client: string }
/** A lobby that will be, if one of its holds becomes a seat. */
export type PlainPlan = { id: string; plan: LobbyPlan; made: number }

/** The version that is deployed, where that is known, and how many lobbies may stand idle in a place. */
export type PlainIdle = { version: string | null; max: number }

export type PlainBook = {
  lobbies: PlainLobby[]
  players: PlainPlayer[]
  solvers: PlainSolver[]
  /** Versions. */
  draining: string[]
  idle: PlainIdle
  holds: PlainHold[]
  /** All that ever were. */
  plans: PlainPlan[]
  /** Holds that have become seats which may still be undone. */
  seated: PlainHold[]
  parties: PlainParty[]
  /** The edges have reported all that was open until then. */
  reported: number
}

export function emptyBook(): PlainBook {
  return {
    lobbies: [],
    players: [],
    solvers: [],
    draining: [],
    idle: { version: null, max: 0 },
    holds: [],
    plans: [],
    seated: [],
    parties: [],
    reported: Number.NEGATIVE_INFINITY,
  }
}
export type Answer = { refused: ErrorCode } | { lobby: string; player: string; is_ready: boolean } | null

/** `member_max`: the limit of the other members of a party, each for their own client. */
export type SeatRequest = {
  client: string
  key: string | null
  client_max: number
  lobby_max: number
  who: string | null
  with_party: boolean
  member_max: number
}
type Ids = { lobby: string; player: string; members: readonly string[] }
type Comer = { player: string; client: string; max: number; who: string | null }

const refused = (code: ErrorCode): Answer => ({ refused: code })

export function seatsOf(book: PlainBook, lobby: string): PlainPlayer[] {
  return book.players.filter((player) => player.lobby === lobby && player.left === null)
}

function lobbyOf(book: PlainBook, id: string): PlainLobby | undefined {
  return book.lobbies.find((lobby) => lobby.id === id)
}

function playersOf(book: PlainBook, client: string): number {
  const holds = book.holds.filter((hold) => hold.client === client)
  return book.players.filter((player) => player.client === client && player.left === null).length + holds.length
}

function takenIn(book: PlainBook, lobby: string): number {
  return seatsOf(book, lobby).length + book.holds.filter((hold) => hold.lobby === lobby).length
}

/** Lobbies that are held and not there. */
export function plannedIn(book: PlainBook): PlainPlan[] {
  return book.plans.filter(
    (plan) => lobbyOf(book, plan.id) === undefined && book.holds.some((hold) => hold.lobby === plan.id),
  )
}

function lobbyCount(book: PlainBook): number {
  return book.lobbies.filter((lobby) => lobby.stopped === null).length + plannedIn(book).length
}

export function dueOf(book: PlainBook, of: PlainLobby | PlainPlayer): number {
  if ('lobby' in of) return of.left === null ? of.deadline : Number.POSITIVE_INFINITY
  if (of.stopped !== null) return Number.POSITIVE_INFINITY
  const idle = idleDueOf(book, of)
  return of.ready === null ? Math.min(of.ready_by, idle) : idle
}

/** It is empty, as far as can be known: a server that reports no players may have some who are only connected. */
const isEmpty = (book: PlainBook, lobby: PlainLobby): boolean =>
  lobby.stopped === null && seatsOf(book, lobby.id).length === 0 && (lobby.told || lobby.open === 0)
const isOutdated = (book: PlainBook): boolean => book.idle.version !== null && book.idle.version !== VERSION
const isEnding = (book: PlainBook): boolean => book.draining.includes(VERSION) || isOutdated(book)
const emptySince = ({ empty_since, closed_since, told }: PlainLobby): number =>
  told ? empty_since! : Math.max(empty_since!, closed_since ?? 0)
const graceEnd = (lobby: PlainLobby): number => emptySince(lobby) + lobby.plan.idle_grace_ms

/** Those that wait for players in the same place; none when the lobby is nobody's to find. */
function waitingBeside(book: PlainBook, { plan: { game_mode, region } }: PlainLobby): PlainLobby[] {
  return book.lobbies.filter(
    (lobby) =>
      isEmpty(book, lobby) &&
      lobby.plan.game_mode === game_mode &&
      lobby.plan.region === region &&
      !lobby.closed &&
      !lobby.stalled &&
      !lobby.plan.is_custom &&
      lobby.plan.publicity === 'public',
  )
}

/** When it is stopped for want of players, if nothing changes before: without reports of players, by a report only. */
function idleDueOf(book: PlainBook, lobby: PlainLobby): number {
  const due = emptyDueOf(book, lobby)
  return lobby.told || due <= book.reported ? due : Number.POSITIVE_INFINITY
}

function emptyDueOf(book: PlainBook, lobby: PlainLobby): number {
  if (!isEmpty(book, lobby)) return Number.POSITIVE_INFINITY
  if (isEnding(book)) return lobby.told ? 0 : emptySince(lobby)
  const waiting = waitingBeside(book, lobby)
  if (!waiting.includes(lobby)) return graceEnd(lobby)
  const is_first = waiting.every((other) => other.told !== lobby.told || graceEnd(other) >= graceEnd(lobby))
  return waiting.length > book.idle.max && is_first ? graceEnd(lobby) : Number.POSITIVE_INFINITY
}

/** What the edges say of a lobby's connections. */
export function setOpen(book: PlainBook, id: string, open: number, now: number): void {
  const lobby = lobbyOf(book, id)
  if (lobby === undefined || lobby.open === open) return
  lobby.open = open
  lobby.closed_since = open === 0 ? now : null
}

export function prepare(
  book: PlainBook,
  request: { plan: LobbyPlan; idle_min: number; lobby_max: number },
  id: string,
  now: number,
): Answer {
  const lobby = lobbyAfter(request.plan, id, now)
  const { plan } = request
  const counted = { ...lobby, plan: { ...plan, is_custom: false, publicity: 'public' as const } }
  if (isEnding(book) || waitingBeside(book, counted).length >= request.idle_min) return null
  if (lobbyCount(book) >= request.lobby_max) return refused('MATCHMAKER_TOO_MANY_LOBBIES')
  book.lobbies.push(lobby)
  return null
}

/** The answer that this key was given within the last ten minutes, or may be about to be given. */
function answered(book: PlainBook, key: string | null, now: number): Answer {
  const seat = key === null ? undefined : book.players.findLast((player) => player.key === key)
  if (seat === undefined || now > seat.created + TEN_MINUTES_MS) return null
  const ready = lobbyOf(book, seat.lobby)?.ready ?? null
  const was_answered = ready !== null && seat.why !== 'unanswered' && (seat.left === null || seat.left >= ready)
  return seat.left === null || was_answered ? { lobby: seat.lobby, player: seat.id, is_ready: ready !== null } : null
}

function placesOf(plan: LobbyPlan, party: number | null, alone: 'normal' | 'direct' = 'normal'): number {
  return party === null ? plan[`max_players_${alone}`] : plan.max_players_party
}

/** The players who would take seats: the caller, or their party, the caller first. */
function comersOf(book: PlainBook, request: SeatRequest, ids: Ids): Comer[] | { refused: ErrorCode } {
  const first = { player: ids.player, client: request.client, max: request.client_max, who: request.who }
  if (!request.with_party) return [first]
  const party = book.parties.find(({ members }) => members.some(({ who }) => who === request.who))
  if (party === undefined) return { refused: 'PARTY_NOT_FOUND' }
  if (party.leader !== request.who) return { refused: 'PARTY_LEADER_REQUIRED' }
  const others = party.members.filter(({ who }) => who !== request.who)
  return [first, ...others.map((one, index) => ({ ...one, player: ids.members[index]!, max: request.member_max }))]
}

function tooMany(book: PlainBook, comers: readonly Comer[], more: 0 | 1 = 1): boolean {
  return comers.some(({ client, max }, index) => {
    const before = comers.slice(0, index + 1).filter((one) => one.client === client).length
    return playersOf(book, client) + more * before > max
  })
}

const sizeOf = (request: SeatRequest, comers: readonly Comer[]): number | null =>
  request.with_party ? comers.length : null

/** The best of the lobbies that a find may enter. */
function bestOf(
  book: PlainBook,
  modes: readonly string[],
  regions: readonly string[],
  tags: Readonly<Record<string, string>>,
  party: number | null,
): PlainLobby | undefined {
  const free = (lobby: PlainLobby): number => placesOf(lobby.plan, party) - takenIn(book, lobby.id)
  return book.lobbies
    .filter((lobby) => lobby.stopped === null && !lobby.closed && !lobby.stalled)
    .filter((lobby) => lobby.plan.publicity === 'public')
    .filter((lobby) => modes.includes(lobby.plan.game_mode) && regions.includes(lobby.plan.region))
    .filter((lobby) => Object.entries(tags).every(([name, value]) => lobby.plan.tags[name] === value))
    .filter((lobby) => free(lobby) >= (party ?? 1))
    .sort((a, b) => free(a) - free(b) || a.created - b.created || (a.id < b.id ? -1 : 1))[0]
}

export type FindRequest = SeatRequest & {
  modes: string[]
  regions: string[]
  tags: Record<string, string>
  plan: LobbyPlan | null
}

export function find(book: PlainBook, request: FindRequest, ids: Ids, now: number): Answer {
  const before = answered(book, request.key, now)
  if (before !== null) return before
  const comers = comersOf(book, request, ids)
  if ('refused' in comers) return comers
  if (tooMany(book, comers)) return refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  if (request.modes.length > 0 && book.draining.includes(VERSION)) return refused('MATCHMAKER_VERSION_DRAINING')
  const best = bestOf(book, request.modes, request.regions, request.tags, sizeOf(request, comers))
  if (best !== undefined) return sit(book, best, request, comers, now)
  if (request.plan === null) return refused('MATCHMAKER_NO_AVAILABLE_LOBBIES')
  return open(book, request.plan, request, comers, ids, now)
}

export function join(book: PlainBook, request: SeatRequest & { lobby: string }, ids: Ids, now: number): Answer {
  const before = answered(book, request.key, now)
  if (before !== null) return before
  const lobby = lobbyOf(book, request.lobby)
  if (lobby === undefined) return refused('MATCHMAKER_LOBBY_NOT_FOUND')
  if (lobby.stopped !== null) return refused('MATCHMAKER_LOBBY_STOPPED')
  const comers = comersOf(book, request, ids)
  if ('refused' in comers) return comers
  if (tooMany(book, comers)) return refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  if (book.draining.includes(VERSION)) return refused('MATCHMAKER_VERSION_DRAINING')
  if (lobby.stalled) return refused('MATCHMAKER_LOBBY_CLOSED')
  const places = placesOf(lobby.plan, sizeOf(request, comers), 'direct')
  if (takenIn(book, lobby.id) + comers.length > places) return refused('MATCHMAKER_LOBBY_FULL')
  return sit(book, lobby, request, comers, now)
}

export function create(book: PlainBook, request: SeatRequest & { plan: LobbyPlan }, ids: Ids, now: number): Answer {
  const before = answered(book, request.key, now)
  if (before !== null) return before
  const comers = comersOf(book, request, ids)
  if ('refused' in comers) return comers
  if (tooMany(book, comers)) return refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  if (book.draining.includes(VERSION)) return refused('MATCHMAKER_VERSION_DRAINING')
  return open(book, request.plan, request, comers, ids, now)
}

function open(
  book: PlainBook,
  plan: LobbyPlan,
  request: SeatRequest,
  comers: readonly Comer[],
  ids: Ids,
  now: number,
): Answer {
  if (request.with_party && comers.length > plan.max_players_party) return refused('MATCHMAKER_PARTY_TOO_LARGE')
  if (lobbyCount(book) >= request.lobby_max) return refused('MATCHMAKER_TOO_MANY_LOBBIES')
  return make(book, plan, request, comers, ids.lobby, now)
}

function make(
  book: PlainBook,
  plan: LobbyPlan,
  request: SeatRequest,
  comers: readonly Comer[],
  id: string,
  now: number,
): Answer {
  const lobby = lobbyAfter(plan, id, now)
  book.lobbies.push(lobby)
  return sit(book, lobby, request, comers, now)
}

function lobbyAfter(plan: LobbyPlan, id: string, now: number): PlainLobby {
  return {
    id,
    plan,
    created: now,
    ready_by: now + plan.ready_within_ms,
    ready: null,
    closed: false,
    stalled: false,
    state: null,
    empty_since: now,
    stopped: null,
    why: null,
    told: false,
    open: 0,
    closed_since: null,
    expired_open: 0,
    stopped_open: null,
  }
}

function sit(book: PlainBook, lobby: PlainLobby, request: SeatRequest, comers: readonly Comer[], now: number): Answer {
  const first = comers[0]!.player
  for (const comer of comers) {
    const key = comer.player === first ? request.key : null
    seat(book, lobby, comer, { key, leader: request.with_party ? first : null }, now)
  }
  const party = request.with_party ? book.parties.find(({ leader }) => leader === request.who) : undefined
  if (party !== undefined && party.until - now <= DAY_MS / 2) party.until = now + DAY_MS
  return { lobby: lobby.id, player: first, is_ready: lobby.ready !== null }
}

function seat(
  book: PlainBook,
  lobby: PlainLobby,
  comer: Comer,
  { key, leader }: { key: string | null; leader: string | null },
  now: number,
): void {
  lobby.empty_since = null
  book.players.push({
    id: comer.player,
    lobby: lobby.id,
    client: comer.client,
    who: comer.who,
    leader,
    created: now,
    deadline: (lobby.ready === null ? Math.max(now, lobby.ready_by) : now) + lobby.plan.player_deadline_ms,
    key,
    connected: null,
    connect_key: null,
    left: null,
    why: null,
    leave_key: null,
  })
}

/** The fullest, then oldest, of the planned lobbies that a find may share. */
function bestPlanned(book: PlainBook, request: FindRequest, party: number | null): PlainPlan | undefined {
  const free = ({ id, plan }: PlainPlan): number => placesOf(plan, party) - takenIn(book, id)
  return plannedIn(book)
    .filter(({ plan }) => !plan.is_custom && plan.publicity === 'public')
    .filter(({ plan }) => request.modes.includes(plan.game_mode) && request.regions.includes(plan.region))
    .filter(({ plan }) => Object.entries(request.tags).every(([name, value]) => plan.tags[name] === value))
    .filter((plan) => free(plan) >= (party ?? 1))
    .sort((a, b) => free(a) - free(b) || a.made - b.made || (a.id < b.id ? -1 : 1))[0]
}

export type PlainAsked =
  | { action: 'find'; request: FindRequest; verified: ReadonlySet<string> }
  | { action: 'join'; request: SeatRequest & { lobby: string } }
  | { action: 'create'; request: SeatRequest & { plan: LobbyPlan } }

/** A seat is answered as ever; a hold by its lobby. */
export function hold(book: PlainBook, asked: PlainAsked, ids: Ids, now: number): Answer | { held: string } {
  const { action, request } = asked
  const before = answered(book, request.key, now)
  if (before !== null) return before
  const comers = comersOf(book, request, ids)
  const keep = (lobby: string): { held: string } => {
    for (const { player, client, who } of comers as Comer[]) {
      book.holds.push({ player, client, who, lobby, request, action, until: now + 10_000 })
    }
    return { held: lobby }
  }
  if (action === 'join') {
    const attempt = structuredClone(book)
    const answer = join(attempt, request, ids, now)
    return answer !== null && 'refused' in answer ? answer : keep(request.lobby)
  }
  if ('refused' in comers) return comers
  if (tooMany(book, comers)) return refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  if (book.draining.includes(VERSION)) return refused('MATCHMAKER_VERSION_DRAINING')
  const size = sizeOf(request, comers)
  if (action === 'find') {
    const best = bestOf(book, request.modes, request.regions, request.tags, size) ?? bestPlanned(book, request, size)
    const mode = (best?.plan ?? request.plan)?.game_mode
    if (mode === undefined) return refused('MATCHMAKER_NO_AVAILABLE_LOBBIES')
    if (!asked.verified.has(mode)) return find(book, request, ids, now)
    if (best !== undefined) return keep(best.id)
  }
  if (size !== null && size > request.plan!.max_players_party) return refused('MATCHMAKER_PARTY_TOO_LARGE')
  if (lobbyCount(book) >= request.lobby_max) return refused('MATCHMAKER_TOO_MANY_LOBBIES')
  book.plans.push({ id: ids.lobby, plan: request.plan!, made: now })
  return keep(ids.lobby)
}

export function seatHeld(book: PlainBook, ids: Omit<Ids, 'lobby'>, request: SeatRequest, now: number): Answer {
  const before = answered(book, request.key, now)
  if (before !== null) return before
  const found = book.holds.find((one) => one.player === ids.player)
  if (found === undefined) return null
  const comers = comersOf(book, request, { ...ids, lobby: found.lobby })
  // The party must be the one that was held.
  const held = book.holds.filter((one) => one.player === ids.player || ids.members.includes(one.player))
  if ('refused' in comers || held.length !== comers.length) return null
  if (held.some((one) => request.with_party && comers.find(({ player }) => player === one.player)?.who !== one.who))
    return null
  const lobby = lobbyOf(book, found.lobby)
  const plan = book.plans.find((one) => one.id === found.lobby)
  if (lobby !== undefined && (lobby.stopped !== null || (found.action === 'find' && (lobby.closed || lobby.stalled))))
    return null
  if (tooMany(book, comers, 0)) return refused('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  if (book.draining.includes(VERSION)) return refused('MATCHMAKER_VERSION_DRAINING')
  if (lobby?.stalled) return refused('MATCHMAKER_LOBBY_CLOSED')
  if (lobby !== undefined) {
    const places = placesOf(lobby.plan, sizeOf(request, comers), found.action === 'find' ? 'normal' : 'direct')
    if (takenIn(book, lobby.id) > places) return null
  } else if (lobbyCount(book) > request.lobby_max) return refused('MATCHMAKER_TOO_MANY_LOBBIES')
  releaseHold(book, ids)
  book.seated.push(...held)
  if (lobby !== undefined) return sit(book, lobby, request, comers, now)
  return make(book, plan!.plan, request, comers, found.lobby, now)
}

export function releaseHold(book: PlainBook, { player, members }: Omit<Ids, 'lobby'>): void {
  book.holds = book.holds.filter((one) => one.player !== player && !members.includes(one.player))
}

export function expireHolds(book: PlainBook, now: number): void {
  book.holds = book.holds.filter((one) => one.until > now)
}

/**
 * What was committed, and the holds and connections as they are: they are in no journal. Holds of seats that are undone are
 * held again.
 */
export function undone(committed: PlainBook, book: PlainBook): PlainBook {
  const restored = structuredClone(committed)
  const { plans } = book
  const isThere = (id: string): boolean => lobbyOf(restored, id) !== undefined || plans.some((plan) => plan.id === id)
  restored.holds = [...book.holds, ...book.seated].filter((one) => isThere(one.lobby))
  for (const lobby of restored.lobbies) {
    const { open, closed_since } = lobbyOf(book, lobby.id)!
    Object.assign(lobby, { open, closed_since })
  }
  return { ...restored, plans, seated: [], reported: book.reported }
}

export type PlainRules = { requests: number; ttl: number }

export function admit(book: PlainBook, client: string, rules: PlainRules, solved: boolean, now: number): Answer {
  if (solved) {
    book.solvers = book.solvers.filter((other) => other.client !== client)
    book.solvers.push({ client, solved: now, until: now + rules.ttl, requests: 0 })
    return null
  }
  const solver = book.solvers.find((other) => other.client === client)
  if (solver === undefined || now >= solver.solved + rules.ttl || solver.requests >= rules.requests) {
    return refused('CAPTCHA_CAPTCHA_REQUIRED')
  }
  solver.requests++
  return null
}

export function ready(book: PlainBook, id: string, now: number): Answer {
  const lobby = lobbyOf(book, id)
  if (lobby === undefined || lobby.stopped !== null) return refused('MATCHMAKER_LOBBY_STOPPED')
  if (lobby.ready !== null) return null
  lobby.ready = now
  for (const player of seatsOf(book, id)) {
    if (player.connected === null) player.deadline = now + lobby.plan.player_deadline_ms
  }
  return null
}

export function say(book: PlainBook, id: string, what: { closed?: boolean; state?: string | null }): Answer {
  const lobby = lobbyOf(book, id)
  if (lobby === undefined || lobby.stopped !== null) return refused('MATCHMAKER_LOBBY_STOPPED')
  Object.assign(lobby, what)
  return null
}

export function stall(book: PlainBook, id: string, stalled: boolean, now: number): Answer {
  const lobby = lobbyOf(book, id)
  if (lobby === undefined || lobby.stopped !== null || lobby.stalled === stalled) return null
  lobby.stalled = stalled
  if (stalled && isEmpty(book, lobby)) lobby.empty_since = now
  return null
}

type Call = { player: string; lobby: string; key: string | null }

export function connected(book: PlainBook, call: Call, now: number): Answer {
  const player = book.players.find((other) => other.id === call.player)
  if (player === undefined) return refused('MATCHMAKER_PLAYER_REMOVED')
  if (player.lobby !== call.lobby) return refused('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY')
  if (call.key !== null && call.key === player.connect_key) return null
  if (player.why === 'expired') return refused('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED')
  if (player.left !== null) return refused('MATCHMAKER_PLAYER_REMOVED')
  if (player.connected !== null) return refused('MATCHMAKER_PLAYER_ALREADY_CONNECTED')
  if (lobbyOf(book, player.lobby)?.ready === null) return refused('MATCHMAKER_LOBBY_NOT_STARTED')
  lobbyOf(book, player.lobby)!.told = true
  player.connected = now
  player.deadline = now + EIGHT_HOURS_MS
  player.connect_key = call.key
  return null
}

export function disconnected(book: PlainBook, call: Call & { hold?: number }, now: number): Answer {
  const player = book.players.find((other) => other.id === call.player)
  if (player === undefined) return null
  if (player.lobby !== call.lobby) return refused('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY')
  if (player.left !== null || (call.key !== null && call.key === player.leave_key)) return null
  const { hold = 0 } = call
  if (hold === 0) leave(book, player, 'disconnected', now, call.key)
  else Object.assign(player, { connected: null, deadline: now + hold, leave_key: call.key })
  return null
}

export function expel(book: PlainBook, call: Omit<Call, 'key'>, now: number): Answer {
  const player = book.players.find((other) => other.id === call.player && other.lobby === call.lobby)
  if (player !== undefined && player.left === null) leave(book, player, 'requested', now)
  return null
}

export function drain(book: PlainBook, version: string, is_draining: boolean): Answer {
  book.draining = book.draining.filter((other) => other !== version)
  if (is_draining) book.draining.push(version)
  return null
}

export function release(book: PlainBook, id: string, now: number): Answer {
  const player = book.players.find((other) => other.id === id)
  if (player === undefined || player.left !== null || player.connected !== null) return null
  if (player.leader === null) leave(book, player, 'unanswered', now)
  else if (lobbyOf(book, player.lobby)?.ready === null) {
    for (const one of seatsOf(book, player.lobby)) if (one.leader === id) leave(book, one, 'unanswered', now)
  }
  return null
}

export function stop(book: PlainBook, id: string, why: StopReason, now: number): Answer {
  const lobby = lobbyOf(book, id)
  if (lobby === undefined || lobby.stopped !== null) return null
  for (const player of seatsOf(book, id)) leave(book, player, 'lobby_stopped', now)
  lobby.stopped = now
  lobby.why = why
  lobby.stopped_open = why === 'exited' || lobby.open === 0 ? null : lobby.open
  return null
}

function leave(book: PlainBook, player: PlainPlayer, why: RemoveReason, now: number, key: string | null = null): void {
  player.left = now
  player.why = why
  player.leave_key = key
  if (seatsOf(book, player.lobby).length === 0) lobbyOf(book, player.lobby)!.empty_since = now
}

/** Whether time demands this change now. If so it has been made. */
export function takeExpiry(book: PlainBook, change: Change, now: number): boolean {
  if (change.kind === 'lobby_stopped') {
    const lobby = lobbyOf(book, change.lobby_id)!
    const why = idleDueOf(book, lobby) > now ? 'never_ready' : isOutdated(book) ? 'outdated' : 'idle'
    const is_right = dueOf(book, lobby) <= now && change.ms === now && change.reason === why
    stop(book, lobby.id, change.reason, now)
    return is_right
  }
  if (change.kind === 'party_ended') {
    const party = book.parties.find(({ id }) => id === change.party_id)!
    book.parties = book.parties.filter((one) => one !== party)
    return party.until <= now && change.ms === now
  }
  if (change.kind !== 'player_removed') return false
  const player = book.players.find((other) => other.id === change.player_id)!
  const why = player.connected === null ? 'expired' : 'too_long'
  const is_right = dueOf(book, player) <= now && change.ms === now && change.reason === why
  const lobby = lobbyOf(book, player.lobby)!
  if (why === 'expired' && lobby.open > 0) lobby.expired_open++
  leave(book, player, why, now)
  return is_right
}

export function forget(book: PlainBook, now: number): void {
  book.players = book.players.filter((player) => player.left === null || player.left + TEN_MINUTES_MS > now)
  book.lobbies = book.lobbies.filter((lobby) => lobby.stopped === null || lobby.stopped + TEN_MINUTES_MS > now)
  book.solvers = book.solvers.filter((solver) => solver.until > now)
}

const partyWith = (book: PlainBook, who: string): PlainParty | undefined =>
  book.parties.find(({ members }) => members.some((member) => member.who === who))

export function makeParty(
  book: PlainBook,
  member: PlainMember,
  made: { id: string; code: string },
  now: number,
): Answer {
  const own = partyWith(book, member.who)
  if (own !== undefined) return own.leader === member.who ? null : refused('PARTY_ALREADY_MEMBER')
  book.parties.push({ ...made, leader: member.who, members: [member], until: now + HALF_HOUR_MS })
  return null
}

export function joinParty(book: PlainBook, member: PlainMember, code: string, now: number): Answer {
  const party = book.parties.find((one) => one.code === code)
  if (party === undefined) return refused('PARTY_CODE_INVALID')
  const own = partyWith(book, member.who)
  if (own !== undefined && own !== party) return refused('PARTY_ALREADY_MEMBER')
  const before = party.members.find(({ who }) => who === member.who)
  if (before?.client === member.client) return null
  if (before === undefined) party.members.push({ ...member })
  else before.client = member.client
  party.until = Math.max(party.until, now + HALF_HOUR_MS)
  return null
}

/** A member reads its party, and keeps it. */
export function lookAtParty(book: PlainBook, who: string, now: number): Answer {
  const party = partyWith(book, who)
  if (party === undefined) return refused('PARTY_NOT_FOUND')
  if (party.until - now <= HALF_HOUR_MS / 2) party.until = now + HALF_HOUR_MS
  return null
}

export function leaveParty(book: PlainBook, who: string, now: number): Answer {
  const party = partyWith(book, who)
  if (party === undefined) return null
  party.members = party.members.filter((member) => member.who !== who)
  if (party.members.length === 0) book.parties = book.parties.filter((one) => one !== party)
  else if (party.leader === who) party.leader = party.members[0]!.who
  party.until = Math.max(party.until, now + HALF_HOUR_MS)
  return null
}

export function leadParty(book: PlainBook, by: string, who: string, now: number): Answer {
  const party = partyWith(book, by)
  if (party === undefined) return refused('PARTY_NOT_FOUND')
  if (party.leader !== by) return refused('PARTY_LEADER_REQUIRED')
  if (partyWith(book, who) !== party) return refused('PARTY_MEMBER_NOT_FOUND')
  if (who === by) return null
  party.leader = who
  party.until = Math.max(party.until, now + HALF_HOUR_MS)
  return null
}

export function kickMember(book: PlainBook, by: string, who: string, code: string, now: number): Answer {
  const party = partyWith(book, by)
  if (party === undefined) return refused('PARTY_NOT_FOUND')
  if (party.leader !== by) return refused('PARTY_LEADER_REQUIRED')
  if (who === by || partyWith(book, who) !== party) return refused('PARTY_MEMBER_NOT_FOUND')
  party.members = party.members.filter((member) => member.who !== who)
  party.code = code
  party.until = Math.max(party.until, now + HALF_HOUR_MS)
  return null
}
