// The handshake by which a UDP source proves its address and its seat. It is accepted on every udp port. On a port that
// requires player tokens, no datagram of a source reaches the lobby before its handshake, and nothing about the source is
// remembered until then. On other ports the handshake validates a source that plays already: one whose client took its
// seat from another address. The messages:
//
// - client to edge: `"MUST" 1 token`. The token is longer than the reply to it.
// - edge to client: `"MUST" 2 cookie`. 16 bytes, made of the source, the port and the time.
// - client to edge: `"MUST" 3 cookie token`.
// - edge to client: `"MUST" 4`. Accepted: further datagrams belong to the game.
// - edge to client: `"MUST" 5`. Refused: no token of this lobby, or its player has left.
//
// The client may repeat a message until the edge's next one arrives. The cookie is a MAC of the source that only the edge can
// make, so only a client that receives at that address knows it. Where tokens are required, the lobby receives the token, as
// text, as the source's first datagram. Elsewhere the lobby receives nothing of the handshake.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

export type HandshakeMessage =
  | { kind: 'reply'; datagram: Buffer }
  /** The cookie is right, so the source's address is proven. The token is not checked yet. */
  | { kind: 'token'; token: string }
  | { kind: 'invalid' }

type Source = { address: string; port: number }

const MARK = Buffer.from('MUST')
const HELLO = 1
const COOKIE = 2
const PROOF = 3
const [ACCEPTED_BYTE, REFUSED_BYTE] = [4, 5]
export const ACCEPTED: Buffer = Buffer.concat([MARK, Buffer.from([ACCEPTED_BYTE])])
export const REFUSED: Buffer = Buffer.concat([MARK, Buffer.from([REFUSED_BYTE])])
const HEAD_BYTES = 5
const COOKIE_BYTES = 16
const COOKIE_MS = 10_000
const TOKEN_BYTES_MIN = 32
/** Longest player token in a handshake message. */
const TOKEN_BYTES_MAX = 1_024
const INVALID: HandshakeMessage = { kind: 'invalid' }

export class AddressHandshake {
  readonly #elapsed: () => number
  readonly #secret: Buffer

  constructor(elapsed: () => number, secret = randomBytes(32)) {
    this.#elapsed = elapsed
    this.#secret = secret
  }

  /** Reads a client's message to a port. */
  read(source: Source, number: number, datagram: Buffer): HandshakeMessage {
    if (datagram.length < HEAD_BYTES || !datagram.subarray(0, MARK.length).equals(MARK)) return INVALID
    const period = Math.floor(this.#elapsed() / COOKIE_MS)
    const rest = datagram.subarray(HEAD_BYTES)
    if (datagram[MARK.length] === HELLO) {
      if (rest.length < TOKEN_BYTES_MIN) return INVALID
      const cookie = this.#cookieOf(source, number, period)
      return { kind: 'reply', datagram: Buffer.concat([MARK, Buffer.from([COOKIE]), cookie]) }
    }
    const token = rest.subarray(COOKIE_BYTES)
    if (datagram[MARK.length] !== PROOF || token.length < TOKEN_BYTES_MIN || token.length > TOKEN_BYTES_MAX) {
      return INVALID
    }
    const cookie = rest.subarray(0, COOKIE_BYTES)
    const is_valid = [period, period - 1].some((when) => timingSafeEqual(this.#cookieOf(source, number, when), cookie))
    return is_valid ? { kind: 'token', token: token.toString('latin1') } : INVALID
  }

  #cookieOf({ address, port }: Source, number: number, period: number): Buffer {
    const text = `${address} ${port} ${number} ${period}`
    return createHmac('sha256', this.#secret).update(text).digest().subarray(0, COOKIE_BYTES)
  }
}

/** Whether a client's datagram belongs to the handshake. Such a datagram is never forwarded to the game. */
export function isHandshakeMessage(datagram: Buffer): boolean {
  if (datagram.length < HEAD_BYTES + TOKEN_BYTES_MIN || !datagram.subarray(0, MARK.length).equals(MARK)) return false
  return datagram[MARK.length] === HELLO || datagram[MARK.length] === PROOF
}
