// The book of one namespace: its lobbies, their seats and players, and the indexes over them. This file has the state and
// its reads. decide.ts reads a book and returns changes or a refusal; evolve.ts makes changes true and can undo them. No
// part of a book does I/O, reads a clock or is random: shards/shard-books.ts drives it.
//
// A lobby is starting until its server calls `ready`. Then it runs, closed or not, until it is stopped: it never became
// ready, has been empty, has exited, or was stopped on request. A player is reserved until the lobby server reports it
// connected, and leaves by disconnecting, at its deadline, or with its lobby. Stopped lobbies and players who left are
// remembered for MEMORY_MS, so that repeated and late calls get the right response.
import type { LobbyRecord, PartyMember } from '../../journal/changes.ts'
import { type CaptchaMemory, createCaptchaMemory } from './captcha-memory.ts'
import type { HeldIds, SeatTaken } from './commands.ts'
import { createHeap, type Heap } from './heap.ts'
import { Holds } from './holds.ts'
import { IdentitySeats } from './identity-seats.ts'
import { ALL_REPORTED_MS, Idle, type IdleRules, NO_IDLE_RULES } from './idle.ts'
import { createListing, type Listing } from './listing.ts'
import { dueAt, endOf, isOfParty, type Lobby, type Player } from './lobby.ts'
import { Matching } from './matching/matching.ts'
import { createOpenLobbyIndex, type OpenLobbyIndex } from './open-lobbies.ts'
import { type NetworksOf, Parties } from './parties.ts'
import type { ScheduleRules } from './schedule-rules.ts'
import { type Spectating, spectatingOf } from './spectating.ts'

/** How long idempotency keys, stopped lobbies and players who left are remembered. */
export const MEMORY_MS = 10 * 60_000
/** Lobbies of one page of a list. */
export const LIST_PAGE_MAX = 256

export type BookOptions = {
  /** A planned lobby reserves room in its region (1), or needs it no longer (-1). */
  onPlanned: (lobby: Lobby, sign: 1 | -1) => void
  idle_rules: IdleRules
  schedule_rules: ScheduleRules | null
  networksOf: NetworksOf
  /** Every edge has reported its connections up to this time. */
  reported_ms: number
}

/** Only evolve.ts, indexes.ts, holds.ts and spectating.ts change the members. */
export class Book {
  readonly lobbies = new Map<string, Lobby>()
  readonly players = new Map<string, Player>()
  /** Lobbies that are not stopped. */
  live_lobby_count = 0
  /** Clients that have solved a captcha. */
  readonly verified: CaptchaMemory = createCaptchaMemory()
  /** Versions whose lobbies take no new players, and of which no lobbies are started. */
  readonly draining = new Set<string>()
  /** What schedules say now; null: nothing. */
  schedule_rules: ScheduleRules | null
  /** Whether a version drains, or a schedule drains the namespace. */
  has_drains = false
  readonly parties: Parties
  readonly open_lobbies: OpenLobbyIndex = createOpenLobbyIndex()
  readonly listing: Listing = createListing()
  idle_rules: IdleRules
  /** Lobbies without players. */
  readonly idle: Idle
  readonly holds: Holds
  /** Requests that wait for a match. */
  readonly matching: Matching
  /** setReported() has been called. */
  has_edge_reports = false
  /** Live, reserved and held seats, by client key. */
  readonly client_players = new Map<string, number>()
  /** Null: no lobby has had seats for spectators. */
  spectating: Spectating | null = null
  readonly seat_keys = new Map<string, Player>()
  /** Lobbies with a code, by it, for as long as they are remembered. */
  readonly lobby_codes = new Map<string, Lobby>()
  /** Includes seats that have ended. */
  readonly identity_seats = new IdentitySeats()
  /** Live and planned lobbies, by the identity that created them. */
  readonly creator_lobbies = new Map<string, number>()
  /** Lobbies and players that have not ended, by the time that will end them. */
  readonly due: Heap<Lobby | Player> = createHeap((a, b) => dueAt(a) < dueAt(b))
  /** Lobbies and players that have ended, by the time of their end. */
  readonly ended: Heap<Lobby | Player> = createHeap((a, b) => endOf(a) < endOf(b))

  constructor(options: Partial<BookOptions> = {}) {
    this.idle_rules = options.idle_rules ?? NO_IDLE_RULES
    this.schedule_rules = options.schedule_rules ?? null
    this.countDrains()
    this.idle = new Idle(
      (key) => (this.isEnding(key.version_id) ? null : this.idle_rules.idle_max(key)),
      options.reported_ms ?? ALL_REPORTED_MS,
    )
    this.parties = new Parties(options.networksOf ?? ((key) => [{ key, factor: 1 }]))
    this.matching = new Matching((client_key, sign) => addCount(this.client_players, client_key, sign))
    this.holds = new Holds({
      countClient: ({ client_key, is_spectator }, sign) =>
        addCount(is_spectator ? spectatingOf(this).client_spectators : this.client_players, client_key, sign),
      arrange: (lobby) => {
        if (this.lobbies.get(lobby.lobby_id) !== lobby) return
        this.open_lobbies.arrange(lobby)
        if (lobby.max_spectators > 0) spectatingOf(this).arrange(lobby)
      },
      countRoom: (lobby, sign) => {
        options.onPlanned?.(lobby, sign)
        const { creator_identity_id } = lobby
        if (creator_identity_id !== null) addCount(this.creator_lobbies, creator_identity_id, sign)
      },
    })
  }

  /** Throws for a lobby that the caller must know. */
  lobby(lobby_id: string): Lobby {
    const lobby = this.lobbies.get(lobby_id)
    if (lobby === undefined) throw new Error(`the book has no lobby ${lobby_id}`)
    return lobby
  }

  /** Throws for a player that the caller must know. */
  player(player_id: string): Player {
    const player = this.players.get(player_id)
    if (player === undefined) throw new Error(`the book has no player ${player_id}`)
    return player
  }

  /** The seat that this key got. A seat that ended before its lobby was ready was never returned: it does not count. */
  seatOf(seat_key: string | null, now_ms: number): SeatTaken | null {
    const player = seat_key === null ? undefined : this.seat_keys.get(seat_key)
    if (player === undefined || player.create_ms + MEMORY_MS < now_ms) return null
    const ready_ms = this.lobbies.get(player.lobby_id)?.ready_ms ?? null
    if (player.remove_ms !== null) {
      if (player.remove_reason === 'unanswered' || ready_ms === null || player.remove_ms < ready_ms) return null
    }
    return { lobby_id: player.lobby_id, player_id: player.player_id, is_ready: ready_ms !== null }
  }

  /** Whether the request with this key has its seat, or waits for a match, so that it is not checked again. */
  hasSeat(seat_key: string | null, now_ms: number): boolean {
    return this.matching.ofKey(seat_key) !== undefined || this.seatOf(seat_key, now_ms) !== null
  }

  /** Live, reserved and held seats of a client. */
  playersOf(client_key: string): number {
    return this.client_players.get(client_key) ?? 0
  }

  /** The seats of this identity, as far as they are remembered. */
  seatsOf(identity_id: string): readonly Player[] {
    return this.identity_seats.of(identity_id)
  }

  /** The seats of this identity that were taken for a party. */
  partySeatsOf(identity_id: string): readonly Player[] {
    return this.seatsOf(identity_id).filter(isOfParty)
  }

  /** Live, reserved and held seats of a client as a spectator, or as a player. */
  clientSeats(client_key: string, is_spectator: boolean): number {
    return is_spectator ? (this.spectating?.client_spectators.get(client_key) ?? 0) : this.playersOf(client_key)
  }

  /** The members of the party whose seats are held, the leader first; null: the hold is for a single player. */
  heldParty({ player_id, member_ids = [] }: HeldIds): PartyMember[] | null {
    if (this.holds.get(player_id)?.member === null) return null
    return [player_id, ...member_ids].flatMap((id) => this.holds.get(id)?.member ?? [])
  }

  /** Live and planned lobbies of the same creator. */
  lobbiesBy({ creator_identity_id }: Pick<LobbyRecord, 'creator_identity_id'>): number {
    return creator_identity_id === null ? 0 : (this.creator_lobbies.get(creator_identity_id) ?? 0)
  }

  /** Live and planned lobbies. */
  lobbyCount(): number {
    return this.live_lobby_count + this.holds.planned_count
  }

  isDraining(of: readonly { version_id: string }[]): boolean {
    if (!this.has_drains) return false
    return this.drainedUntilMs() !== null || of.some(({ version_id }) => this.draining.has(version_id))
  }

  /** Until when a schedule drains the namespace; null: none does. */
  drainedUntilMs(): number | null {
    return this.schedule_rules?.drained_until_ms ?? null
  }

  /** To be called when `draining` or the rules of schedules have changed. */
  countDrains(): void {
    this.has_drains = this.draining.size > 0 || this.drainedUntilMs() !== null
  }

  isOutdated(version_id: string): boolean {
    const { version_id: current, rollout_version_id } = this.idle_rules
    return current !== null && current !== version_id && rollout_version_id !== version_id
  }

  /** Lobbies of such a version end when they are empty. */
  isEnding(version_id: string): boolean {
    return (this.has_drains && this.isDraining([{ version_id }])) || this.isOutdated(version_id)
  }

  /** The book holds nothing and can be dropped. */
  isEmpty(): boolean {
    const { lobbies, players, verified, parties, draining, holds, matching } = this
    const waiting = holds.size + matching.size
    return lobbies.size + players.size + verified.size() + parties.size + draining.size + waiting === 0
  }

  /** When decide.expire() or advanceMatching() returns its next change; null: never. */
  nextDueMs(): number | null {
    const next = this.due.peek()
    const due_ms = next === undefined ? Number.POSITIVE_INFINITY : dueAt(next)
    const parties_ms = this.parties.nextDueMs() ?? Number.POSITIVE_INFINITY
    const due = Math.min(this.idle.dueMs(), due_ms, parties_ms, this.matching.dueMs())
    return due === Number.POSITIVE_INFINITY ? null : due
  }

  /**
   * Public lobbies of these game modes, oldest first, one page at a time. An empty lobby is listed only when it is the only
   * lobby of its game mode.
   */
  list(query: { version_id: string; game_modes: ReadonlySet<string>; after: string | null }): {
    lobbies: Lobby[]
    more: boolean
  } {
    const after = (query.after === null ? null : this.lobbies.get(query.after)) ?? null
    return this.listing.page({ ...query, after, lobbies_max: LIST_PAGE_MAX })
  }
}

/** A count of 0 is not kept. */
export function addCount(counts: Map<string, number>, key: string, difference: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + difference
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}
