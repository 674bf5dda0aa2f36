// The book of one namespace: its lobbies, their seats, and who sits where. A plain data structure with a method for
// each command, which takes the time and fresh ids and answers either a refusal or the changes that grant it; apply()
// makes a change true and answers how to undo it. No I/O, no clock, no randomness: shards/shard.ts drives it.
//
// A lobby is starting until it calls ready, then running, closed or not, until it is stopped: because it never became
// ready, has stood empty, has exited, or was asked to. A player is reserved until the lobby server reports it
// connected, and leaves by disconnecting, by its deadline, or with its lobby. What has stopped or left is remembered
// for MEMORY_MS, so that repeated and late calls get the right answer.
import type { ErrorCode } from '@muster/contract'
import {
  type Change,
  LIMITS,
  type LobbyRecord,
  type PartyMember,
  type PartyRecord,
  type PlayerRecord,
  type RemoveReason,
  type SeatLimits,
  type StopReason,
} from '../../journal/changes.ts'
import { type CaptchaMemory, type CaptchaRules, createCaptchaMemory, type VerifiedClient } from './captcha-memory.ts'
import type {
  ChoosePorts,
  CreateWish,
  Decision,
  FindRequest,
  FreshIds,
  Granted,
  HasRoom,
  HeldIds,
  HoldWish,
  JoinWish,
  KeepRoom,
  LobbyPlan,
  Refused,
  SeatTaken,
  SeatWish,
  Undo,
} from './commands.ts'
import { createHeap } from './heap.ts'
import { createHolds, HOLD_MS, type Hold, type PlannedLobby } from './holds.ts'
import { ALL_REPORTED_MS, createIdle, type Idle, type IdleRules, NO_IDLE_RULES } from './idle.ts'
import { createListing } from './listing.ts'
import type { Lobby, Player, StoredLobby } from './lobby.ts'
import { createShelves, type Place } from './open-lobbies.ts'
import { createParties, type NetworksOf, type Parties } from './parties.ts'
import { takenPlaces } from './rules.ts'

/** How long idempotency keys, stopped lobbies and players who left are remembered. */
export const MEMORY_MS = 10 * 60_000
/** A connected player whose lobby server never reports it gone is taken out after this. */
export const CONNECTED_MS_MAX = 8 * 60 * 60_000
export const LIST_PAGE_MAX = 256
/** Versions of a namespace that drain at the same time. */
const DRAINING_VERSIONS_MAX = 1_000
/** What is over and is forgotten in one go. */
const FORGOTTEN_MAX = 10_000

/** Nobody need be asked, or not again: `seat`. */
export type Held = { hold: Hold } | { seat: SeatTaken }

const ALWAYS: HasRoom = () => true
const NONE: ChoosePorts = (wanted) => (wanted.length === 0 ? [] : null)

/** Who is about to sit down: the one who asks, or all of his party, he first. */
type Entrant = {
  player_id: string
  client: string
  players_max: number
  identity_id: string | null
  member: PartyMember | null
}

const refuse = (refused: ErrorCode): Refused => ({ refused })
const grant = <T>(result: T, ...changes: Change[]): Granted<T> => ({ changes, result })

/** A law of the platform that a change would break: a fault of ours. The change has not been made. */
export class BrokenLaw extends Error {
  readonly facts: Readonly<Record<string, unknown>>
  constructor(law: string, facts: Readonly<Record<string, unknown>>) {
    super(law)
    this.name = 'BrokenLaw'
    this.facts = facts
  }
}

export class Book {
  readonly lobbies = new Map<string, Lobby>()
  readonly players = new Map<string, Player>()
  /** Lobbies that are not stopped. */
  live_lobby_count = 0
  /** Who has solved a captcha. */
  readonly verified: CaptchaMemory = createCaptchaMemory()
  /** Versions whose lobbies take no new players, and of which no more are started. */
  readonly draining = new Set<string>()
  readonly parties: Parties
  readonly #shelves = createShelves()
  readonly #listing = createListing()
  #idle_rules: IdleRules
  /** Lobbies without players. */
  readonly #idle: Idle
  /** Whether it has been told of the edges' reports. */
  #has_reports = false
  readonly #clientPlayers = new Map<string, number>()
  readonly #seatKeys = new Map<string, Player>()
  /** Seats that were taken for a party, by who sits there. */
  readonly #partySeats = new Map<string, Set<Player>>()
  /** Live and planned lobbies, by the identity that created them. */
  readonly #creatorLobbies = new Map<string, number>()
  /** What has not ended, by the time that will end it; and what has, by the time it did. */
  readonly #due = createHeap<Lobby | Player>((a, b) => dueAt(a) < dueAt(b))
  readonly #over = createHeap<Lobby | Player>((a, b) => endOf(a) < endOf(b))

  readonly #holds = createHolds({
    client: (client, sign) => this.#countClient(client, sign),
    place: (lobby) => {
      if (this.lobbies.get(lobby.lobby_id) === lobby) this.#shelves.arrange(lobby)
    },
    room: (lobby, sign) => {
      this.#keepRoom(lobby, sign)
      this.#countCreator(lobby, sign)
    },
  })
  readonly #keepRoom: KeepRoom

  constructor(
    keepRoom: KeepRoom = () => {},
    idle_rules: IdleRules = NO_IDLE_RULES,
    networksOf: NetworksOf = (key) => [{ key, factor: 1 }],
    reported_ms: number = ALL_REPORTED_MS,
  ) {
    this.#keepRoom = keepRoom
    this.#idle_rules = idle_rules
    const mayStay = (place: Place) => (this.#isEnding(place.version_id) ? null : this.#idle_rules.idle_max(place))
    this.#idle = createIdle(mayStay, reported_ms)
    this.parties = createParties(networksOf)
  }

  /** A seat in the fullest open lobby of these places, else in a lobby after `plan`, else a refusal. */
  find(
    wish: FindRequest,
    ids: FreshIds,
    now_ms: number,
    hasRoom: HasRoom = ALWAYS,
    choosePorts: ChoosePorts = NONE,
  ): Decision<SeatTaken> {
    const before = this.#remembered(wish.seat_key, now_ms)
    if (before !== null) return grant(before)
    const sitters = this.#sitters(wish, ids)
    if ('refused' in sitters) return sitters
    if (this.#isDraining(wish.places)) return refuse('MATCHMAKER_VERSION_DRAINING')
    const lobby = this.#shelves.choose(wish.places, wish.tags, partySize(sitters))
    if (lobby !== null) return this.#reserve(lobby, lobby.ready_ms !== null, wish, sitters, now_ms)
    if (wish.plan === null) return refuse('MATCHMAKER_NO_AVAILABLE_LOBBIES')
    return this.#open(wish.plan, wish, sitters, ids, now_ms, hasRoom, choosePorts)
  }

  /** A seat in this lobby, closed or not, private or not. Whether its game mode allows join is the desk's to know. */
  join(wish: JoinWish, ids: FreshIds, now_ms: number): Decision<SeatTaken> {
    const before = this.#remembered(wish.seat_key, now_ms)
    if (before !== null) return grant(before)
    const joinable = this.#joinable(wish, ids)
    if ('refused' in joinable) return joinable
    const { lobby, sitters } = joinable
    return this.#reserve(lobby, lobby.ready_ms !== null, wish, sitters, now_ms)
  }

  /** A new custom lobby, and the first seat in it. */
  create(
    wish: CreateWish,
    ids: FreshIds,
    now_ms: number,
    hasRoom: HasRoom = ALWAYS,
    choosePorts: ChoosePorts = NONE,
  ): Decision<SeatTaken> {
    const before = this.#remembered(wish.seat_key, now_ms)
    if (before !== null) return grant(before)
    const sitters = this.#sitters(wish, ids)
    if ('refused' in sitters) return sitters
    if (this.#isDraining([wish.plan])) return refuse('MATCHMAKER_VERSION_DRAINING')
    return this.#open(wish.plan, wish, sitters, ids, now_ms, hasRoom, choosePorts)
  }

  /**
   * The place that the wish would get, or the places of a party, held until seatHeld() or letGo(), or for HOLD_MS. Holds of
   * the same ids are let go first: the command may be carried out again. It changes nothing that is journalled.
   */
  hold(
    asked: HoldWish,
    ids: FreshIds,
    now_ms: number,
    hasRoom: HasRoom = ALWAYS,
    choosePorts: ChoosePorts = NONE,
  ): Decision<Held> {
    this.letGo(ids)
    const { action, wish } = asked
    const before = this.#remembered(wish.seat_key, now_ms)
    if (before !== null) return grant({ seat: before })
    if (action === 'join') {
      const joinable = this.#joinable(wish, ids)
      if ('refused' in joinable) return joinable
      return this.#keep({ lobby: joinable.lobby, plan: null }, asked, joinable.sitters, now_ms)
    }
    const sitters = this.#sitters(wish, ids)
    if ('refused' in sitters) return sitters
    if (this.#isDraining(action === 'find' ? wish.places : [wish.plan])) return refuse('MATCHMAKER_VERSION_DRAINING')
    if (action === 'find') {
      const size = partySize(sitters)
      const lobby = this.#shelves.choose(wish.places, wish.tags, size)
      const plan = lobby === null ? this.#holds.choose(wish.places, wish.tags, size) : null
      const game_mode = (lobby ?? plan ?? wish.plan)?.game_mode
      if (game_mode === undefined) return refuse('MATCHMAKER_NO_AVAILABLE_LOBBIES')
      if (!asked.verified_modes.has(game_mode)) {
        const decision = this.find(wish, ids, now_ms, hasRoom, choosePorts)
        return 'refused' in decision ? decision : { ...decision, result: { seat: decision.result } }
      }
      if (lobby !== null) return this.#keep({ lobby, plan: null }, asked, sitters, now_ms)
      if (plan !== null) return this.#keep({ lobby: plan, plan }, asked, sitters, now_ms)
    }
    if (wish.plan === null) return refuse('MATCHMAKER_NO_AVAILABLE_LOBBIES')
    if (isTooLarge(sitters, wish.plan)) return refuse('MATCHMAKER_PARTY_TOO_LARGE')
    const record = this.#planned(wish.plan, wish, ids, now_ms, hasRoom, choosePorts)
    if ('refused' in record) return record
    // Its ports are chosen when it is created: until then they are anybody's.
    const { edge_ports_wanted, creator_lobbies_max } = wish.plan
    const plan = { ...newLobby({ ...record, edge_ports: [] }), edge_ports_wanted, creator_lobbies_max }
    return this.#keep({ lobby: plan, plan }, asked, sitters, now_ms)
  }

  /**
   * The seat of a hold, every limit looked at again; its own place is in all of them. (The room that it needs in its
   * region was kept.) Null: there is nothing to sit on any more, and the wish may be made again.
   */
  seatHeld(ids: HeldIds, wish: SeatWish, now_ms: number, choosePorts: ChoosePorts = NONE): Decision<SeatTaken | null> {
    const before = this.#remembered(wish.seat_key, now_ms)
    if (before !== null) return grant(before)
    const hold = this.#holds.get(ids.player_id)
    if (hold === undefined || hold.expire_ms <= now_ms) return grant(null)
    const sitters = this.#seated(wish, ids)
    if (sitters === null) return grant(null)
    const { lobby, plan, action } = hold
    if (lobby.stop_ms !== null || (action === 'find' && (lobby.is_closed || lobby.is_stalled))) return grant(null)
    if (sitters.some(({ client, players_max }) => (this.#clientPlayers.get(client) ?? 0) > players_max)) {
      return refuse('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
    }
    if (this.#isDraining([lobby])) return refuse('MATCHMAKER_VERSION_DRAINING')
    if (lobby.is_stalled) return refuse('MATCHMAKER_LOBBY_CLOSED')
    if (plan === null) {
      const places = action === 'find' ? lobby.max_players_normal : lobby.max_players_direct
      if (takenPlaces(lobby) > (wish.party === null ? places : lobby.max_players_party)) return grant(null)
      return this.#reserve(lobby, lobby.ready_ms !== null, wish, sitters, now_ms)
    }
    if (this.#lobbyCount() > wish.lobby_count_max) return refuse('MATCHMAKER_TOO_MANY_LOBBIES')
    if (plan.creator_lobbies_max !== null && this.#lobbiesBy(plan) > plan.creator_lobbies_max) {
      return refuse('MATCHMAKER_CUSTOM_LOBBY_LIMIT_REACHED')
    }
    const edge_ports = choosePorts(plan.edge_ports_wanted, now_ms)
    if (edge_ports === null) return refuse('MATCHMAKER_NO_PORTS')
    const record = { ...recordOf(plan, now_ms), edge_ports }
    const seat = this.#reserve(record, false, wish, sitters, now_ms)
    return { changes: [{ kind: 'lobby_created', lobby: record }, ...seat.changes], result: seat.result }
  }

  /** Does nothing where the hold is over already. */
  letGo({ player_id, member_ids = [] }: HeldIds): void {
    this.#holds.drop(player_id)
    for (const member_id of member_ids) this.#holds.drop(member_id)
  }

  /** Who comes along with a hold; null: he came alone. The leader is the first. */
  heldParty({ player_id, member_ids = [] }: HeldIds): PartyMember[] | null {
    if (this.#holds.get(player_id)?.member === null) return null
    return [player_id, ...member_ids].flatMap((id) => this.#holds.get(id)?.member ?? [])
  }

  /** Whether the key's request has its seat: then it is answered, and nothing else is asked of it. */
  hasSeat(seat_key: string | null, now_ms: number): boolean {
    return this.#remembered(seat_key, now_ms) !== null
  }

  /** Lets a client's request in where a captcha is asked: it comes with a solved one, or had solved one before. */
  admit(client: string, rules: CaptchaRules, has_solved: boolean, now_ms: number): Decision<null> {
    if (has_solved) {
      const expire_ms = now_ms + rules.verification_ttl_ms
      return grant(null, { kind: 'client_verified', client, ms: now_ms, expire_ms })
    }
    if (!this.verified.allows(client, rules, now_ms)) return refuse('CAPTCHA_CAPTCHA_REQUIRED')
    return grant(null, { kind: 'client_counted', client })
  }

  ready(lobby_id: string, now_ms: number): Decision<null> {
    const lobby = this.lobbies.get(lobby_id)
    if (lobby === undefined || lobby.stop_ms !== null) return refuse('MATCHMAKER_LOBBY_STOPPED')
    return lobby.ready_ms === null ? grant(null, { kind: 'lobby_ready', lobby_id, ms: now_ms }) : grant(null)
  }

  setClosed(lobby_id: string, is_closed: boolean): Decision<null> {
    const lobby = this.lobbies.get(lobby_id)
    if (lobby === undefined || lobby.stop_ms !== null) return refuse('MATCHMAKER_LOBBY_STOPPED')
    return lobby.is_closed === is_closed ? grant(null) : grant(null, { kind: 'lobby_closed', lobby_id, is_closed })
  }

  /** Its runner has found that its server does not answer, or does again. */
  setStalled(lobby_id: string, is_stalled: boolean, now_ms: number): Decision<null> {
    const lobby = this.lobbies.get(lobby_id)
    if (lobby === undefined || lobby.stop_ms !== null || lobby.is_stalled === is_stalled) return grant(null)
    return grant(null, { kind: 'lobby_stalled', lobby_id, ms: now_ms, is_stalled })
  }

  /** `state` is JSON text; null clears it. */
  setState(lobby_id: string, state: string | null): Decision<null> {
    const lobby = this.lobbies.get(lobby_id)
    if (lobby === undefined || lobby.stop_ms !== null) return refuse('MATCHMAKER_LOBBY_STOPPED')
    return lobby.state === state ? grant(null) : grant(null, { kind: 'lobby_state', lobby_id, state })
  }

  /** Consumes a player's token. The same key answers again what it answered before; any other call is refused. */
  connected(call: { player_id: string; lobby_id: string; connect_key: string | null }, now_ms: number): Decision<null> {
    const player = this.players.get(call.player_id)
    if (player === undefined) return refuse('MATCHMAKER_PLAYER_REMOVED')
    if (player.lobby_id !== call.lobby_id) return refuse('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY')
    if (call.connect_key !== null && player.connect_key === call.connect_key) return grant(null)
    if (player.remove_reason === 'expired') return refuse('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED')
    if (player.remove_ms !== null) return refuse('MATCHMAKER_PLAYER_REMOVED')
    if (player.connect_ms !== null) return refuse('MATCHMAKER_PLAYER_ALREADY_CONNECTED')
    if (player.deadline_ms <= now_ms) return refuse('MATCHMAKER_PLAYER_REGISTRATION_EXPIRED')
    if (this.#lobby(player.lobby_id).ready_ms === null) return refuse('MATCHMAKER_LOBBY_NOT_STARTED')
    return grant(null, {
      kind: 'player_connected',
      player_id: player.player_id,
      ms: now_ms,
      deadline_ms: now_ms + CONNECTED_MS_MAX,
      connect_key: call.connect_key,
    })
  }

  /**
   * Frees the seat, or keeps it for `hold_ms`, counted like any other, for the same token to connect again. Whoever has
   * left already stays gone, and a call that comes late once more does not throw out who is connected again: the answer
   * is the same.
   */
  disconnected(
    call: { player_id: string; lobby_id: string; disconnect_key: string | null; hold_ms?: number },
    now_ms: number,
  ): Decision<null> {
    const player = this.players.get(call.player_id)
    if (player === undefined) return grant(null)
    if (player.lobby_id !== call.lobby_id) return refuse('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY')
    if (player.remove_ms !== null) return grant(null)
    const { player_id } = player
    const { disconnect_key, hold_ms = 0 } = call
    if (disconnect_key !== null && player.disconnect_key === disconnect_key) return grant(null)
    if (hold_ms === 0) return grant(null, removal(player_id, now_ms, 'disconnected', disconnect_key))
    return grant(null, { kind: 'player_dropped', player_id, deadline_ms: now_ms + hold_ms, disconnect_key })
  }

  /** A developer takes a player out of a lobby. Answers whether he was in it. */
  expel(call: { player_id: string; lobby_id: string }, now_ms: number): Decision<boolean> {
    const player = this.players.get(call.player_id)
    if (player === undefined || player.lobby_id !== call.lobby_id || player.remove_ms !== null) return grant(false)
    return grant(true, removal(player.player_id, now_ms, 'requested', null))
  }

  /** Whether the lobbies of a version take players. */
  setDraining(version_id: string, is_draining: boolean): Decision<null> {
    if (this.draining.has(version_id) === is_draining) return grant(null)
    if (is_draining && this.draining.size >= DRAINING_VERSIONS_MAX) {
      const metadata = { limit: DRAINING_VERSIONS_MAX, used: this.draining.size }
      return { ...refuse('QUOTA_REACHED'), metadata }
    }
    return grant(null, { kind: 'version_draining', version_id, is_draining })
  }

  /**
   * Takes back a seat whose request could not be answered, or all seats of the party. A player who has connected meanwhile
   * stays; and so does a party whose lobby is ready, for its members have been told.
   */
  release(player_id: string, now_ms: number): Decision<null> {
    const player = this.players.get(player_id)
    if (player === undefined || player.remove_ms !== null || player.connect_ms !== null) return grant(null)
    if (player.leader_player_id === null) return grant(null, removal(player_id, now_ms, 'unanswered', null))
    const lobby = this.#lobby(player.lobby_id)
    if (lobby.ready_ms !== null) return grant(null)
    const party = [...lobby.players.values()].filter((one) => one.leader_player_id === player_id)
    return grant(null, ...party.map((one) => removal(one.player_id, now_ms, 'unanswered', null)))
  }

  /** Seats that were taken for a party and are this identity's, as far as they are remembered. */
  partySeatsOf(identity_id: string): Iterable<Player> {
    return this.#partySeats.get(identity_id) ?? []
  }

  /** Answers whether it ran until now. */
  stop(lobby_id: string, reason: StopReason, now_ms: number): Decision<boolean> {
    const lobby = this.lobbies.get(lobby_id)
    if (lobby === undefined || lobby.stop_ms !== null) return grant(false)
    return grant(true, stopped(lobby, now_ms, reason))
  }

  /** The next change that time demands, or null. To be applied and asked again. */
  expire(now_ms: number): Change | null {
    this.#holds.expire(now_ms)
    if (this.#idle.dueMs() <= now_ms) {
      const lobby = this.#idle.first()!
      return stopped(lobby, now_ms, this.#isOutdated(lobby.version_id) ? 'outdated' : 'idle')
    }
    const next = this.#due.peek()
    if (next === undefined || dueAt(next) > now_ms) return this.parties.expire(now_ms)
    if (isLobby(next)) return stopped(next, now_ms, 'never_ready')
    if (next.connect_ms !== null) return removal(next.player_id, now_ms, 'too_long', null)
    const { connection_count } = this.#lobby(next.lobby_id)
    const expired = removal(next.player_id, now_ms, 'expired', null)
    return connection_count === 0 ? expired : { ...expired, open_connections: connection_count }
  }

  /** Told, and in no journal: what is decided by them is. */
  setIdleRules(rules: IdleRules): void {
    if (rules === this.#idle_rules) return
    this.#idle_rules = rules
    this.#idle.refresh()
  }

  /**
   * How many connections to the lobby are open, as the edges report it. Like the idle rules it is in no journal: what is
   * decided by it is.
   */
  setConnections(lobby_id: string, connection_count: number, now_ms: number): void {
    const lobby = this.lobbies.get(lobby_id)
    if (lobby === undefined || lobby.connection_count === connection_count) return
    lobby.connection_count = connection_count
    lobby.quiet_ms = connection_count === 0 ? now_ms + lobby.idle_grace_ms : null
    this.#arrange(lobby)
  }

  /**
   * Every edge has reported at `reported_ms` or later. `since_ms`: they have done so since then; the connections of an
   * older lobby were not known before, so it has its grace from then on.
   */
  setReported(since_ms: number, reported_ms: number): void {
    if (!this.#has_reports) {
      this.#has_reports = true
      for (const lobby of this.lobbies.values()) {
        if (lobby.stop_ms !== null || lobby.connection_count > 0 || lobby.create_ms >= since_ms) continue
        lobby.quiet_ms = since_ms + lobby.idle_grace_ms
        this.#arrange(lobby)
      }
    }
    this.#idle.setReported(reported_ms)
  }

  /**
   * A lobby without players, where less than `idle_min` of them stand: so that the next players need not wait for one.
   * Answers whether it is started.
   */
  prepare(
    wish: { plan: LobbyPlan; idle_min: number; lobby_count_max: number },
    lobby_id: string,
    now_ms: number,
    hasRoom: HasRoom = ALWAYS,
    choosePorts: ChoosePorts = NONE,
  ): Decision<boolean> {
    const { plan, idle_min } = wish
    if (this.#isEnding(plan.version_id) || this.#idle.count(plan) >= idle_min) return grant(false)
    const lobby = this.#planned(plan, wish, { lobby_id }, now_ms, hasRoom, choosePorts)
    return 'refused' in lobby ? lobby : grant(true, { kind: 'lobby_created', lobby })
  }

  /**
   * Forgets what ended MEMORY_MS before. `durable_ms` is a time of which all that happened until then is durable: what
   * may still be undone must not be forgotten.
   */
  forget(durable_ms: number): void {
    this.verified.forget(durable_ms)
    this.parties.forget(durable_ms)
    for (let forgotten = 0; forgotten < FORGOTTEN_MAX; forgotten++) {
      const first = this.#over.peek()
      if (first === undefined || endOf(first) + MEMORY_MS > durable_ms) return
      if (isLobby(first)) this.#forgetLobby(first)
      else this.#forgetPlayer(first)
    }
  }

  /** Live, reserved and held. */
  playersOf(client: string): number {
    return this.#clientPlayers.get(client) ?? 0
  }

  /** Nothing would be lost with it. */
  isEmpty(): boolean {
    const { lobbies, players, verified, parties, draining } = this
    return lobbies.size + players.size + verified.size() + parties.size() + draining.size + this.#holds.size() === 0
  }

  /** When expire() has something to do next; null: never. */
  nextDueMs(): number | null {
    const next = this.#due.peek()
    const due_ms = next === undefined ? Number.POSITIVE_INFINITY : dueAt(next)
    const due = Math.min(this.#idle.dueMs(), due_ms, this.parties.nextDueMs() ?? Number.POSITIVE_INFINITY)
    return Number.isFinite(due) ? due : null
  }

  /**
   * Public lobbies of these game modes, oldest first, a page at a time. One that nobody is in is only told of when it is
   * the only one of its game mode.
   */
  list(wish: { version_id: string; game_modes: ReadonlySet<string>; after: string | null }): {
    lobbies: Lobby[]
    more: boolean
  } {
    const after = (wish.after === null ? null : this.lobbies.get(wish.after)) ?? null
    return this.#listing.page({ ...wish, after, lobbies_max: LIST_PAGE_MAX })
  }

  /** Makes a change true. The change must follow from a decision of this very state. */
  apply(change: Change): Undo {
    switch (change.kind) {
      case 'lobby_created':
        return this.#addLobby(newLobby(change.lobby))
      case 'lobby_ready':
        return this.#makeReady(this.#lobby(change.lobby_id), change.ms)
      case 'lobby_closed':
        return this.#patchLobby(this.#lobby(change.lobby_id), { is_closed: change.is_closed })
      case 'lobby_stalled':
        return this.#stall(this.#lobby(change.lobby_id), change.ms, change.is_stalled)
      case 'lobby_state':
        return this.#patchLobby(this.#lobby(change.lobby_id), { state: change.state })
      case 'lobby_stopped':
        return this.#stopLobby(this.#lobby(change.lobby_id), change)
      case 'player_reserved':
        return this.#seat(newPlayer(change.player), change[LIMITS] ?? null)
      case 'player_connected': {
        const { ms, deadline_ms, connect_key } = change
        const player = this.#player(change.player_id)
        invariant(isWaiting(player), 'L2: a token is consumed once, while its seat is reserved', player)
        return this.#connect(player, { connect_ms: ms, deadline_ms, connect_key })
      }
      case 'player_dropped': {
        const { deadline_ms, disconnect_key } = change
        return this.#patchPlayer(this.#player(change.player_id), { connect_ms: null, deadline_ms, disconnect_key })
      }
      case 'player_removed': {
        const { ms, reason, disconnect_key, open_connections } = change
        const player = this.#player(change.player_id)
        const undo = this.#unseat(player, ms, reason, disconnect_key)
        return open_connections === undefined ? undo : this.#countExpiry(player, undo)
      }
      case 'version_draining':
        return this.#setDraining(change.version_id, change.is_draining)
      case 'client_verified':
        return this.verified.verify(change.client, change.ms, change.expire_ms)
      case 'client_counted':
        return this.verified.count(change.client)
      case 'party_put':
        return this.parties.put(change.party)
      case 'party_ended':
        return this.parties.end(change.party_id, change.ms)
    }
  }

  /**
   * Takes in what the tables say: lobbies and players, each in the order of their creation. A player whose lobby the
   * tables do not have has lost it: the projection could not write that lobby.
   */
  load(
    lobbies: readonly StoredLobby[],
    players: readonly Player[],
    verified: readonly VerifiedClient[] = [],
    draining: readonly string[] = [],
    parties: readonly PartyRecord[] = [],
  ): void {
    this.verified.load(verified)
    this.parties.load(parties)
    for (const version_id of draining) this.draining.add(version_id)
    for (const lobby of lobbies) this.#addLobby({ ...lobby, ...onlyInMemory() })
    for (const player of players) {
      if (player.remove_ms !== null) this.#remember(player)
      else if (this.lobbies.has(player.lobby_id)) this.#seat(player, null)
    }
  }

  /** The time in which the platform was away ends nothing: every deadline is later by it. */
  postpone(by_ms: number): void {
    this.parties.postpone(by_ms)
    for (const lobby of this.lobbies.values()) {
      if (lobby.stop_ms !== null) continue
      lobby.ready_deadline_ms += by_ms
      if (lobby.idle_ms !== null) lobby.idle_ms += by_ms
      this.#arrange(lobby)
    }
    for (const player of this.players.values()) {
      if (player.remove_ms !== null) continue
      player.deadline_ms += by_ms
      this.#schedule(player)
    }
  }

  /** The seat that this key got. One that ended before its lobby was ready was never answered: then it is void. */
  #remembered(seat_key: string | null, now_ms: number): SeatTaken | null {
    const player = seat_key === null ? undefined : this.#seatKeys.get(seat_key)
    if (player === undefined || player.create_ms + MEMORY_MS < now_ms) return null
    const ready_ms = this.lobbies.get(player.lobby_id)?.ready_ms ?? null
    if (player.remove_ms !== null) {
      if (player.remove_reason === 'unanswered' || ready_ms === null || player.remove_ms < ready_ms) return null
    }
    return { lobby_id: player.lobby_id, player_id: player.player_id, is_ready: ready_ms !== null }
  }

  #isDraining(of: readonly { version_id: string }[]): boolean {
    return this.draining.size > 0 && of.some(({ version_id }) => this.draining.has(version_id))
  }

  /** Who sits down by this wish, if the limits of their clients let all of them. */
  #sitters(wish: SeatWish, ids: HeldIds): Entrant[] | Refused {
    const sitters = this.#comers(wish, ids)
    if ('refused' in sitters) return sitters
    const counts = new Map<string, number>()
    for (const { client, players_max } of sitters) {
      const count = (counts.get(client) ?? this.#clientPlayers.get(client) ?? 0) + 1
      if (count > players_max) return refuse('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
      counts.set(client, count)
    }
    return sitters
  }

  #comers(wish: SeatWish, { player_id, member_ids = [] }: HeldIds): Entrant[] | Refused {
    const { client, client_players_max, identity_id } = wish
    if (wish.party === null) return [{ player_id, client, players_max: client_players_max, identity_id, member: null }]
    const party = identity_id === null ? undefined : this.parties.ofMember(identity_id)
    if (party === undefined) return refuse('PARTY_NOT_FOUND')
    if (party.leader_identity_id !== identity_id) return refuse('PARTY_LEADER_REQUIRED')
    const leader = party.members.find((member) => member.identity_id === identity_id)!
    const others = party.members.filter((member) => member !== leader)
    // Where the leader is he has shown just now.
    const first = { player_id, client, players_max: client_players_max, identity_id, member: leader }
    const rest = others.map((member, index): Entrant => {
      const players_max = wish.party!.playersMaxOf(member.address)
      return { ...member, player_id: member_ids[index]!, players_max, member }
    })
    return [first, ...rest]
  }

  /** Those whose places are held by these ids; null: one of the holds is over, or the party is another one by now. */
  #seated(wish: SeatWish, ids: HeldIds): Entrant[] | null {
    const sitters = this.#comers(wish, ids)
    if ('refused' in sitters) return null
    const are_held = sitters.every(({ player_id, member }) => {
      const hold = this.#holds.get(player_id)
      return hold !== undefined && hold.member?.identity_id === member?.identity_id
    })
    const more = ids.member_ids?.[sitters.length - 1]
    return are_held && (more === undefined || this.#holds.get(more) === undefined) ? sitters : null
  }

  #joinable(wish: JoinWish, ids: FreshIds): { lobby: Lobby; sitters: Entrant[] } | Refused {
    const lobby = this.lobbies.get(wish.lobby_id)
    if (lobby === undefined) return refuse('MATCHMAKER_LOBBY_NOT_FOUND')
    if (lobby.stop_ms !== null) return refuse('MATCHMAKER_LOBBY_STOPPED')
    const sitters = this.#sitters(wish, ids)
    if ('refused' in sitters) return sitters
    if (this.#isDraining([lobby])) return refuse('MATCHMAKER_VERSION_DRAINING')
    if (lobby.is_stalled) return refuse('MATCHMAKER_LOBBY_CLOSED')
    const places = wish.party === null ? lobby.max_players_direct : lobby.max_players_party
    return takenPlaces(lobby) + sitters.length > places ? refuse('MATCHMAKER_LOBBY_FULL') : { lobby, sitters }
  }

  #keep(
    on: Pick<Hold, 'lobby' | 'plan'>,
    { action }: HoldWish,
    sitters: readonly Entrant[],
    now_ms: number,
  ): Granted<Held> {
    const holds = sitters.map(({ player_id, client, member }): Hold => {
      return { player_id, client, member, action, ...on, expire_ms: now_ms + HOLD_MS }
    })
    for (const hold of holds) this.#holds.put(hold)
    return grant({ hold: holds[0]! })
  }

  #lobbiesBy({ creator_identity_id }: Pick<LobbyRecord, 'creator_identity_id'>): number {
    return creator_identity_id === null ? 0 : (this.#creatorLobbies.get(creator_identity_id) ?? 0)
  }

  /** Lobbies that are there, and those that are planned. */
  #lobbyCount(): number {
    return this.live_lobby_count + this.#holds.planned_count()
  }

  /** What a lobby after the plan is from its first moment on, if there may be one more. */
  #planned(
    plan: LobbyPlan,
    wish: Pick<SeatWish, 'lobby_count_max'>,
    ids: Pick<FreshIds, 'lobby_id'>,
    now_ms: number,
    hasRoom: HasRoom,
    choosePorts: ChoosePorts,
  ): LobbyRecord | Refused {
    const { ready_within_ms, edge_ports_wanted, creator_lobbies_max, failed_before, ...record } = plan
    if (failed_before !== undefined && failed_before.pause_ms > 0) {
      return { refused: 'MATCHMAKER_LOBBY_STOPPED', metadata: failed_before }
    }
    if (this.#lobbyCount() >= wish.lobby_count_max) return refuse('MATCHMAKER_TOO_MANY_LOBBIES')
    if (!hasRoom(plan)) {
      const { region, cpu_cores, memory_mb } = plan
      return { refused: 'MATCHMAKER_REGION_FULL', metadata: { region, cpu_cores, memory_mb } }
    }
    if (creator_lobbies_max !== null && this.#lobbiesBy(plan) >= creator_lobbies_max) {
      return refuse('MATCHMAKER_CUSTOM_LOBBY_LIMIT_REACHED')
    }
    const edge_ports = choosePorts(edge_ports_wanted, now_ms)
    if (edge_ports === null) return refuse('MATCHMAKER_NO_PORTS')
    const ready_deadline_ms = now_ms + ready_within_ms
    return { ...record, edge_ports, lobby_id: ids.lobby_id, create_ms: now_ms, ready_deadline_ms }
  }

  #open(
    plan: LobbyPlan,
    wish: SeatWish,
    sitters: readonly Entrant[],
    ids: FreshIds,
    now_ms: number,
    hasRoom: HasRoom,
    choosePorts: ChoosePorts,
  ): Decision<SeatTaken> {
    if (isTooLarge(sitters, plan)) return refuse('MATCHMAKER_PARTY_TOO_LARGE')
    const lobby = this.#planned(plan, wish, ids, now_ms, hasRoom, choosePorts)
    if ('refused' in lobby) return lobby
    const seat = this.#reserve(lobby, false, wish, sitters, now_ms)
    return { changes: [{ kind: 'lobby_created', lobby }, ...seat.changes], result: seat.result }
  }

  #reserve(
    lobby: LobbyRecord,
    is_ready: boolean,
    wish: SeatWish,
    sitters: readonly Entrant[],
    now_ms: number,
  ): Granted<SeatTaken> {
    // Time to connect counts from ready: until then only the lobby's own deadline can end the seat.
    const from_ms = is_ready ? now_ms : Math.max(now_ms, lobby.ready_deadline_ms)
    const first = sitters[0]!
    const { lobby_count_max } = wish
    const is_opened = !this.lobbies.has(lobby.lobby_id)
    const changes = sitters.map(({ player_id, client, identity_id, players_max }): Change => {
      const player: PlayerRecord = {
        player_id,
        lobby_id: lobby.lobby_id,
        client,
        create_ms: now_ms,
        deadline_ms: from_ms + lobby.player_deadline_ms,
        seat_key: player_id === first.player_id ? wish.seat_key : null,
        identity_id,
        leader_player_id: wish.party === null ? null : first.player_id,
      }
      const limits = { client_players_max: players_max, lobby_count_max: is_opened ? lobby_count_max : null }
      return { kind: 'player_reserved', player, [LIMITS]: limits }
    })
    if (wish.party !== null) changes.push(...this.parties.renew(this.parties.ofMember(first.identity_id!)!, now_ms))
    return grant({ lobby_id: lobby.lobby_id, player_id: first.player_id, is_ready }, ...changes)
  }

  #setDraining(version_id: string, is_draining: boolean): Undo {
    if (is_draining) this.draining.add(version_id)
    else this.draining.delete(version_id)
    this.#idle.refresh()
    return () => void this.#setDraining(version_id, !is_draining)
  }

  #isOutdated(version_id: string): boolean {
    const current = this.#idle_rules.version_id
    return current !== null && current !== version_id
  }

  /** Lobbies of such a version end when they are empty. */
  #isEnding(version_id: string): boolean {
    return this.draining.has(version_id) || this.#isOutdated(version_id)
  }

  #addLobby(lobby: Lobby): Undo {
    this.lobbies.set(lobby.lobby_id, lobby)
    const plan = this.#holds.create(lobby)
    if (lobby.stop_ms === null) this.#countLive(lobby, 1)
    this.#listing.arrange(lobby)
    this.#arrange(lobby)
    return () => {
      if (lobby.stop_ms === null) this.#countLive(lobby, -1)
      this.#forgetLobby(lobby)
      this.#holds.uncreate(lobby, plan)
    }
  }

  /** Who has waited for the start has the full time to connect from now on; nobody connects before it. */
  #makeReady(lobby: Lobby, ms: number): Undo {
    const undos = [this.#patchLobby(lobby, { ready_ms: ms })]
    for (const player of lobby.players.values()) {
      undos.push(this.#patchPlayer(player, { deadline_ms: ms + lobby.player_deadline_ms }))
    }
    return () => undoAll(undos)
  }

  /** One that stood ready for players has its grace to come back in. */
  #stall(lobby: Lobby, ms: number, is_stalled: boolean): Undo {
    const { idle_ms } = lobby
    if (!is_stalled || idle_ms === null) return this.#patchLobby(lobby, { is_stalled })
    return this.#patchLobby(lobby, { is_stalled, idle_ms: Math.max(idle_ms, ms + lobby.idle_grace_ms) })
  }

  #stopLobby(lobby: Lobby, { ms, reason, open_connections }: LobbyStopped): Undo {
    const undos: Undo[] = []
    try {
      for (const player of [...lobby.players.values()]) undos.push(this.#unseat(player, ms, 'lobby_stopped', null))
    } catch (error) {
      undoAll(undos)
      throw error
    }
    const connections_at_stop = open_connections ?? null
    undos.push(this.#patchLobby(lobby, { stop_ms: ms, stop_reason: reason, connections_at_stop }))
    this.#countLive(lobby, -1)
    return () => {
      this.#countLive(lobby, 1)
      undoAll(undos)
    }
  }

  #seat(player: Player, limits: SeatLimits | null): Undo {
    const lobby = this.#lobby(player.lobby_id)
    const hold = this.#holds.drop(player.player_id)
    const { idle_ms } = lobby
    const same_key = player.seat_key === null ? undefined : this.#seatKeys.get(player.seat_key)
    invariant(
      takenPlaces(lobby) < Math.max(lobby.max_players_normal, lobby.max_players_direct, lobby.max_players_party),
      'L1: a lobby never has more players than its limit',
      lobby,
    )
    if (limits !== null) this.#assertLimits(player, limits)
    this.#remember(player)
    this.#enter(lobby, player, null)
    return () => {
      this.#exit(lobby, player, idle_ms)
      this.#forgetPlayer(player)
      if (same_key !== undefined && this.players.has(same_key.player_id)) {
        this.#seatKeys.set(same_key.seat_key!, same_key)
      }
      if (hold !== undefined) this.#holds.put(hold)
    }
  }

  /** The lobby is there and counted; the player is not. */
  #assertLimits({ client, lobby_id, player_id }: Player, { client_players_max, lobby_count_max }: SeatLimits): void {
    const { live_lobby_count } = this
    const client_players = (this.#clientPlayers.get(client) ?? 0) + 1
    const facts = { lobby_id, player_id, client, client_players, client_players_max, live_lobby_count, lobby_count_max }
    invariant(
      lobby_count_max === null || live_lobby_count <= lobby_count_max,
      'L3: a namespace opens no lobby beyond lobby_count_max',
      facts,
    )
    invariant(client_players <= client_players_max, 'L4: a client takes no seat beyond its limit', facts)
  }

  #unseat(player: Player, ms: number, reason: RemoveReason, disconnect_key: string | null): Undo {
    const lobby = this.#lobby(player.lobby_id)
    const { idle_ms } = lobby
    invariant(player.remove_ms === null, 'L2: a player leaves once', player)
    invariant(this.#clientPlayers.has(player.client), 'L4: a client has as many players as are counted', player)
    this.#exit(lobby, player, lobby.players.size === 1 ? ms + lobby.idle_grace_ms : idle_ms)
    const undo = this.#patchPlayer(player, { remove_ms: ms, remove_reason: reason, disconnect_key })
    return () => {
      undo()
      this.#enter(lobby, player, idle_ms)
    }
  }

  #connect(player: Player, patch: Partial<Player>): Undo {
    const lobby = this.#lobby(player.lobby_id)
    const undo = this.#patchPlayer(player, patch)
    if (lobby.has_reported_players) return undo
    const undos = [undo, this.#patchLobby(lobby, { has_reported_players: true })]
    return () => undoAll(undos)
  }

  /** A seat has expired while its lobby had open connections. */
  #countExpiry({ lobby_id }: Player, undo: Undo): Undo {
    const lobby = this.#lobby(lobby_id)
    const seats_expired_while_connected = lobby.seats_expired_while_connected + 1
    const undos = [undo, this.#patchLobby(lobby, { seats_expired_while_connected })]
    return () => undoAll(undos)
  }

  #enter(lobby: Lobby, player: Player, idle_ms: number | null): void {
    lobby.players.set(player.player_id, player)
    lobby.idle_ms = idle_ms
    if (lobby.players.size === 1) this.#listing.arrange(lobby)
    this.#arrange(lobby)
    this.#countClient(player.client, 1)
  }

  #exit(lobby: Lobby, player: Player, idle_ms: number | null): void {
    lobby.players.delete(player.player_id)
    lobby.idle_ms = idle_ms
    if (lobby.players.size === 0) this.#listing.arrange(lobby)
    this.#arrange(lobby)
    this.#countClient(player.client, -1)
  }

  #patchLobby(lobby: Lobby, patch: Partial<Lobby>): Undo {
    const before = replace(lobby, patch)
    this.#listing.arrange(lobby)
    this.#arrange(lobby)
    return () => {
      Object.assign(lobby, before)
      this.#listing.arrange(lobby)
      this.#arrange(lobby)
    }
  }

  #patchPlayer(player: Player, patch: Partial<Player>): Undo {
    const before = replace(player, patch)
    this.#schedule(player)
    return () => {
      Object.assign(player, before)
      this.#schedule(player)
    }
  }

  #remember(player: Player): void {
    invariant(!this.players.has(player.player_id), 'L2: a player is seated once', player)
    this.players.set(player.player_id, player)
    if (player.seat_key !== null) this.#seatKeys.set(player.seat_key, player)
    if (isOfParty(player)) {
      const seats = this.#partySeats.get(player.identity_id) ?? new Set()
      this.#partySeats.set(player.identity_id, seats.add(player))
    }
    this.#schedule(player)
  }

  #forgetPlayer(player: Player): void {
    this.players.delete(player.player_id)
    if (player.seat_key !== null && this.#seatKeys.get(player.seat_key) === player) {
      this.#seatKeys.delete(player.seat_key)
    }
    if (isOfParty(player)) {
      const seats = this.#partySeats.get(player.identity_id)
      seats?.delete(player)
      if (seats?.size === 0) this.#partySeats.delete(player.identity_id)
    }
    this.#due.remove(player)
    this.#over.remove(player)
  }

  #forgetLobby(lobby: Lobby): void {
    this.lobbies.delete(lobby.lobby_id)
    this.#shelves.remove(lobby)
    this.#listing.remove(lobby)
    this.#idle.remove(lobby)
    this.#due.remove(lobby)
    this.#over.remove(lobby)
  }

  #arrange(lobby: Lobby): void {
    this.#shelves.arrange(lobby)
    this.#idle.arrange(lobby)
    this.#schedule(lobby)
  }

  /** To be called at once after whatever moves an end: a heap bears one item out of its place, but not two. */
  #schedule(timed: Lobby | Player): void {
    const [into, from] = isOver(timed) ? [this.#over, this.#due] : [this.#due, this.#over]
    from.remove(timed)
    into.place(timed)
  }

  #countClient(client: string, difference: 1 | -1): void {
    countIn(this.#clientPlayers, client, difference)
  }

  #countLive(lobby: Lobby, difference: 1 | -1): void {
    this.live_lobby_count += difference
    this.#countCreator(lobby, difference)
  }

  #countCreator({ creator_identity_id }: Lobby, difference: 1 | -1): void {
    if (creator_identity_id !== null) countIn(this.#creatorLobbies, creator_identity_id, difference)
  }

  #lobby(lobby_id: string): Lobby {
    const lobby = this.lobbies.get(lobby_id)
    if (lobby === undefined) throw new Error(`the book has no lobby ${lobby_id}`)
    return lobby
  }

  #player(player_id: string): Player {
    const player = this.players.get(player_id)
    if (player === undefined) throw new Error(`the book has no player ${player_id}`)
    return player
  }
}

function newLobby(record: LobbyRecord): Lobby {
  return {
    ...record,
    is_closed: false,
    is_stalled: false,
    state: null,
    ready_ms: null,
    has_reported_players: false,
    idle_ms: record.create_ms + record.idle_grace_ms,
    stop_ms: null,
    stop_reason: null,
    seats_expired_while_connected: 0,
    connections_at_stop: null,
    ...onlyInMemory(),
  }
}

function onlyInMemory(): Omit<Lobby, keyof StoredLobby> {
  return { players: new Map(), held_count: 0, connection_count: 0, quiet_ms: null }
}

/** What a planned lobby is from its first moment on, which is now. */
function recordOf(plan: PlannedLobby, now_ms: number): LobbyRecord {
  const { is_closed, is_stalled, state, ready_ms, idle_ms, stop_ms, stop_reason, players, held_count, ...lobby } = plan
  const { has_reported_players, seats_expired_while_connected, connections_at_stop, ...rest } = lobby
  const { connection_count, quiet_ms, edge_ports_wanted, creator_lobbies_max, ...record } = rest
  const ready_deadline_ms = now_ms + (record.ready_deadline_ms - record.create_ms)
  return { ...record, create_ms: now_ms, ready_deadline_ms }
}

function newPlayer(record: PlayerRecord): Player {
  return { ...record, connect_ms: null, remove_ms: null, remove_reason: null, connect_key: null, disconnect_key: null }
}

type LobbyStopped = Extract<Change, { kind: 'lobby_stopped' }>
type PlayerRemoved = Extract<Change, { kind: 'player_removed' }>

/** A server that has exited has closed its connections: what was reported of them before says nothing of its end. */
function stopped({ lobby_id, connection_count }: Lobby, ms: number, reason: StopReason): LobbyStopped {
  const change: LobbyStopped = { kind: 'lobby_stopped', lobby_id, ms, reason }
  return connection_count === 0 || reason === 'exited' ? change : { ...change, open_connections: connection_count }
}

function removal(player_id: string, ms: number, reason: RemoveReason, disconnect_key: string | null): PlayerRemoved {
  return { kind: 'player_removed', player_id, ms, reason, disconnect_key }
}

function countIn(counts: Map<string, number>, key: string, difference: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + difference
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}

/** Null: no party comes. */
function partySize(sitters: readonly Entrant[]): number | null {
  return sitters[0]!.member === null ? null : sitters.length
}

function isTooLarge(sitters: readonly Entrant[], { max_players_party }: LobbyPlan): boolean {
  return (partySize(sitters) ?? 0) > max_players_party
}

function isOfParty(player: Player): player is Player & { identity_id: string } {
  return player.leader_player_id !== null && player.identity_id !== null
}

function isLobby(timed: Lobby | Player): timed is Lobby {
  return 'players' in timed
}

function isOver(timed: Lobby | Player): boolean {
  return (isLobby(timed) ? timed.stop_ms : timed.remove_ms) !== null
}

function endOf(timed: Lobby | Player): number {
  return (isLobby(timed) ? timed.stop_ms : timed.remove_ms) ?? Number.POSITIVE_INFINITY
}

function dueAt(timed: Lobby | Player): number {
  if (!isLobby(timed)) return timed.deadline_ms
  return timed.ready_ms === null ? timed.ready_deadline_ms : Number.POSITIVE_INFINITY
}

/** Answers what was there before. */
function replace<T extends object>(target: T, patch: Partial<T>): Partial<T> {
  const before: Partial<T> = {}
  for (const name of Object.keys(patch) as (keyof T)[]) before[name] = target[name]
  Object.assign(target, patch)
  return before
}

function undoAll(undos: readonly Undo[]): void {
  for (const undo of undos.toReversed()) undo()
}

function isWaiting(player: Player): boolean {
  return player.connect_ms === null && player.remove_ms === null
}

/** `about`: a lobby, a player, or what else says how it came about. */
function invariant(condition: boolean, law: string, about: object): void {
  if (condition) return
  const { players, ...facts } = about as Partial<Lobby>
  throw new BrokenLaw(law, players === undefined ? facts : { ...facts, players: [...players.keys()] })
}
