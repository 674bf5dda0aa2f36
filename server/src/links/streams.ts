// What both ends of a link do with HTTP/2: the sizes of windows, pings, JSON calls, and streams joined to sockets.
//
// Windows: each stream has a small window, and a connection one that no number of streams can use up. So a slow player stops
// only the own stream, and the memory of a link is bounded by streams times window.
import type { ClientHttp2Session, Http2Session, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Duplex, Readable } from 'node:stream'
import { requireShape } from '@musterhost/contract/schema-check'
import type { Static, TSchema } from 'typebox'
import { readBounded } from '../flow/read-bounded.ts'
import { CALL_MS_MAX, type ConnectionKind, JSON_BYTES_MAX, PING_MS, PING_MS_MAX, Refusal } from './protocol.ts'

/** Calls of a node at once: connections to the database, parts of builds, calls of lobbies. */
const CALLS_MAX = 1_024
/** Connections and UDP sources of players to the lobbies of one node, and the same through its edge. */
const STREAMS_MAX = 8_192
/** Window of a stream over `calls`: builds must arrive fast over a long way. */
const CALL_WINDOW_BYTES = 1024 ** 2
const STREAM_WINDOW_BYTES = 64 * 1024
/** Window of a connection: more than its streams can have unread. */
const CONNECTION_WINDOW_BYTES = 1024 ** 3
/** Memory of a session, in units of 10^6 bytes. Beyond it Node refuses new streams. */
const SESSION_MEMORY_MB_MAX = 1_024

/** The HTTP/2 options of either end of a connection. */
export function sessionOptions(kind: ConnectionKind) {
  const is_calls = kind === 'muster-calls'
  return {
    maxSessionMemory: SESSION_MEMORY_MB_MAX,
    settings: {
      enablePush: false,
      initialWindowSize: is_calls ? CALL_WINDOW_BYTES : STREAM_WINDOW_BYTES,
      maxConcurrentStreams: is_calls ? CALLS_MAX : STREAMS_MAX,
    },
  }
}

/** Widens the window of the connection, and ends it when pings get no response. `onPing`: the time of a round trip. */
export function keepAlive(session: Http2Session, onPing: (round_trip_ms: number) => void = () => {}): void {
  const widen = (): void => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES)
  if (session.connecting) session.once('connect', widen)
  else widen()
  let overdue: NodeJS.Timeout | null = null
  const ping = (): void => {
    if (overdue !== null || session.destroyed) return
    const lost = (): void => session.destroy(new Error('The other end of the link does not respond.'))
    overdue = setTimeout(lost, PING_MS_MAX)
    const is_sent = session.ping((error, duration_ms) => {
      if (overdue !== null) clearTimeout(overdue)
      overdue = null
      if (error === null) onPing(duration_ms)
    })
    // Too many pings are under way: the next turn tries again.
    if (is_sent) return
    clearTimeout(overdue)
    overdue = null
  }
  const pinging = setInterval(ping, PING_MS)
  session.on('error', () => {})
  session.once('close', () => {
    clearInterval(pinging)
    if (overdue !== null) clearTimeout(overdue)
  })
}

/** A refusal of the other end, or of this one, as it is sent and received. */
export class LinkRefusal extends Error {
  readonly code: string
  readonly status: number
  constructor(code: string, message: string, status = 403) {
    super(message)
    this.name = 'LinkRefusal'
    this.code = code
    this.status = status
  }
}

/** Calls the other end with JSON. Throws a LinkRefusal, or an Error when the connection is lost. */
export async function call<T extends TSchema>(
  session: ClientHttp2Session,
  path: string,
  body: unknown,
  schema: T,
): Promise<Static<T>> {
  const signal = AbortSignal.timeout(CALL_MS_MAX)
  const stream = session.request({ ':method': 'POST', ':path': path }, { signal })
  const response = responseOf(stream)
  stream.end(JSON.stringify(body))
  const { ':status': status } = await response
  const value: unknown = JSON.parse(await readText(stream))
  if (status === 200) return requireShape(schema, value)
  const { code, message } = requireShape(Refusal, value)
  throw new LinkRefusal(code, message, status)
}

/** Rejects when the stream ends before a response. */
export function responseOf(stream: Duplex): Promise<IncomingHttpHeaders & { ':status'?: number }> {
  return new Promise((resolve, reject) => {
    stream.once('response', resolve)
    stream.once('error', reject)
    stream.once('close', () => reject(new Error('The link was lost before the response.')))
  })
}

/** Throws when the body has more than JSON_BYTES_MAX. */
export async function readText(stream: Readable): Promise<string> {
  const tooLarge = () => new LinkRefusal('TOO_LARGE', 'The body is too large.', 413)
  return (await readBounded(stream, JSON_BYTES_MAX, tooLarge)).toString()
}

/** Sends JSON as the whole response. */
export function respondJson(stream: ServerHttp2Stream, status: number, body: unknown): void {
  if (stream.destroyed || stream.closed) return
  stream.respond({ ':status': status, 'content-type': 'application/json' })
  stream.end(JSON.stringify(body))
}

/** Joins two streams. The end of one direction is forwarded. A side that breaks breaks the other. */
export function joinStreams(some: Duplex, other: Duplex): void {
  const link = (from: Duplex, to: Duplex): void => {
    from.on('error', () => to.destroy())
    from.once('close', () => {
      const is_whole = from.readableEnded && from.writableFinished && !isReset(from)
      if (!is_whole) to.destroy()
    })
    from.pipe(to)
  }
  if (some.destroyed || other.destroyed) {
    some.destroy()
    other.destroy()
    return
  }
  link(some, other)
  link(other, some)
}

function isReset(stream: Duplex): boolean {
  return 'rstCode' in stream && typeof stream.rstCode === 'number' && stream.rstCode !== 0
}
