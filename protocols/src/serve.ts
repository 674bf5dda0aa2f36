// Serves protocols over sockets. HTTP/1.1 and HTTP/2 without TLS come to the same port: the first bytes tell which.
import { createServer as createHttp, type Server as HttpServer, type IncomingMessage } from 'node:http'
import { createServer as createHttp2, type Http2Server, type Http2Session } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import type { ProtocolEndpoint } from './protocol.ts'

/** The beginning of the preface of HTTP/2. No request of HTTP/1.1 begins so. */
const HTTP2_PREFACE = Buffer.from('PRI * HTTP/2.0')
/** A client that sends nothing is closed after this time. */
const FIRST_BYTES_MS_MAX = 30_000
/** Streams of one HTTP/2 connection at once. An SDK has three. */
const STREAMS_MAX = 32
const HEADER_BYTES_MAX = 16 * 1024
/**
 * How long an idle HTTP/1.1 connection stays open. An SDK that reports its health every few seconds would else send a report
 * on a connection that is just being closed, and wait long before it sends the next one.
 */
const IDLE_MS_MAX = 600_000
/** Connections that the server of one lobby may have open. An SDK has at most four. */
const CONNECTIONS_MAX = 32

/** Serves connections of the servers of many lobbies, each by the endpoint of its lobby. */
export class ProtocolSockets {
  readonly #connections_max: number
  readonly #http: HttpServer
  readonly #http2: Http2Server
  readonly #by_socket = new WeakMap<Socket, ProtocolEndpoint>()
  readonly #by_session = new WeakMap<Http2Session, ProtocolEndpoint>()
  readonly #sockets = new Map<ProtocolEndpoint, Set<Socket>>()
  /** While a session is made, which happens within one call. */
  #making: ProtocolEndpoint | null = null

  /** `connections_max`: of one endpoint. */
  constructor(connections_max = CONNECTIONS_MAX) {
    this.#connections_max = connections_max
    const http = {
      maxHeaderSize: HEADER_BYTES_MAX,
      keepAliveTimeout: IDLE_MS_MAX,
      // The HTTP client of Java asks for `h2c` in each first request, and goes on without it.
      shouldUpgradeCallback: ({ headers }: IncomingMessage) => headers.upgrade?.toLowerCase() === 'websocket',
    }
    this.#http = createHttp(http, (request, response) => {
      this.#by_socket.get(request.socket)?.request(request, response)
    })
    this.#http.on('upgrade', (request, socket, head) => {
      const endpoint = this.#by_socket.get(request.socket)
      if (endpoint?.upgrade === undefined) socket.destroy()
      else endpoint.upgrade(request, socket, head)
    })
    this.#http.on('clientError', (_error, socket) => socket.destroy())
    const settings = { maxConcurrentStreams: STREAMS_MAX, maxHeaderListSize: HEADER_BYTES_MAX }
    this.#http2 = createHttp2({ settings }, (request, response) => {
      const session = request.stream.session
      if (session !== undefined) this.#by_session.get(session)?.request(request, response)
    })
    this.#http2.on('session', (session) => {
      if (this.#making !== null) this.#by_session.set(session, this.#making)
    })
    this.#http2.on('sessionError', () => undefined)
  }

  /** Serves a connection that has just been accepted. Beyond the bound of one lobby it is closed. */
  accept(socket: Socket, endpoint: ProtocolEndpoint): void {
    const open = this.#sockets.get(endpoint) ?? new Set()
    this.#sockets.set(endpoint, open)
    socket.on('error', () => undefined)
    if (open.size >= this.#connections_max) {
      socket.destroy()
      return
    }
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    socket.setNoDelay()
    socket.setTimeout(FIRST_BYTES_MS_MAX, () => socket.destroy())
    this.#sniff(socket, Buffer.alloc(0), endpoint)
  }

  /** Closes the lobby's connections. */
  forget(endpoint: ProtocolEndpoint): void {
    for (const socket of this.#sockets.get(endpoint) ?? []) socket.destroy()
    this.#sockets.delete(endpoint)
  }

  /** Waits for as many bytes as tell the two apart. */
  #sniff(socket: Socket, before: Buffer, endpoint: ProtocolEndpoint): void {
    socket.once('data', (part: Buffer) => {
      socket.pause()
      const bytes = before.length === 0 ? part : Buffer.concat([before, part])
      const seen = Math.min(bytes.length, HTTP2_PREFACE.length)
      const is_http2 = bytes.subarray(0, seen).equals(HTTP2_PREFACE.subarray(0, seen))
      if (is_http2 && seen < HTTP2_PREFACE.length) {
        this.#sniff(socket, bytes, endpoint)
        socket.resume()
        return
      }
      socket.setTimeout(0)
      socket.unshift(bytes)
      if (is_http2) {
        this.#making = endpoint
        this.#http2.emit('connection', socket)
        this.#making = null
      } else {
        this.#by_socket.set(socket, endpoint)
        this.#http.emit('connection', socket)
        socket.resume()
      }
    })
  }
}

/** Serves one lobby at a port of this machine; 0: any free port. Used where lobbies have no network of their own. */
export async function listenForOne(
  sockets: ProtocolSockets,
  endpoint: ProtocolEndpoint,
  { host, port }: { host: string; port: number },
): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => sockets.accept(socket, endpoint))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, resolve)
  })
  return { server, port: (server.address() as { port: number }).port }
}
