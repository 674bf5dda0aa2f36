// Unity Multiplay: a server reads server.json, subscribes to its events by WebSocket, and makes calls of a local proxy.
// Where the version config has a UDP port named `query`, the endpoint asks there for the number of players.
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { messageOf } from '../call-line.ts'
import { type HttpRequest, type HttpResponse, type JsonRecord, pathParts } from '../http-body.ts'
import type { ProtocolLobby } from '../lobby.ts'
import type { Protocol, ProtocolEndpoint, ProtocolOptions } from '../protocol.ts'
import { a2s } from './a2s.ts'
import { CentrifugeConnection } from './centrifuge.ts'
import { ProxyCalls } from './proxy-calls.ts'
import { ask } from './query.ts'
import { multiplayAdditions, queryPort, queryType, serverId } from './server-file.ts'
import { sqp } from './sqp.ts'

const FRAME_BYTES_MAX = 64 * 1024
const SOCKETS_MAX = 4
/** Bytes that wait for a server that does not read. */
const UNSENT_BYTES_MAX = 1024 * 1024
const SOCKET_PATH = 'v1/connection/websocket'
/**
 * How the SDK for Go names itself when it connects. It reports an allocation that server.json has at its start, and would
 * report it twice.
 */
const GO_AGENT = 'Go-http-client/'

/** How often the endpoint asks for the players. */
export type QueryOptions = { interval_ms: number; timeout_ms: number }
const QUERY: QueryOptions = { interval_ms: 5_000, timeout_ms: 2_000 }

type EventType = 'AllocateEventType' | 'DeallocateEventType'
type Connection = { socket: WebSocket; centrifuge: CentrifugeConnection; is_go: boolean; sent: Set<EventType> }

export const multiplay: Protocol = {
  listeners: { proxy: 8_086 },
  additions: (facts, endpoints, options) => multiplayAdditions(facts, endpoints, options),
  open: (lobby, options, secret) => new MultiplayEndpoint(lobby, options, secret),
}

export class MultiplayEndpoint implements ProtocolEndpoint {
  readonly #lobby: ProtocolLobby
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: FRAME_BYTES_MAX, perMessageDeflate: false })
  readonly #channel: string
  readonly #connections: Connection[] = []
  readonly #calls: ProxyCalls
  readonly #forget: () => void
  readonly #timer: NodeJS.Timeout | null
  #is_asking = false
  #players: number | null = null
  #health_ts: number | null = null

  constructor(lobby: ProtocolLobby, options: ProtocolOptions, secret: string, query: QueryOptions = QUERY) {
    this.#lobby = lobby
    this.#channel = `server#${serverId(lobby.facts.lobby_id)}`
    this.#calls = new ProxyCalls(lobby, secret, () => this.#report())
    this.#forget = lobby.onChange(() => {
      for (const connection of this.#connections) this.#pushDue(connection)
    })
    const port = queryPort(lobby.facts)
    this.#timer = port === null ? null : setInterval(() => this.#ask(port, options, query), query.interval_ms).unref()
  }

  request(request: HttpRequest, response: HttpResponse): void {
    this.#calls
      .serve(request, response)
      .catch((error) => this.#lobby.log(`Multiplay: a call failed: ${messageOf(error)}`))
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (pathParts(request).join('/') !== SOCKET_PATH) {
      socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
      return
    }
    const is_go = (request.headers['user-agent'] ?? '').startsWith(GO_AGENT)
    this.#server.handleUpgrade(request, socket, head, (open) => this.#open(open, is_go))
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#forget()
    this.#calls.close()
    for (const { socket } of this.#connections) socket.terminate()
    this.#server.close()
  }

  #open(socket: WebSocket, is_go: boolean): void {
    // Unity never returns after some of the protocol's own close codes, so the endpoint uses none of them.
    const oldest = this.#connections.length >= SOCKETS_MAX ? this.#connections.shift() : undefined
    oldest?.socket.close(1001, 'Too many connections.')
    const connection = {
      socket,
      centrifuge: new CentrifugeConnection(this.#channel),
      is_go,
      sent: new Set<EventType>(),
    }
    this.#connections.push(connection)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      const index = this.#connections.indexOf(connection)
      if (index >= 0) this.#connections.splice(index, 1)
    })
    socket.on('message', (data) => {
      send(socket, connection.centrifuge.receive(String(data)))
      this.#pushDue(connection)
    })
  }

  /**
   * Each event once on each connection. A server that has reported that it is ready, or that has players, knows of its
   * allocation: a repetition on its next connection would start its match again.
   */
  #pushDue(connection: Connection): void {
    if (!connection.centrifuge.is_subscribed) return
    const { view } = this.#lobby
    const is_known = this.#calls.is_ready !== null || view.seats.some(({ is_connected }) => is_connected)
    if (!is_known && !connection.is_go) this.#push(connection, 'AllocateEventType')
    if (view.is_draining) this.#push(connection, 'DeallocateEventType')
  }

  #push({ socket, centrifuge, sent }: Connection, type: EventType): void {
    if (sent.has(type)) return
    sent.add(type)
    send(socket, centrifuge.publication(this.#event(type)))
  }

  /** The same ids each time, so that a reader can tell a repetition. A number and no text as ServerID, unlike in the file. */
  #event(type: EventType): JsonRecord {
    const { lobby_id } = this.#lobby.facts
    return {
      EventType: type,
      EventID: eventId(type, lobby_id),
      ServerID: serverId(lobby_id),
      AllocationID: lobby_id,
    }
  }

  /** A question that is not answered leaves the last number out. */
  #ask(port: number, options: ProtocolOptions, { timeout_ms }: QueryOptions): void {
    const { host } = this.#lobby.facts
    if (this.#is_asking) return
    this.#is_asking = true
    ask(queryType(options) === 'a2s' ? a2s : sqp, { host, port, timeout_ms })
      .then(
        ({ players }) => {
          this.#players = players
          this.#health_ts = this.#lobby.now()
        },
        () => {
          this.#players = null
        },
      )
      .finally(() => {
        this.#is_asking = false
        this.#report()
      })
  }

  #report(): void {
    const { is_ready } = this.#calls
    const state = is_ready === null ? 'Allocated' : is_ready ? 'Ready' : 'Unready'
    const players = this.#players === null ? '' : `, ${this.#players} ${this.#players === 1 ? 'player' : 'players'}`
    const is_healthy = this.#health_ts === null ? null : this.#players !== null
    this.#lobby.report({ state: `${state}${players}`, health_ts: this.#health_ts, is_healthy })
  }
}

function eventId(type: EventType, lobby_id: string): string {
  const hex = createHash('sha256').update(`${type} ${lobby_id}`).digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  )
}

function send(socket: WebSocket, frame: string): void {
  if (frame === '' || socket.readyState !== socket.OPEN) return
  if (socket.bufferedAmount > UNSENT_BYTES_MAX) socket.terminate()
  else socket.send(frame)
}
