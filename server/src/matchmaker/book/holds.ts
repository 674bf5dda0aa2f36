// Places that are held while a game's own endpoint is asked: in a lobby that is there, or in a lobby that is planned and
// will be created by the first of its holds that becomes a seat. A hold is a seat in every count (of its lobby, its
// client, the namespace's lobbies, the region's room) and in no journal: a book that is read anew has none. It ends as a
// seat, by being let go, or by its time. A part of the book: no clock, no I/O.
import type { SeatAction } from '@muster/contract'
import type { PartyMember } from '../../journal/changes.ts'
import type { LobbyPlan } from './commands.ts'
import { createHeap } from './heap.ts'
import type { Lobby } from './lobby.ts'
import { createOpenLobbyIndex, type LobbyKey, type Tags } from './open-lobbies.ts'

/** The game's endpoint must have answered by then. */
export const SEAT_HOLD_MS = 10_000

/** A lobby as it will be, but for its moment and its ports. */
export type PlannedLobby = Lobby & Pick<LobbyPlan, 'edge_ports_wanted' | 'creator_lobbies_max'>

/** Named by the player that it will be. */
export type Hold = {
  player_id: string
  client: string
  /** Whose it is, where a party is seated. */
  member: PartyMember | null
  action: SeatAction
  lobby: Lobby
  /** The same lobby, while it is yet to be created; null once it is there. */
  plan: PlannedLobby | null
  expire_ms: number
}

/** What else counts a hold. `sign` is 1 when it is taken and -1 when it is over. */
export type HoldCounts = {
  client: (client: string, sign: 1 | -1) => void
  /** The lobby, which is no plan, has one place more or less. */
  place: (lobby: Lobby) => void
  /** Room of a region that a planned lobby will need. */
  room: (lobby: Lobby, sign: 1 | -1) => void
}

export type Holds = {
  get: (player_id: string) => Hold | undefined
  put: (hold: Hold) => void
  /** The hold as it was; undefined when there is none. */
  drop: (player_id: string) => Hold | undefined
  /** A planned lobby that a find may share: the fullest, among equals the oldest. */
  choose: (places: readonly LobbyKey[], tags: Tags, party_size: number | null) => PlannedLobby | null
  planned_count: () => number
  /** The lobby comes into being: holds of its plan are holds of it. Answers the plan, if there was one. */
  create: (lobby: Lobby) => PlannedLobby | undefined
  /** It does not after all: it is a plan again, or its holds are over. */
  uncreate: (lobby: Lobby, plan: PlannedLobby | undefined) => void
  expire: (now_ms: number) => void
  size: () => number
}

export function createHolds(counts: HoldCounts): Holds {
  const holds = new Map<string, Hold>()
  const ends = createHeap<Hold>((a, b) => a.expire_ms < b.expire_ms)
  const plans = new Map<string, PlannedLobby>()
  const shelves = createOpenLobbyIndex()

  function put(hold: Hold): void {
    holds.set(hold.player_id, hold)
    ends.place(hold)
    counts.client(hold.client, 1)
    count(hold, 1)
  }

  function drop(player_id: string): Hold | undefined {
    const hold = holds.get(player_id)
    if (hold === undefined) return undefined
    holds.delete(player_id)
    ends.remove(hold)
    counts.client(hold.client, -1)
    count(hold, -1)
    return hold
  }

  function count({ lobby, plan }: Hold, sign: 1 | -1): void {
    lobby.held_count += sign
    if (plan === null) counts.place(lobby)
    else if (plan.held_count === 0) unplan(plan)
    else keepPlan(plan)
  }

  /** A custom lobby is its creator's until it is there. */
  function keepPlan(lobby: PlannedLobby): void {
    if (!plans.has(lobby.lobby_id)) {
      plans.set(lobby.lobby_id, lobby)
      counts.room(lobby, 1)
    }
    if (!lobby.is_custom) shelves.arrange(lobby)
  }

  function unplan(lobby: PlannedLobby): void {
    if (!plans.delete(lobby.lobby_id)) return
    shelves.remove(lobby)
    counts.room(lobby, -1)
  }

  function move(from: Lobby, to: Lobby, plan: PlannedLobby | null): void {
    to.held_count = from.held_count
    for (const hold of holds.values()) if (hold.lobby === from) Object.assign(hold, { lobby: to, plan })
  }

  return {
    get: (player_id) => holds.get(player_id),
    put,
    drop,
    choose(places, tags, party_size) {
      const chosen = plans.size === 0 ? null : shelves.choose(places, tags, party_size)
      return chosen === null ? null : plans.get(chosen.lobby_id)!
    },
    planned_count: () => plans.size,
    create(lobby) {
      const planned = plans.get(lobby.lobby_id)
      if (planned === undefined) return undefined
      unplan(planned)
      move(planned, lobby, null)
      return planned
    },
    uncreate(lobby, planned) {
      if (lobby.held_count === 0) return
      if (planned === undefined) {
        for (const hold of [...holds.values()]) if (hold.lobby === lobby) drop(hold.player_id)
        return
      }
      move(lobby, planned, planned)
      keepPlan(planned)
    },
    expire(now_ms) {
      for (let first = ends.peek(); first !== undefined && first.expire_ms <= now_ms; first = ends.peek()) {
        drop(first.player_id)
      }
    },
    size: () => holds.size,
  }
}
