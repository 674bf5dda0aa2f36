// One request of a client's and the answer to it. Whoever answers (a site, a redirect, a backend, a refusal) writes the
// answer here, so that what belongs to the client's connection is written in one place: whether it goes on, and the date.
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { RAY_HEADER } from '../../net/edge-proof.ts'
import type { Ray } from '../../observe/ray.ts'
import type { HostMeaning } from '../hosts.ts'
import { KEEP_ALIVE_MS_MAX, SMALL_BYTES_MAX } from '../limits.ts'
import type { LobbyPort } from '../routes.ts'
import type { Body } from './body.ts'
import { linesOf, type RequestHead } from './head.ts'
import type { Ticks } from './ticks.ts'
import type { Wire } from './wires.ts'

/** A client's connection, and what is known of it. */
export type Connection = {
  readonly socket: Socket
  readonly ticks: Ticks
  readonly peer: string
  readonly is_secure: boolean
  /** The host of the request before: mostly this one's too. */
  host: { header: string; host: string; meaning: HostMeaning | null } | null
  /** The peer as a client, and the key under which it is counted. */
  client: string
  source: string
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
  readonly keeper: Keeper
  unlisten: () => void
}

/** What those who answer say to those who read. */
export type Keeper = {
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
  /** Where its body goes and its answer comes from, once there is a connection. */
  wire: Wire | null
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

/** The whole answer; to a HEAD only its head. `headers` have the length of the body. */
export function answer(exchange: Exchange, status: number, headers: readonly string[], body: Buffer | null): void {
  if (exchange.is_over || exchange.is_answering) return
  const { socket } = exchange.connection
  const head = ownHead(exchange, status, headers)
  exchange.is_answering = true
  if (body === null || exchange.method === 'HEAD') {
    socket.write(head, 'latin1')
  } else if (body.length <= SMALL_BYTES_MAX) {
    socket.write(`${head}${body.toString('latin1')}`, 'latin1')
  } else {
    socket.cork()
    socket.write(head, 'latin1')
    socket.write(body)
    socket.uncork()
  }
  endAnswer(exchange)
}

/** The beginning of an answer whose body is written to the connection's socket, up to endAnswer. */
export function beginAnswer(exchange: Exchange, status: number, headers: readonly string[]): void {
  const head = ownHead(exchange, status, headers)
  exchange.is_answering = true
  exchange.connection.socket.write(head, 'latin1')
}

function ownHead(exchange: Exchange, status: number, headers: readonly string[]): string {
  const { date_line } = exchange.connection.ticks
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${linesOf(headers)}${rayLine(exchange)}${date_line}${connectionLines(exchange)}\r\n`
}

export function rayLine({ ray_id }: Exchange): string {
  return ray_id === null ? '' : `${RAY_HEADER}: ${ray_id}\r\n`
}

const KEEP_ALIVE = `Connection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_MS_MAX / 1_000}\r\n`

export function connectionLines({ keeps_alive }: Exchange): string {
  return keeps_alive ? KEEP_ALIVE : 'Connection: close\r\n'
}

/** All of the answer has been written. */
export function endAnswer(exchange: Exchange): void {
  exchange.is_answered = true
  exchange.connection.keeper.onAnswered(exchange)
}

/** The rest of the answer will not come: it must not look complete. */
export function breakAnswer({ connection, is_until_end }: Exchange): void {
  const { socket } = connection
  if (is_until_end && !connection.is_secure) socket.resetAndDestroy()
  else socket.destroy()
}
