// What a book is asked, and what it answers. Types only: the parts of a book know these, and not the book.
import type { ErrorCode, ErrorMetadata } from '@muster/contract'
import type { Change, EdgePort, LobbyRecord } from '../../journal/changes.ts'
import type { Lobby } from './lobby.ts'
import type { Place, Tags } from './open-lobbies.ts'

export type Granted<T> = { changes: readonly Change[]; result: T }
/** `noted`: what comes true although the command is refused. */
export type Refused = { refused: ErrorCode; metadata?: ErrorMetadata; noted?: readonly Change[] }
export type Decision<T> = Granted<T> | Refused

/** Undoes an apply(). Undoes are called in the reverse order of the applies. */
export type Undo = () => void

export type PortWish = Omit<EdgePort, 'port'>

/** A lobby that may be created: everything but its id, its moment and the numbers of its ports. */
export type LobbyPlan = Omit<LobbyRecord, 'lobby_id' | 'create_ms' | 'ready_deadline_ms' | 'edge_ports'> & {
  ready_within_ms: number
  /** Live lobbies that its creator may have; null: as many as he likes. */
  creator_lobbies_max: number | null
  edge_ports_wanted: readonly PortWish[]
  /** Lobbies by plans for the same place that did not start, one after the other, just before. */
  failed_before?: FailedBefore | undefined
}

/** `pause_ms`: for how long no other may be started. The rest is about the last of them, as its run's row has it. */
export type FailedBefore = {
  failure_count: number
  pause_ms: number
  lobby_id: string
  exit_reason: string | null
  exit_code: number | null
}

/** Whether the plan's region can hold another lobby of that size: what all namespaces use is not the book's to know. */
export type HasRoom = (plan: LobbyPlan) => boolean

/** Numbers for the ports, which nobody else has; null: there are not enough. Which are free is not the book's to know. */
export type ChoosePorts = (wanted: readonly PortWish[], now_ms: number) => readonly EdgePort[] | null

/** What every request for a seat brings along. */
export type SeatWish = {
  client: string
  seat_key: string | null
  /** Live and reserved players that this client may have in the namespace. */
  client_players_max: number
  lobby_count_max: number
  identity_id: string | null
  /** He asks for all of the party that he leads; null: for himself. */
  party: PartyWish | null
}

export type PartyWish = {
  /** What client_players_max is for one who comes from that address. */
  playersMaxOf: (address: string) => number
}

export type FindRequest = SeatWish & { places: readonly Place[]; tags: Tags; plan: LobbyPlan | null }
export type JoinWish = SeatWish & { lobby_id: string }
export type CreateWish = SeatWish & { plan: LobbyPlan }

/** A wish whose game wants to be asked first; a find may also meet lobbies of game modes that do not. */
export type HoldWish =
  | { action: 'find'; wish: FindRequest; verified_modes: ReadonlySet<string> }
  | { action: 'join'; wish: JoinWish }
  | { action: 'create'; wish: CreateWish }

/** Told of the room that planned lobbies will need, which is not the book's to know. */
export type KeepRoom = (lobby: Lobby, sign: 1 | -1) => void

/** `member_ids`: players of the other members, where a party may come. */
export type FreshIds = { lobby_id: string; player_id: string; member_ids?: readonly string[] }
/** Under which places are held. */
export type HeldIds = Omit<FreshIds, 'lobby_id'>
/** `is_ready`: as of the same decision, so that it is as durable as the seat when the answer leaves. */
export type SeatTaken = { lobby_id: string; player_id: string; is_ready: boolean }
