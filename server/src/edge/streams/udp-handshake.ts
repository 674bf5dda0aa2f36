// The words by which a source shows that it is where it says and that it has a seat. They are good on every udp port. On
// one that requires player tokens nothing of a source reaches the lobby, and nothing of it is remembered, before it has said
// them; on the others they prove a source that plays already, as when its client took the seat from another address:
//
//   client -> edge   "MUST" 1 token             a token is longer than what is answered to it
//   edge -> client   "MUST" 2 cookie            16 bytes, made of the source, the port and the time
//   client -> edge   "MUST" 3 cookie token
//   edge -> client   "MUST" 4                   from here on datagrams are the game's
//                    "MUST" 5                   the token is none for this lobby, or its player has left
//
// Each of the client's may be sent again until the next of the edge's comes. The cookie is a MAC of the source that only we
// can make, so that only who receives at that address can know it. Where tokens are required the lobby gets the token, as
// text, as the first datagram of the source; elsewhere it hears nothing of all this.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

export type Words =
  | { kind: 'answer'; datagram: Buffer }
  /** The source is where it says; whether the token is good is to be seen. */
  | { kind: 'token'; token: string }
  | { kind: 'nothing' }

export type Welcome = { read: (source: { address: string; port: number }, number: number, datagram: Buffer) => Words }

const MARK = Buffer.from('MUST')
const HELLO = 1
const COOKIE = 2
const PROOF = 3
const [WELCOME_BYTE, REFUSED_BYTE] = [4, 5]
export const WELCOME: Buffer = Buffer.concat([MARK, Buffer.from([WELCOME_BYTE])])
export const REFUSED: Buffer = Buffer.concat([MARK, Buffer.from([REFUSED_BYTE])])
const HEAD_BYTES = 5
const COOKIE_BYTES = 16
const COOKIE_MS = 10_000
const TOKEN_BYTES_MIN = 32
const TOKEN_BYTES_MAX = 1_024
const NOTHING: Words = { kind: 'nothing' }

export function createWelcome(elapsed: () => number, secret = randomBytes(32)): Welcome {
  const cookieOf = ({ address, port }: { address: string; port: number }, number: number, period: number): Buffer =>
    createHmac('sha256', secret).update(`${address} ${port} ${number} ${period}`).digest().subarray(0, COOKIE_BYTES)

  return {
    read(source, number, datagram) {
      if (datagram.length < HEAD_BYTES || !datagram.subarray(0, MARK.length).equals(MARK)) return NOTHING
      const period = Math.floor(elapsed() / COOKIE_MS)
      const rest = datagram.subarray(HEAD_BYTES)
      if (datagram[MARK.length] === HELLO) {
        if (rest.length < TOKEN_BYTES_MIN) return NOTHING
        const cookie = cookieOf(source, number, period)
        return { kind: 'answer', datagram: Buffer.concat([MARK, Buffer.from([COOKIE]), cookie]) }
      }
      const token = rest.subarray(COOKIE_BYTES)
      if (datagram[MARK.length] !== PROOF || token.length < TOKEN_BYTES_MIN || token.length > TOKEN_BYTES_MAX) {
        return NOTHING
      }
      const cookie = rest.subarray(0, COOKIE_BYTES)
      const is_ours = [period, period - 1].some((when) => timingSafeEqual(cookieOf(source, number, when), cookie))
      return is_ours ? { kind: 'token', token: token.toString('latin1') } : NOTHING
    },
  }
}

/** A client's words are for the edge: they are never the game's. */
export function isWords(datagram: Buffer): boolean {
  if (datagram.length < HEAD_BYTES + TOKEN_BYTES_MIN || !datagram.subarray(0, MARK.length).equals(MARK)) return false
  return datagram[MARK.length] === HELLO || datagram[MARK.length] === PROOF
}
