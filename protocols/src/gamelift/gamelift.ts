// GameLift server SDK 5: a server connects by WebSocket and sends requests; the endpoint responds, and sends what the
// server has to do. A newer connection replaces an older one, which stays open until the server has drained it.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { messageOf } from '../call-line.ts'
import { asRecord, type HttpRequest, type HttpResponse, type JsonRecord, sendJson } from '../http-body.ts'
import type { LobbyFacts, ProtocolLobby } from '../lobby.ts'
import type { Endpoints, ProgramAdditions, Protocol, ProtocolEndpoint } from '../protocol.ts'
import { isSecret } from '../secret.ts'
import { SilenceWatch } from '../silence.ts'
import { GameLiftActions } from './actions.ts'
import { createGameSession, fleetId, gameSession } from './game-session.ts'

const MESSAGE_BYTES_MAX = 64 * 1024
const SOCKETS_MAX = 4
/** Bytes that wait for a server that does not read. */
const UNSENT_BYTES_MAX = 1024 * 1024
/** An SDK reports its health every 60 s, up to 10 s later or earlier. */
const SILENCE_MS_MAX = 180_000
/** How long a server has to end its game when its lobby drains. */
const TERMINATION_MS = 300_000
const REQUEST_ID_LENGTH_MAX = 256

export const gamelift: Protocol = {
  listeners: { websocket: 5_757 },
  additions: (facts, endpoints, _options, secret) => additions(facts, endpoints, secret),
  open: (lobby, _options, secret) => new GameLiftEndpoint(lobby, secret),
}

function additions(facts: LobbyFacts, { websocket }: Endpoints, secret: string): ProgramAdditions {
  if (websocket === undefined) throw new Error('The endpoint `websocket` is missing.')
  const env = {
    GAMELIFT_SDK_WEBSOCKET_URL: `ws://${websocket.host}:${websocket.port}`,
    GAMELIFT_SDK_AUTH_TOKEN: secret,
    GAMELIFT_SDK_PROCESS_ID: facts.lobby_id,
    GAMELIFT_SDK_HOST_ID: facts.lobby_id,
    GAMELIFT_SDK_FLEET_ID: fleetId(facts),
    GAMELIFT_REGION: facts.region_id,
  }
  return { env, files: [] }
}

export class GameLiftEndpoint implements ProtocolEndpoint {
  readonly #lobby: ProtocolLobby
  readonly #secret: string
  readonly #server = new WebSocketServer({ noServer: true, maxPayload: MESSAGE_BYTES_MAX, perMessageDeflate: false })
  /** The newest is the last one. */
  readonly #sockets: WebSocket[] = []
  readonly #actions: GameLiftActions
  readonly #silence: SilenceWatch
  readonly #forget: () => void
  /** The server has said that it is ready for what the endpoint sends. */
  #is_activated = false
  #is_session_sent = false
  #is_session_due = false
  #is_termination_sent = false
  /** Players who had a seat at the last notification of the server. */
  #players: ReadonlySet<string> = new Set()

  /** `look_ms`: between two looks for silence. */
  constructor(lobby: ProtocolLobby, secret: string, look_ms?: number) {
    this.#lobby = lobby
    this.#secret = secret
    this.#silence = new SilenceWatch({
      first_ms: null,
      silence_ms: SILENCE_MS_MAX,
      now: () => lobby.now(),
      look_ms,
      onSilence: (silence_ms) => lobby.unhealthy(`GameLift: no heartbeat for ${silence_ms / 1_000} s.`),
    })
    this.#actions = new GameLiftActions(lobby, {
      activated: () => {
        this.#silence.heard()
        this.#is_activated = true
        this.#is_session_due = true
      },
      heard: () => {
        this.#silence.heard()
        this.#is_activated = true
      },
    })
    this.#forget = lobby.onChange(() => this.#pushDue())
  }

  request(_request: HttpRequest, response: HttpResponse): void {
    sendJson(response, 426, { message: 'Connect to this address by WebSocket.' })
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const query = new URLSearchParams((request.url ?? '').split('?')[1] ?? '')
    const refusal = this.#refusal(query)
    if (refusal !== null) {
      socket.end(`HTTP/1.1 401 Unauthorized\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n${refusal}\n`)
      return
    }
    this.#server.handleUpgrade(request, socket, head, (connection) => this.#open(connection))
  }

  /** Has the server connect to another address. It drops this connection when it has the new one. */
  refresh(url: string, token: string): void {
    this.#push('RefreshConnection', { RefreshConnectionEndpoint: url, AuthToken: token })
  }

  /** Looks for silence, as its timer does. */
  look(): void {
    this.#silence.look()
  }

  close(): void {
    this.#silence.close()
    this.#actions.close()
    this.#forget()
    for (const socket of this.#sockets) socket.terminate()
    this.#server.close()
  }

  #refusal(query: URLSearchParams): string | null {
    const token = query.get('Authorization')
    if (token === null) return 'Authorization is missing. Leave out AWS credentials: GAMELIFT_SDK_AUTH_TOKEN is enough.'
    return isSecret(token, this.#secret) ? null : 'Authorization is not the value of GAMELIFT_SDK_AUTH_TOKEN.'
  }

  #open(socket: WebSocket): void {
    const oldest = this.#sockets.length >= SOCKETS_MAX ? this.#sockets.shift() : undefined
    oldest?.close(1001, 'A newer connection replaces this one.')
    this.#sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      const index = this.#sockets.indexOf(socket)
      if (index >= 0) this.#sockets.splice(index, 1)
    })
    socket.on('message', (data) => {
      this.#receive(socket, String(data)).catch((error) => this.#lobby.log(`GameLift: ${messageOf(error)}`))
    })
    this.#pushDue()
  }

  /** A message that is no request has nobody who waits for a response, and is dropped. */
  async #receive(socket: WebSocket, text: string): Promise<void> {
    const request = parse(text)
    const { Action, RequestId } = request ?? {}
    if (request === null || typeof Action !== 'string' || typeof RequestId !== 'string') return
    if (RequestId === '' || RequestId.length > REQUEST_ID_LENGTH_MAX) return
    let response: JsonRecord
    try {
      response = { ...(await this.#actions.serve(Action, request)), StatusCode: 200, ErrorMessage: '' }
    } catch (error) {
      response = { StatusCode: 400, ErrorMessage: messageOf(error) }
    }
    send(socket, { Action, RequestId, ...response })
    this.#pushDue()
  }

  /** Sends what the server has to know and does not know yet, each thing once. */
  #pushDue(): void {
    if (!this.#is_activated) return
    const { facts, view } = this.#lobby
    if (this.#is_session_due && !this.#is_session_sent) {
      this.#is_session_sent = this.#push('CreateGameSession', createGameSession(facts, view.seats))
      this.#players = new Set(view.seats.map(({ player_id }) => player_id))
    }
    this.#pushBackfill()
    if (view.is_draining && !this.#is_termination_sent) {
      this.#is_termination_sent = this.#push('TerminateProcess', {
        TerminationTime: this.#lobby.now() + TERMINATION_MS,
      })
    }
  }

  /** Notifies a server that has asked for more players when some have come. */
  #pushBackfill(): void {
    const { facts, view } = this.#lobby
    const ticket_id = this.#actions.ticket_id
    const has_new = view.seats.some(({ player_id }) => !this.#players.has(player_id))
    this.#players = new Set(view.seats.map(({ player_id }) => player_id))
    if (ticket_id === null || !has_new) return
    this.#push('UpdateGameSession', {
      GameSession: gameSession(facts, view.seats),
      UpdateReason: 'MATCHMAKING_DATA_UPDATED',
      BackfillTicketId: ticket_id,
    })
  }

  /** Sends on the newest connection. No RequestId and no StatusCode: an SDK would take it for a response. */
  #push(action: string, members: JsonRecord): boolean {
    const socket = this.#sockets.findLast(({ readyState, OPEN }) => readyState === OPEN)
    return socket !== undefined && send(socket, { Action: action, ...members })
  }
}

function parse(text: string): JsonRecord | null {
  try {
    return asRecord(JSON.parse(text))
  } catch {
    return null
  }
}

/** Returns whether the connection took the message. */
function send(socket: WebSocket, message: JsonRecord): boolean {
  if (socket.readyState !== socket.OPEN) return false
  if (socket.bufferedAmount > UNSENT_BYTES_MAX) {
    socket.terminate()
    return false
  }
  socket.send(JSON.stringify(message))
  return true
}
