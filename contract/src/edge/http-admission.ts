// Players of HTTP and WebSocket ports whose seats the edge checks. A request carries the player token in its query, a cookie,
// a WebSocket subprotocol or a header. The token is removed from what the server receives, unless the port keeps it. The
// server learns who the player is by X-Player-Id, and by X-Player-Role that it is a spectator. A player is connected while a
// request is under way, or a client's connection is open whose last request was the player's.
import type { Socket } from 'node:net'
import type { Admission } from '../admission-config.ts'
import { headerOf, linesWithout } from './header-lines.ts'
import type { Admitted, PlayerId, SeatHolders } from './players.ts'
import { isPreflight, preflightHeaders } from './preflight.ts'

/** A client's own lines with these names are removed. */
const PLAYER_HEADERS: readonly string[] = ['x-player-id', 'x-player-role']
const PROTOCOL_HEADER = 'sec-websocket-protocol'

/** The player of the last request of a client's connection. */
export type PlayerConnection = { readonly socket: PlayerSocket; player: Admitted | null }

/** What the admission uses of a connection: its end, and how to break it. */
export type PlayerSocket = Pick<Socket, 'destroyed' | 'remoteFamily'> & {
  destroy(): unknown
  resetAndDestroy(): unknown
  once(event: 'close', listener: () => void): unknown
}

/** What the admission reads of a request, and changes in it. `path`: with the query. */
export type AdmissibleRequest = {
  readonly method: string
  readonly head: { lines: string; readonly is_upgrade: boolean }
  readonly connection: PlayerConnection
  path: string
  /** Lines for the server about the admitted player. */
  player_lines: string
  /** The WebSocket subprotocol before a token that was removed; null: none was. */
  token_protocol: string | null
  /** Responded, or the client is gone: no response is wanted any more. */
  is_over: boolean
}

type HttpAdmissionOptions<R extends AdmissibleRequest> = {
  players: SeatHolders
  /** Ends the player's WebSockets to the port. Resolves when they are closed towards the server. */
  endWebSockets: (player_id: string, port_name: string) => Promise<void>
  breakOff: (socket: PlayerSocket) => void
  /** The connection that stands for the player, where several players share one. Without it: that of the request. */
  connectionOf?: (request: R, player: PlayerId) => PlayerConnection
  sendPreflight: (request: R, headers: string[]) => void
}

/** `player_network`: of which players get addresses of their own. */
type AdmittingAddress = { admission: Admission; player_network?: string }

export class HttpAdmission<R extends AdmissibleRequest> {
  readonly #options: HttpAdmissionOptions<R>
  /** Connections whose close ends the presence of their player. */
  readonly #watched = new WeakSet<PlayerConnection>()

  constructor(options: HttpAdmissionOptions<R>) {
    this.#options = options
  }

  /** Returns the address to connect to. Null: the request was a preflight, and has its response. Throws the refusal. */
  async admit<A extends AdmittingAddress>(
    request: R,
    { lobby_id, port_name }: { lobby_id: string; port_name: string },
    address: A,
  ): Promise<(A & { local_address?: string }) | null> {
    const { players, endWebSockets, sendPreflight } = this.#options
    const { admission } = address
    const token = takeToken(request, admission)
    if (token === null && isPreflight(request)) {
      sendPreflight(request, preflightHeaders(tokenHeader(admission)))
      return null
    }
    const player = players.playerOf(token, lobby_id)
    const connection = this.#options.connectionOf?.(request, player) ?? request.connection
    const before = connection.player
    const is_same = before?.player_id === player.player_id && before.lobby_id === lobby_id
    const admitted = is_same
      ? before
      : await players.admit(player, () => this.#end(request, connection), address.player_network ?? null)
    if (!is_same) this.#follow(connection, admitted)
    const role_line = admitted.is_spectator ? 'X-Player-Role: spectator\r\n' : ''
    request.player_lines = `X-Player-Id: ${admitted.player_id}\r\n${role_line}`
    if (request.head.is_upgrade && !admission.has_several_connections) {
      await endWebSockets(admitted.player_id, port_name)
    }
    return admitted.address === null ? address : { ...address, local_address: admitted.address }
  }

  #end(request: R, { socket }: PlayerConnection): void {
    request.is_over = true
    this.#options.breakOff(socket)
  }

  #follow(connection: PlayerConnection, admitted: Admitted): void {
    connection.player?.leave()
    connection.player = admitted
    if (connection.socket.destroyed) {
      leaveNow(connection)
      return
    }
    if (this.#watched.has(connection)) return
    this.#watched.add(connection)
    connection.socket.once('close', () => leaveNow(connection))
  }
}

function leaveNow(connection: PlayerConnection): void {
  connection.player?.leave()
  connection.player = null
}

/** Returns the player token of a request, and removes what the server must not receive. */
function takeToken(request: AdmissibleRequest, admission: Admission): string | null {
  const { by, name, keep_token } = admission
  const { head } = request
  const header = tokenHeader(admission)
  const [path, query_token] = splitQuery(request.path, name)
  const tokens = {
    query: query_token,
    header: headerOf(head, header) ?? null,
    cookie: cookieOf(headerOf(head, 'cookie') ?? '', name),
    subprotocol: protocolOf(headerOf(head, PROTOCOL_HEADER) ?? '', name),
  }
  const ways = ['query', 'header', 'cookie', 'subprotocol'] as const
  const way = ways.find((one) => by.includes(one) && tokens[one] !== null)
  // Some servers read underscores as dashes.
  head.lines = linesWithout(head.lines, (line) => PLAYER_HEADERS.includes(line.replaceAll('_', '-')))
  if (way === undefined) return null
  if (keep_token) return tokens[way]
  request.path = path
  head.lines = linesWithout(head.lines, (line) => line === header)
  if (tokens.cookie !== null) head.lines = replaced(head.lines, 'cookie', (text) => withoutCookie(text, name))
  if (tokens.subprotocol !== null) {
    head.lines = replaced(head.lines, PROTOCOL_HEADER, (text) => withoutProtocol(text, name))
    request.token_protocol = name
  }
  return tokens[way]
}

function tokenHeader({ name }: Admission): string {
  return `x-${name.replaceAll('_', '-')}`
}

/** The path without the parameter, and its value. Of several the first one counts, and all are removed. */
function splitQuery(path: string, name: string): [path: string, token: string | null] {
  const at = path.indexOf('?')
  if (at < 0) return [path, null]
  const parts = path.slice(at + 1).split('&')
  const own = parts.filter((part) => part.startsWith(`${name}=`))
  if (own.length === 0) return [path, null]
  const rest = parts.filter((part) => !own.includes(part)).join('&')
  return [`${path.slice(0, at)}${rest === '' ? '' : `?${rest}`}`, own[0]!.slice(name.length + 1)]
}

function cookieOf(text: string, name: string): string | null {
  const own = cookiesOf(text).find((part) => part.startsWith(`${name}=`))
  return own === undefined ? null : own.slice(name.length + 1)
}

function withoutCookie(text: string, name: string): string {
  const rest = cookiesOf(text).filter((part) => !part.startsWith(`${name}=`))
  return rest.join('; ')
}

/** Several lines are joined by commas. */
function cookiesOf(text: string): string[] {
  return text.split(/[;,]/).map((part) => part.trim())
}

/** The subprotocol after the one of this name. */
function protocolOf(text: string, name: string): string | null {
  const parts = text.split(',').map((part) => part.trim())
  const at = parts.indexOf(name)
  return at < 0 ? null : (parts[at + 1] ?? null)
}

function withoutProtocol(text: string, name: string): string {
  const parts = text.split(',').map((part) => part.trim())
  parts.splice(parts.indexOf(name), 2)
  return parts.join(', ')
}

/** Replaces the values of a header by one line; an empty value removes it. */
function replaced(lines: string, name: string, change: (text: string) => string): string {
  const value = change(headerOf({ lines }, name) ?? '')
  const rest = linesWithout(lines, (line) => line === name)
  return value === '' ? rest : `${rest}${name}: ${value}\r\n`
}
