// Seats of servers that do not check them: the edge admits players, and no byte of a stranger reaches the server.
import Type, { type Static } from 'typebox'

/** Time for which a player without a connection keeps the seat. */
const SEAT_HOLD_MS_DEFAULT = 10_000
/** Name under which clients send their player token. */
const TOKEN_NAME_DEFAULT = 'player_token'

const AdmitBy = Type.Enum(['query', 'cookie', 'subprotocol', 'header', 'first_line', 'handshake', 'address'])
export type AdmitBy = Static<typeof AdmitBy>

/** Members of a port. They apply with `seats` `edge`. */
export const admissionMembers = {
  admit_by: Type.Optional(
    Type.Array(AdmitBy, {
      minItems: 1,
      maxItems: 4,
      uniqueItems: true,
      description:
        'With `seats` `edge`: how players show that they have a seat. `http` and `https`: `query`, `cookie`, `subprotocol` or `header`; default all four. `tcp` and `tcp_tls`: `first_line`, the default, or `address`. `udp`: `handshake`, the default, or `address`. `address` admits the address that took the seat, which others may share.',
    }),
  ),
  token_name: Type.Optional(
    Type.String({
      pattern: '^[a-z][a-z0-9_]{0,31}$',
      description:
        'With `seats` `edge`: name of the query parameter, the cookie and the WebSocket subprotocol before the token, and of the header, there with `x-` in front and `-` for `_`. Default `player_token`.',
    }),
  ),
  keep_token: Type.Optional(
    Type.Boolean({
      description: 'With `seats` `edge`: whether the server receives the token too. Default false: it is removed.',
    }),
  ),
  several_connections: Type.Optional(
    Type.Boolean({
      description:
        'With `seats` `edge`: whether a player may have several TCP connections or WebSockets to the port at once. Default false: a new one that shows the same player token ends the one before, so a player whose connection has died gets in at once.',
    }),
  ),
}

/** Members of a docker block. */
export const seatsMembers = {
  seats: Type.Optional(
    Type.Enum(['sdk', 'edge', 'protocol'], {
      description:
        'Who checks the seats of players. `sdk`: the server, which calls connected and disconnected. `edge`: the platform. Only connections of players with a seat reach the server, and the platform counts them. `protocol`: the server says by its protocol who is in the game. Default `sdk`, and `protocol` where the server has one.',
    }),
  ),
  hold_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 300_000,
      description:
        'With `seats` `edge`: time in milliseconds for which a player without a connection keeps the seat. Default 10000.',
    }),
  ),
  player_addresses: Type.Optional(
    Type.Boolean({
      description:
        'With `seats` `edge`: whether each player appears to the server under an address of its own, for servers that limit players by address. Default false.',
    }),
  ),
}

/** How a port admits players. */
export type Admission = {
  by: readonly AdmitBy[]
  name: string
  keep_token: boolean
  has_addresses: boolean
  has_several_connections: boolean
}

type Seats = { seats?: 'sdk' | 'edge' | 'protocol'; hold_ms?: number; player_addresses?: boolean }
type PortAdmission = {
  protocol?: string
  admit_by?: AdmitBy[]
  token_name?: string
  keep_token?: boolean
  several_connections?: boolean
}

const HTTP_WAYS: readonly AdmitBy[] = ['query', 'cookie', 'subprotocol', 'header']

/** The ways that a protocol has, the default ones first. */
export function waysOf(protocol: string): { default: readonly AdmitBy[]; all: readonly AdmitBy[] } {
  if (protocol === 'http' || protocol === 'https') return { default: HTTP_WAYS, all: HTTP_WAYS }
  const own: AdmitBy = protocol === 'udp' ? 'handshake' : 'first_line'
  return { default: [own], all: [own, 'address'] }
}

/** Null: the server checks the seats. */
export function seatHoldOf(docker: Seats | undefined): number | null {
  return docker?.seats === 'edge' ? (docker.hold_ms ?? SEAT_HOLD_MS_DEFAULT) : null
}

/** Null: the server checks the seats. */
export function admissionOf(docker: Seats, port: PortAdmission, protocol: string): Admission | null {
  if (docker.seats !== 'edge') return null
  return {
    by: port.admit_by ?? waysOf(protocol).default,
    name: port.token_name ?? TOKEN_NAME_DEFAULT,
    keep_token: port.keep_token ?? false,
    has_addresses: docker.player_addresses ?? false,
    has_several_connections: port.several_connections ?? false,
  }
}
