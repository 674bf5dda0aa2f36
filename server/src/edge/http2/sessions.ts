// Clients' connections of HTTP/2. Node reads the frames, and each stream becomes a connection for one request
// (stream-socket.ts), which http/connections.ts serves. Here are the limits of what HTTP/1.1 does not have: streams of one
// connection, and frames that carry no request.
//
// States: open -> closing (no further stream; those that are open may end) -> ended (nothing is read; the socket closes).
import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { ApiError } from '@musterhost/contract'
import { clientKey } from '../../addresses/client-ip.ts'
import { ClientShare, type NoSlot, type SharedShare } from '../../addresses/client-share.ts'
import { type Connections, isBusy } from '../http/connections.ts'
import type { Connection } from '../http/exchange.ts'
import { LateCheck } from '../http/late-check.ts'
import { type Ticks, ticksOf } from '../http/ticks.ts'
import {
  DRAIN_MS_MAX,
  HEADER_BYTES_MAX,
  HEADER_MS_MAX,
  HTTP2_BODIES_POOL,
  HTTP2_CONNECTION_WINDOW_BYTES,
  HTTP2_CONTROL_BYTES_MAX,
  HTTP2_DATA_OVERHEAD_SHARE,
  HTTP2_FIELD_BYTES_MAX,
  HTTP2_FIELDS_MAX,
  HTTP2_INVALID_FRAMES_MAX,
  HTTP2_MEMORY_MB_MAX,
  HTTP2_PINGS_MAX,
  HTTP2_REFUSED_STREAMS_MAX,
  HTTP2_RESETS_BURST_MAX,
  HTTP2_RESETS_PER_SECOND_MAX,
  HTTP2_SETTINGS_ENTRIES_MAX,
  HTTP2_SETTINGS_FRAMES_MAX,
  HTTP2_STREAM_WINDOW_BYTES,
  HTTP2_STREAMS_MAX,
  KEEP_ALIVE_MS_MAX,
  SMALL_BODY_BYTES_MAX,
} from '../limits.ts'
import type { AdmittedConnection } from '../presence/connection-limits.ts'
import { serverNameOf } from '../tls/tls.ts'
import { requestText } from './request-text.ts'
import { type BodyBytes, StreamSocket } from './stream-socket.ts'
import { Visits } from './visits.ts'

const HEADER_TICKS = ticksOf(HEADER_MS_MAX)
const KEEP_ALIVE_TICKS = ticksOf(KEEP_ALIVE_MS_MAX)
const DRAIN_TICKS = ticksOf(DRAIN_MS_MAX)
const RETRY_AFTER_S = 1

const SESSION_OPTIONS = {
  maxSessionInvalidFrames: HTTP2_INVALID_FRAMES_MAX,
  maxSessionRejectedStreams: HTTP2_REFUSED_STREAMS_MAX,
  maxSessionMemory: HTTP2_MEMORY_MB_MAX,
  maxSettings: HTTP2_SETTINGS_ENTRIES_MAX,
  maxHeaderListPairs: HTTP2_FIELDS_MAX,
  streamResetBurst: HTTP2_RESETS_BURST_MAX,
  streamResetRate: HTTP2_RESETS_PER_SECOND_MAX,
  // A backend may send a header twice, and over HTTP/1.1 the client gets both.
  strictSingleValueFields: false,
  settings: {
    maxConcurrentStreams: HTTP2_STREAMS_MAX,
    initialWindowSize: HTTP2_STREAM_WINDOW_BYTES,
    maxHeaderListSize: HTTP2_FIELD_BYTES_MAX,
  },
}

type Stream = { socket: StreamSocket; connection: Connection }

type Session = {
  readonly node: ServerHttp2Session
  readonly socket: TLSSocket
  readonly admitted: AdmittedConnection
  readonly streams: Set<Stream>
  readonly visits: Visits
  /** Host and client of the previous stream: usually also those of the next one. */
  known: Pick<Connection, 'host' | 'client_ip' | 'client_key'>
  state: 'open' | 'closing' | 'ended'
  has_requested: boolean
  /** The tick at which the current wait without a stream began. */
  since: number
  readonly bytes: BodyBytes
  /** What had been counted at the previous tick. `read`: decrypted bytes of all frames. */
  before: BodyBytes & { read: number }
  /** Since the previous tick. */
  arrived: Arrived
}

type Arrived = { streams: number; pings: number; settings: number }

/** `shared`: the bodies at other edge processes. */
export type Http2Options = { ticks: Ticks; connections: Connections; shared: SharedShare | null }

export class Http2Sessions {
  readonly #ticks: Ticks
  readonly #connections: Connections
  readonly #open = new Set<Session>()
  /** Streams whose body may fill their window. */
  readonly #bodies: ClientShare
  #is_closing = false

  constructor({ ticks, connections, shared }: Http2Options) {
    this.#bodies = new ClientShare(HTTP2_BODIES_POOL, shared)
    this.#ticks = ticks
    this.#connections = connections
    new LateCheck(ticks, this.#open, (session) => this.#check(session))
  }

  /** Reads streams from a connection whose handshake has chosen HTTP/2. */
  serve(socket: TLSSocket, admitted: AdmittedConnection): void {
    const node = performServerHandshake(socket, SESSION_OPTIONS)
    const session: Session = {
      ...{ node, socket, admitted, streams: new Set(), visits: new Visits(this.#ticks), state: 'open' },
      ...{ known: { host: null, client_ip: '', client_key: '' }, has_requested: false, since: this.#ticks.now },
      ...{ bytes: { received: 0, sent: 0 }, before: { received: 0, sent: 0, read: socket.bytesRead } },
      arrived: nothing(),
    }
    this.#open.add(session)
    admitted.isBusy = () => [...session.streams].some(({ connection }) => isBusy(connection))
    // The connection closes after every error.
    node.on('error', () => {})
    node.on('ping', () => void session.arrived.pings++)
    node.on('remoteSettings', () => void session.arrived.settings++)
    node.on('stream', (stream, _headers, _flags, fields) => this.#onStream(session, stream, fields))
    node.on('close', () => void this.#onEnded(session))
    socket.once('close', () => {
      this.#onEnded(session)
      this.#open.delete(session)
    })
    node.setLocalWindowSize(HTTP2_CONNECTION_WINDOW_BYTES)
    if (this.#is_closing) this.#close(session)
  }

  /** Each connection ends after its open streams. The client opens the next one at another edge. */
  retire(): void {
    this.#is_closing = true
    for (const session of this.#open) this.#close(session)
  }

  #onStream(session: Session, stream: ServerHttp2Stream, fields: readonly string[]): void {
    session.has_requested = true
    session.arrived.streams++
    if (stream.destroyed || stream.closed) {
      stream.on('error', () => {})
      return
    }
    const has_body = !stream.endAfterHeaders
    const is_head = fieldOf(fields, ':method') === 'HEAD'
    const length = fieldOf(fields, 'content-length')
    const socket = new StreamSocket(stream, {
      ...{ has_body, is_head, is_chunked: has_body && length === undefined },
      bytes: session.bytes,
    })
    const slot = session.admitted.limits.enterStream(session.admitted.peer, {
      displace: () => socket.destroy(),
      isBusy: () => isBusy(connection),
    })
    if (slot === null) {
      stream.close(constants.NGHTTP2_REFUSED_STREAM)
      return
    }
    const admitted = { ...session.admitted, isBusy: () => isBusy(connection) }
    const connection = this.#connections.serveStream(socket, admitted, {
      ...{ server_name: serverNameOf(session.socket), visits: session.visits, ...session.known },
    })
    const one = { socket, connection }
    session.streams.add(one)
    socket.once('close', () => {
      session.streams.delete(one)
      session.since = this.#ticks.now
      slot.leave()
    })
    try {
      if (has_body && !(Number(length) <= SMALL_BODY_BYTES_MAX)) this.#takeWindow(session, stream, socket)
      socket.begin(Buffer.from(requestText(fields, has_body), 'latin1'))
    } catch (error) {
      this.#connections.refuse(connection, error, is_head)
    }
    const { host, client_ip, client_key } = connection
    session.known = { host, client_ip, client_key }
  }

  /** Throws API_RATE_LIMIT and API_NOT_AVAILABLE when too many bodies are under way. */
  #takeWindow({ admitted }: Session, stream: ServerHttp2Stream, socket: StreamSocket): void {
    const slot = this.#bodies.enter(clientKey(admitted.peer), () => socket.destroy())
    if (typeof slot === 'string') throw bodiesFull(slot)
    stream.once('end', () => slot.leave())
    socket.once('close', () => slot.leave())
  }

  /** No further stream begins. */
  #close(session: Session): void {
    if (session.state !== 'open') return
    session.state = 'closing'
    session.since = this.#ticks.now
    session.node.close()
  }

  /** Ends the connection and its streams, for a client that does not keep to the protocol. */
  #end({ node }: Session): void {
    node.destroy(new Error('The client sends too many frames.'), constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }

  #onEnded(session: Session): void {
    if (session.state === 'ended') return
    session.state = 'ended'
    session.since = this.#ticks.now
    session.visits.close()
  }

  /** Returns whether the connection was late, or sent too much. */
  #check(session: Session): boolean {
    const waited = this.#ticks.now - session.since
    if (session.state === 'ended' || (session.state === 'closing' && session.streams.size === 0)) {
      if (waited <= DRAIN_TICKS) return false
      session.socket.destroy()
      return true
    }
    if (isFlooding(session)) {
      this.#end(session)
      return true
    }
    session.visits.endLate()
    if (session.bytes.sent !== session.before.sent) this.#noteProgress(session)
    session.before = { ...session.bytes, read: session.socket.bytesRead }
    session.arrived = nothing()
    if (session.streams.size > 0 || waited <= (session.has_requested ? KEEP_ALIVE_TICKS : HEADER_TICKS)) return false
    this.#close(session)
    return true
  }

  /** While the client takes bytes of one stream, the others wait for their turn, and are not late. */
  #noteProgress({ streams }: Session): void {
    for (const { socket, connection } of streams) if (socket.is_sending) connection.since = this.#ticks.now
  }
}

function nothing(): Arrived {
  return { streams: 0, pings: 0, settings: 0 }
}

/** Whether too many frames without a request have arrived since the previous tick. */
function isFlooding({ socket, bytes, before, arrived: { streams, pings, settings } }: Session): boolean {
  const body_bytes = (bytes.received - before.received) * (1 + HTTP2_DATA_OVERHEAD_SHARE)
  const control_bytes = socket.bytesRead - before.read - body_bytes - streams * HEADER_BYTES_MAX
  return control_bytes > HTTP2_CONTROL_BYTES_MAX || pings > HTTP2_PINGS_MAX || settings > HTTP2_SETTINGS_FRAMES_MAX
}

function fieldOf(fields: readonly string[], name: string): string | undefined {
  for (let index = 0; index < fields.length; index += 2) if (fields[index] === name) return fields[index + 1]
  return undefined
}

function bodiesFull(reason: NoSlot): ApiError {
  if (reason === 'full') {
    const message = 'Too many large bodies are under way.'
    return new ApiError('API_NOT_AVAILABLE', {}, { message, retry_after_s: RETRY_AFTER_S })
  }
  const message = 'Too many large bodies of this client are under way.'
  return new ApiError('API_RATE_LIMIT', {}, { message, retry_after_s: RETRY_AFTER_S })
}
