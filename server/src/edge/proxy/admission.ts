// Players of HTTP and WebSocket ports whose seats the edge checks. A request carries the player token in its query, a cookie,
// a WebSocket subprotocol or a header. The token is removed from what the server receives, unless the port keeps it. The
// server learns who the player is by X-Player-Id. A player is connected while a request is under way, or a client's
// connection is open whose last request was the player's.
import type { Admission } from '@musterhost/contract'
import { isPreflight, preflightHeaders } from '../http/cors.ts'
import type { AdmittedPlayer, Connection, Exchange } from '../http/exchange.ts'
import { headerOf, linesOf, linesWithout } from '../http/headers.ts'
import { sendResponse } from '../http/response.ts'
import type { Flows } from '../presence/flows.ts'
import type { Players } from '../presence/players.ts'
import type { Address, LobbyPort } from '../routes/routes.ts'
import { breakOff } from '../tls/tls.ts'

const PLAYER_HEADER = 'x-player-id'
const PROTOCOL_HEADER = 'sec-websocket-protocol'

export class HttpAdmission {
  readonly #players: Players
  readonly #flows: Flows
  /** Connections whose close ends the presence of their player. */
  readonly #watched = new WeakSet<Connection>()

  constructor({ players, flows }: { players: Players; flows: Flows }) {
    this.#players = players
    this.#flows = flows
  }

  /** Returns the address to connect to. Null: the request was a preflight, and has its response. Throws the refusal. */
  async admit(
    exchange: Exchange,
    { lobby_id, port_name }: LobbyPort,
    address: Address & { admission: Admission },
  ): Promise<Address | null> {
    const { connection } = exchange
    const { admission } = address
    const token = takeToken(exchange, admission)
    if (token === null && isPreflight(exchange)) {
      sendResponse(exchange, 204, preflightHeaders(tokenHeader(admission)), null)
      return null
    }
    const player = this.#players.playerOf(token, lobby_id)
    const before = connection.player
    const is_same = before?.player_id === player.player_id && before.lobby_id === lobby_id
    const admitted = is_same
      ? before
      : await this.#players.admit(player, () => endOf(exchange), address.player_network ?? null)
    if (!is_same) this.#follow(connection, admitted)
    exchange.player_lines = linesOf(['X-Player-Id', admitted.player_id])
    if (exchange.head.is_upgrade && !admission.has_several_connections) {
      await this.#flows.endOf(admitted.player_id, { number: null, port_name })
    }
    return admitted.address === null ? address : { ...address, local_address: admitted.address }
  }

  #follow(connection: Connection, admitted: AdmittedPlayer): void {
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

function endOf(exchange: Exchange): void {
  exchange.is_over = true
  breakOff(exchange.connection.socket)
}

function leaveNow(connection: Connection): void {
  connection.player?.leave()
  connection.player = null
}

/** Returns the player token of a request, and removes what the server must not receive. */
function takeToken(exchange: Exchange, admission: Admission): string | null {
  const { by, name, keep_token } = admission
  const { head } = exchange
  const header = tokenHeader(admission)
  const [path, query_token] = splitQuery(exchange.path, name)
  const tokens = {
    query: query_token,
    header: headerOf(head, header) ?? null,
    cookie: cookieOf(headerOf(head, 'cookie') ?? '', name),
    subprotocol: protocolOf(headerOf(head, PROTOCOL_HEADER) ?? '', name),
  }
  const ways = ['query', 'header', 'cookie', 'subprotocol'] as const
  const way = ways.find((one) => by.includes(one) && tokens[one] !== null)
  // Some servers read underscores as dashes.
  head.lines = linesWithout(head.lines, (line) => line.replaceAll('_', '-') === PLAYER_HEADER)
  if (way === undefined) return null
  if (keep_token) return tokens[way]
  exchange.path = path
  head.lines = linesWithout(head.lines, (line) => line === header)
  if (tokens.cookie !== null) head.lines = replaced(head.lines, 'cookie', (text) => withoutCookie(text, name))
  if (tokens.subprotocol !== null) {
    head.lines = replaced(head.lines, PROTOCOL_HEADER, (text) => withoutProtocol(text, name))
    exchange.token_protocol = name
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
