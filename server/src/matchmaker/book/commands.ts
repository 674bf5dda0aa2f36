// What commands on a book take and return. Types only: the parts of a book know these, and not the book.
import type { ErrorCode, ErrorMetadata } from '@musterhost/contract'
import type { Change, EdgePort, LobbyRecord } from '../../journal/changes.ts'
import type { LobbyKey, Tags } from './open-lobbies.ts'

export type Granted<T> = { changes: readonly Change[]; result: T }
/** `message`: in place of the code's own. `noted`: changes that happen although the command is refused. */
export type Refused = { refused: ErrorCode; metadata?: ErrorMetadata; message?: string; noted?: readonly Change[] }
export type Decision<T> = Granted<T> | Refused

/** Undoes an apply(). Undoes are called in the reverse order of the applies. */
export type Undo = () => void

/** `same_number_as`: the name of the requested port of the other transport that gets the same number. */
export type PortRequest = Omit<EdgePort, 'port'> & { same_number_as?: string }

/** A lobby that may be created: everything but its id, its node, its time of creation and the numbers of its ports. */
export type LobbyPlan = Omit<LobbyRecord, 'lobby_id' | 'node_id' | 'create_ms' | 'ready_deadline_ms' | 'edge_ports'> & {
  ready_within_ms: number
  /** Live lobbies that its creator may have; null: no limit. */
  creator_lobbies_max: number | null
  edge_ports_wanted: readonly PortRequest[]
  /** Set when the last lobbies of the same version, region and game mode failed to start. */
  failed_before?: FailedBefore | undefined
}

/** `failure_count`: failed starts in a row. `pause_ms`: for how long no other lobby may be started. The rest is about the last failed lobby, from its run. */
export type FailedBefore = {
  failure_count: number
  pause_ms: number
  lobby_id: string
  exit_reason: string | null
  exit_code: number | null
}

/** What a command needs from outside its book. A shard has one, and sets `now_ms` before each command. */
export type Env = {
  now_ms: number
  chooseNode: ChooseNode
  choosePorts: ChoosePorts
}

/** Where a lobby will run. `node_id`: null: any runner of the region may run it. */
export type ChosenNode = { node_id: string | null }

/**
 * The node for a lobby of that size; null: its region has no room. All namespaces share a region, so the book cannot know.
 * `reserved`: the node where the lobby has room already.
 */
export type ChooseNode = (
  plan: Pick<LobbyPlan, 'region' | 'cpu_cores' | 'memory_mb'>,
  reserved?: string | null,
) => ChosenNode | null

/**
 * Port numbers that no lobby has; null: there are not enough. All namespaces share the ports, so the book cannot know. `node_id`:
 * where the lobby will run. Ports of the edge of that node are preferred.
 */
export type ChoosePorts = (
  wanted: readonly PortRequest[],
  now_ms: number,
  node_id: string | null,
) => readonly EdgePort[] | null

/** The members of every request for a seat. */
export type RequestedSeat = {
  client_key: string
  seat_key: string | null
  /** Live and reserved players that this client may have in the namespace, and as many spectators. */
  client_players_max: number
  lobby_count_max: number
  identity_id: string | null
  /** The deployed version, when the request is for an earlier one: no lobby is created for it. */
  replaced_by?: string | undefined
  /** The request is for a seat of a spectator, which counts in no limit of players. */
  is_spectator: boolean
  /** The request is for all members of the party that the identity leads; null: for the identity alone. */
  party: PartyLimits | null
}

export type PartyLimits = {
  /** Returns client_players_max for a member with that IP address. */
  playersMaxOf: (client_ip: string) => number
}

export type FindRequest = RequestedSeat & { keys: readonly LobbyKey[]; tags: Tags; plan: LobbyPlan | null }
export type JoinRequest = RequestedSeat & { lobby_id: string }
export type CreateRequest = RequestedSeat & { plan: LobbyPlan }
/** A backend requests a new lobby with a seat for each player. `party`: the limits of these players. */
export type AllocateRequest = RequestedSeat & { plan: LobbyPlan; players: readonly AllocatedPlayer[] }
/** The client is null where the backend does not say the address: no limit of a client applies. */
export type AllocatedPlayer = { client_ip: string | null; client_key: string | null; identity_id: string | null }

/** A request that the game's endpoint must verify. A find may also match lobbies of game modes without verification. */
export type HoldRequest =
  | { action: 'find'; request: FindRequest; verified_modes: ReadonlySet<string> }
  | { action: 'join'; request: JoinRequest }
  | { action: 'create'; request: CreateRequest }

/** Made anew for each request. `member_ids`: players of the other members, where a party may come. */
export type FreshIds = { lobby_id: string; player_id: string; member_ids?: readonly string[] }
/** The ids of the players whose seats are held. */
export type HeldIds = Omit<FreshIds, 'lobby_id'>
/** `is_ready`: from the same decision, so that it is as durable as the seat when the response leaves. */
export type SeatTaken = { lobby_id: string; player_id: string; is_ready: boolean }
