// Seats that are held while the game's endpoint verifies a request: in an existing lobby, or in a planned lobby, which is
// created when the first of its holds becomes a seat. A hold counts like a seat in every limit: of its lobby, its client,
// the namespace's lobbies and the region's room. Holds are in no journal, so a book that is loaded has none. A hold ends as a
// seat, by being dropped, or after SEAT_HOLD_MS.
import type { SeatAction } from '@musterhost/contract'
import type { PartyMember } from '../../journal/changes.ts'
import type { LobbyPlan, SeatTaken } from './commands.ts'
import { createHeap } from './heap.ts'
import type { Lobby } from './lobby.ts'
import { createOpenLobbyIndex, type LobbyKey, type Tags } from './open-lobbies.ts'

/** The game's endpoint must respond within this time. */
export const SEAT_HOLD_MS = 10_000

/** A lobby as it will be created, apart from its time of creation and its ports. */
export type PlannedLobby = Lobby & Pick<LobbyPlan, 'edge_ports_wanted' | 'creator_lobbies_max'>

/** `player_id`: the player that the hold becomes. */
export type Hold = {
  player_id: string
  client_key: string
  /** The party member whose seat it is; null without a party. */
  member: PartyMember | null
  action: SeatAction
  is_spectator: boolean
  lobby: Lobby
  /** The same lobby while it is planned; null once it exists. */
  plan: PlannedLobby | null
  expire_ms: number
}

/** `seat`: the request needs no verification, or has its seat already. */
export type HeldSeat = { hold: Hold } | { seat: SeatTaken }

/** What counts holds as well. `sign` is 1 when a hold begins and -1 when it ends. */
export type HoldCounts = {
  countClient: (hold: Hold, sign: 1 | -1) => void
  /** The free seats of an existing lobby have changed. */
  arrange: (lobby: Lobby) => void
  /** A planned lobby reserves room in its region. */
  countRoom: (lobby: Lobby, sign: 1 | -1) => void
}

export class Holds {
  readonly #counts: HoldCounts
  readonly #holds = new Map<string, Hold>()
  readonly #by_expiry = createHeap<Hold>((a, b) => a.expire_ms < b.expire_ms)
  readonly #plans = new Map<string, PlannedLobby>()
  readonly #open_plans = createOpenLobbyIndex()

  constructor(counts: HoldCounts) {
    this.#counts = counts
  }

  get size(): number {
    return this.#holds.size
  }

  get planned_count(): number {
    return this.#plans.size
  }

  get(player_id: string): Hold | undefined {
    return this.#holds.get(player_id)
  }

  put(hold: Hold): void {
    this.#holds.set(hold.player_id, hold)
    this.#by_expiry.put(hold)
    this.#counts.countClient(hold, 1)
    this.#count(hold, 1)
  }

  /** Returns the hold that has ended; undefined when there was none. */
  drop(player_id: string): Hold | undefined {
    const hold = this.#holds.get(player_id)
    if (hold === undefined) return undefined
    this.#holds.delete(player_id)
    this.#by_expiry.remove(hold)
    this.#counts.countClient(hold, -1)
    this.#count(hold, -1)
    return hold
  }

  /** A planned lobby that a find may share: the fullest, among equals the oldest. */
  choose(keys: readonly LobbyKey[], tags: Tags, party_size: number | null): PlannedLobby | null {
    const chosen = this.#plans.size === 0 ? null : this.#open_plans.choose(keys, tags, party_size)
    return chosen === null ? null : this.#plans.get(chosen.lobby_id)!
  }

  /** The lobby is created: holds of its plan become holds of the lobby. Returns the plan, if there was one. */
  create(lobby: Lobby): PlannedLobby | undefined {
    const planned = this.#plans.get(lobby.lobby_id)
    if (planned === undefined) return undefined
    this.#removePlan(planned)
    this.#move(planned, lobby, null)
    return planned
  }

  /** Undoes create(): the lobby is a plan again, or its holds end. */
  uncreate(lobby: Lobby, planned: PlannedLobby | undefined): void {
    if (lobby.held_count + lobby.held_spectator_count === 0) return
    if (planned === undefined) {
      for (const hold of [...this.#holds.values()]) if (hold.lobby === lobby) this.drop(hold.player_id)
      return
    }
    this.#move(lobby, planned, planned)
    this.#arrangePlan(planned)
  }

  expire(now_ms: number): void {
    const ends = this.#by_expiry
    for (let first = ends.peek(); first !== undefined && first.expire_ms <= now_ms; first = ends.peek()) {
      this.drop(first.player_id)
    }
  }

  #count({ lobby, plan, is_spectator }: Hold, sign: 1 | -1): void {
    if (is_spectator) lobby.held_spectator_count += sign
    else lobby.held_count += sign
    if (plan === null) this.#counts.arrange(lobby)
    else if (plan.held_count === 0) this.#removePlan(plan)
    else this.#arrangePlan(plan)
  }

  /** Finds do not share a planned custom lobby: until it exists it is for its creator only. */
  #arrangePlan(lobby: PlannedLobby): void {
    if (!this.#plans.has(lobby.lobby_id)) {
      this.#plans.set(lobby.lobby_id, lobby)
      this.#counts.countRoom(lobby, 1)
    }
    if (!lobby.is_custom) this.#open_plans.arrange(lobby)
  }

  #removePlan(lobby: PlannedLobby): void {
    if (!this.#plans.delete(lobby.lobby_id)) return
    this.#open_plans.remove(lobby)
    this.#counts.countRoom(lobby, -1)
  }

  #move(from: Lobby, to: Lobby, plan: PlannedLobby | null): void {
    to.held_count = from.held_count
    to.held_spectator_count = from.held_spectator_count
    for (const hold of this.#holds.values()) if (hold.lobby === from) Object.assign(hold, { lobby: to, plan })
  }
}
