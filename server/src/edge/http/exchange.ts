// One request of a client: the connection it came over, what is known about it, and what responds to it. The proxy and the
// CDN respond; this room knows them only as a `Responder`.
import type { Socket } from 'node:net'
import type { Admitted, PlayerConnection, PlayerId } from '@musterhost/contract/edge'
import type { ClientSlot } from '../../addresses/client-share.ts'
import type { Ray } from '../../observe/ray.ts'
import type { AdmittedConnection } from '../presence/connection-limits.ts'
import type { CountedConnection } from '../presence/lobby-connections.ts'
import type { HostMeaning } from '../routes/hosts.ts'
import type { RoutedPort } from '../routes/routes.ts'
import { type Body, createBody } from './body.ts'
import type { ClientSocket } from './client-socket.ts'
import type { RequestHead } from './head.ts'
import type { Ticks } from './ticks.ts'

/** A client's connection, or a stream of HTTP/2, which is one for a single request. */
export type Connection = {
  readonly socket: ClientSocket
  /** The socket itself, which may carry something else than HTTP later; null: a stream. */
  readonly raw: Socket | null
  /** The connection's entry in the edge's connection limits. */
  readonly admitted: AdmittedConnection
  readonly ticks: Ticks
  readonly peer: string
  readonly is_secure: boolean
  /** The name of the TLS handshake; null: it named no host, or there is no TLS. */
  readonly server_name: string | null
  /** For a stream: what counts for its whole connection at lobbies and for players. */
  readonly visits: StreamVisits | null
  /** The host of the previous request: usually also that of the next one. */
  host: { header: string; host: string; meaning: HostMeaning | null } | null
  /** The address of the peer, and the key that limits count it by; empty until the first request. */
  client_ip: string
  client_key: string
  /** The lobby of the last request, and whether the connection's close is watched for it (lobby-connections.ts). */
  lobby_id: string | null
  is_counted: boolean
  /** The player of the last request to a lobby whose seats the edge checks. */
  player: Admitted | null
  /** Bytes received but not yet consumed. `scanned`: how many of them were scanned without finding the end of a head. */
  pending: Buffer | null
  scanned: number
  exchange: Exchange | null
  /** At least one request has been read. */
  has_requested: boolean
  /** No further request is read. */
  is_ending: boolean
  is_consuming: boolean
  /** The tick at which the current wait began. */
  since: number
  /** Bytes that may still arrive and be dropped. */
  skip_left: number
  /** Measures the rate of a large body: the tick of the start, and the bytes received by then. */
  pace: { since: number; bytes: number } | null
  readonly handlers: ClientConnectionHandlers
  unlisten: () => void
}

/** The visits of one connection of HTTP/2 to lobbies (http2/visits.ts). */
export type StreamVisits = {
  /** Returns what stands for the connection in the counts of the lobby, from this request on. */
  ofLobby: (exchange: Exchange, lobby_id: string) => CountedConnection
  /** The same for a player of the lobby. */
  ofPlayer: (exchange: Exchange, player: PlayerId) => PlayerConnection
}

/** What a responder calls on the reading side of a client's connection. */
export type ClientConnectionHandlers = {
  /** The whole response has been written: the next request may be read. */
  onResponseDone: (exchange: Exchange) => void
  /** The upstream takes the request's body, now or again. `before` is written in front of it. */
  sendBody: (exchange: Exchange, before: string) => void
  /** Gives up the socket, which no longer carries HTTP. Returns the bytes received but not consumed. */
  release: (connection: Connection) => Buffer | null
}

export type Exchange = {
  readonly connection: Connection
  readonly head: RequestHead
  readonly method: string
  host: string
  meaning: HostMeaning | null
  /** In origin form, as the backend receives it. */
  path: string
  client_ip: string
  /** The key that limits count the client by. */
  client_key: string
  /** The client came over TLS, to the edge or to a trusted proxy. */
  is_secure: boolean
  /** When the head was complete, by performance.now(). */
  readonly came_at: number
  /** Null: the request goes to a lobby, or its target is not known yet. */
  ray_id: string | null
  ray: Ray | null
  /** The lobby that the request goes to; null: none. */
  lobby: RoutedPort | null
  /** Lines for the backend about the admitted player; empty: the lobby's server checks the seats. */
  player_lines: string
  /** Lines for the role that the request goes to. */
  role_lines: string
  /** The WebSocket subprotocol before a token that was removed; null: none was. */
  token_protocol: string | null
  /** The body of the request. */
  readonly body: Body
  /** A small body that is still being collected; the request is not forwarded before it is complete. */
  arriving: ArrivingBody | null
  /** Null: the response is written at once, or its source is not known yet. */
  responder: Responder | null
  keeps_alive: boolean
  /** The head of the response has been written; the whole response has. */
  is_response_begun: boolean
  is_response_done: boolean
  /** The response ends with the connection, so only a reset shows that it broke. */
  is_until_end: boolean
  /** Responded, or the client is gone: no response is wanted any more. */
  is_over: boolean
}

/** `bytes`: grows with what arrives, up to the length of the body. */
export type ArrivingBody = { bytes: Buffer; received: number; since: number; slot: ClientSlot; onArrived: () => void }

/** What produces a response over time: a file that is streamed, or a backend. */
export type Responder = {
  /** The connection to a backend that takes the request's body; null: none, or none yet. */
  readonly upstream: BodyUpstream | null
  /** The request waits at a role, which has said so. */
  readonly is_parked: boolean
  /** The client's connection takes bytes again. */
  onDrain: () => void
  /** The client is gone. */
  onLost: () => void
}

/** A connection to a backend, as far as the body of a request is concerned. */
export type BodyUpstream = {
  readonly socket: Socket
  /** The head of the request has been sent. */
  readonly is_begun: boolean
  /** More of the body follows: a response that arrives before all of it must survive failed writes. */
  expectMoreBody: () => void
}

export function createExchange(connection: Connection, head: RequestHead): Exchange {
  return {
    connection,
    head,
    method: head.method,
    host: '',
    meaning: null,
    path: '',
    client_ip: '',
    client_key: '',
    is_secure: connection.is_secure,
    came_at: performance.now(),
    ray_id: null,
    ray: null,
    lobby: null,
    player_lines: '',
    role_lines: '',
    token_protocol: null,
    body: createBody(head.framing),
    arriving: null,
    responder: null,
    // Bytes after an upgrade request are not HTTP, whether the upgrade was accepted or not.
    keeps_alive: head.keeps_alive && !head.is_upgrade,
    is_response_begun: false,
    is_response_done: false,
    is_until_end: false,
    is_over: false,
  }
}
