// One request of a client's, and what it goes through: the connection that it came over, and the wire to a backend that
// carries it, where one does. Types only: who reads, who answers and who forwards all know these, and not each other.
import type { Socket } from 'node:net'
import type { ApiError } from '@muster/contract'
import type { ClientPlace } from '../../addresses/client-share.ts'
import type { Ray } from '../../observe/ray.ts'
import type { Guest } from '../connection-limits.ts'
import type { HostMeaning } from '../hosts.ts'
import type { Turns } from '../proxy/client-queue.ts'
import type { ParkingChannel } from '../proxy/parking.ts'
import type { PoolName, RolePools } from '../proxy/pools.ts'
import type { Address, LobbyPort } from '../routes.ts'
import type { Body } from './body.ts'
import type { RequestHead } from './head.ts'
import type { NameTable } from './lines.ts'
import type { Ticks } from './ticks.ts'

/** A client's connection, and what is known of it. */
export type Connection = {
  readonly socket: Socket
  /** The connection as one of those that the edge counts. */
  readonly guest: Guest
  readonly ticks: Ticks
  readonly peer: string
  readonly is_secure: boolean
  /** The host of the request before: mostly this one's too. */
  host: { header: string; host: string; meaning: HostMeaning | null } | null
  /** The peer as a client, and the key under which it is counted. */
  client: string
  source: string
  /** The lobby of its last request, and whether its close is noticed there (lobby-connections.ts). */
  lobby_id: string | null
  is_counted: boolean
  /** What has come and nobody has taken yet; of it, how much has been looked at in vain. */
  pending: Buffer | null
  looked_at: number
  exchange: Exchange | null
  has_asked: boolean
  /** Nothing that comes is a request any more. */
  is_ending: boolean
  is_taking: boolean
  /** The tick at which what is waited for began. */
  since: number
  /** Bytes that nobody wants and that may still come. */
  skip_left: number
  /** Since when the rate of a large body is measured, and how many bytes had come by then. */
  pace: { since: number; bytes: number } | null
  readonly keeper: ClientConnectionHandlers
  unlisten: () => void
}

/** What those who answer say to those who read. */
export type ClientConnectionHandlers = {
  /** The answer has been written whole: what comes next? */
  onAnswered: (exchange: Exchange) => void
  /** There is somebody to take the request's body now, or again. `before` goes to the wire in front of it. */
  sendBody: (exchange: Exchange, before: string) => void
  /** The socket is no HTTP any more. Answers what has come over it and was not taken. */
  release: (connection: Connection) => Buffer | null
}

export type Exchange = {
  readonly connection: Connection
  readonly head: RequestHead
  readonly method: string
  host: string
  meaning: HostMeaning | null
  /** In origin form, as the backend is to see it. */
  path: string
  /** The client's address, and the key under which it is counted. */
  client: string
  source: string
  /** The client came over TLS, to us or to a proxy that we trust. */
  is_secure: boolean
  /** When its head had come, by performance.now(). */
  readonly came_at: number
  /** Null: it goes to a lobby, or nobody knows yet where. */
  ray_id: string | null
  ray: Ray | null
  /** The lobby that it goes to. */
  lobby: LobbyPort | null
  /** Of the request. */
  readonly body: Body
  /** A small body that has not come whole; no role is asked before it has. */
  arriving: ArrivingBody | null
  /** What it is forwarded to; null: nothing yet. */
  target: { upstream: Upstream; address: Address; attempt: number } | null
  /** Where its body goes and its answer comes from, once there is a connection. */
  wire: UpstreamConnection | null
  /** Its place in a pool of the role that it goes to (proxy/pools.ts). */
  place: ClientPlace | null
  /** Whose turn it has or waits for (proxy/client-queue.ts). */
  turns: Turns | null
  /** It waits at the role without a connection, or its response is being fetched from there. */
  parked: ParkedRequest | null
  keeps_alive: boolean
  /** The head of the answer has left; the answer has. */
  is_answering: boolean
  is_answered: boolean
  /** The answer's end cannot be told from a broken connection but by a reset. */
  is_until_end: boolean
  /** Answered, or the client is gone: nobody waits for an answer any more. */
  is_over: boolean
  /** For who answers bit by bit. */
  onDrain: (() => void) | null
  onLost: (() => void) | null
}

/** `bytes` grows with what comes, up to the length of the body. */
export type ArrivingBody = { bytes: Buffer; received: number; since: number; place: ClientPlace; onArrived: () => void }

/** `claim_line`: the header that fetches its response. */
export type ParkedRequest = { number: number; claim_line: string }

/** What is connected to one address. */
export type Target = { key: string; count: number; free: UpstreamConnection[] }

/** A connection to a backend: proxy/upstream-pool.ts makes and keeps them, proxy/forward.ts has them carry. */
export type UpstreamConnection = {
  readonly socket: Socket
  readonly target: Target
  /** For a handshake, after which it belongs to one client. */
  readonly is_single: boolean
  is_connected: boolean
  /** Whose request it carries; null: it is free. */
  exchange: Exchange | null
  upstream: Upstream | null
  /** How often a connection for this request has been tried before. */
  attempt: number
  /** The request's head has been sent: it must not be sent again. */
  is_begun: boolean
  /** The tick at which what is waited for began. */
  since: number
  /** What has broken it; a write that failed leaves it open for an answer (early-responses.ts). */
  error: NodeJS.ErrnoException | null
  outlives_writes: boolean
  /** Of an answer whose head has not come to its end; of it, how much has been looked at. */
  pending: Buffer | null
  looked_at: number
  interim_answers: number
  /** Null: the answer's head is still to come. */
  answer: Body | null
  to_chunks: boolean
  keeps_alive: boolean
  unlisten: () => void
}

/** What only api and matchmaker have. */
export type RoleUpstream = {
  pools: RolePools
  channel: ParkingChannel
  turns: Readonly<Partial<Record<PoolName, Turns>>>
}

/** How a backend is spoken to. */
export type Upstream = {
  /** Null: a lobby. */
  role: RoleUpstream | null
  /** No connection could be made, for the nth time: where to try next, or null to give up. May throw an ApiError. */
  again: (exchange: Exchange, attempt: number, error: NodeJS.ErrnoException) => Promise<Address | null>
  /** What the client is told when there is no answer, or none that is HTTP. */
  unavailable: () => ApiError
  /** Whether the backend does not get a header of the request; null: it gets all. The name is in lower case. */
  isRequestDropped: ((name: string, value: string) => boolean) | null
  /** The only headers of the response that the client gets; null: it gets all. */
  response_allowed: NameTable<true> | null
  /** Put in on the way, as whole lines. */
  request_added: string
  response_added: string
}
