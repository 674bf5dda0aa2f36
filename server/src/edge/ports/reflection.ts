// The source of a datagram may be forged, and what a game answers would then hit somebody who never asked. So until a
// source has proven that it is where it says, it gets three bytes at most for each byte that came from it. It is proven
// by a seat in the lobby that its client took (seats.ts), or by an echo: eight bytes in a row of what was sent to it,
// that it could not have known, nor had sent itself before. Most protocols begin by having a number of the server's sent
// back. Where one has none, a port can ask for the player's token instead (udp-welcome.ts).
import { ECHO_BYTES_MAX, ECHO_DATAGRAMS_MAX, REPLY_FACTOR_MAX } from '../limits.ts'

export type Proof = {
  /** A datagram from the source. True: it proves the source, which this object is then not asked about any more. */
  received: (datagram: Buffer) => boolean
  /** Whether so many bytes may be sent there. */
  mayReply: (length: number) => boolean
  replied: (datagram: Buffer) => void
}

const WINDOW_BYTES = 8
/** Of the eight: runs of zeros and the like are easily guessed. */
const DISTINCT_MIN = 5

export function createProof(): Proof {
  let received_bytes = 0
  let replied_bytes = 0
  let looked_through = 0
  /** Bytes as text, one character each, up to ECHO_BYTES_MAX; datagrams are kept apart by what no byte is. */
  let own = ''
  let replies = ''

  return {
    received(datagram) {
      received_bytes += datagram.length
      const text = datagram.toString('latin1', 0, ECHO_BYTES_MAX)
      const may_be_echo = replies !== '' && looked_through < ECHO_DATAGRAMS_MAX
      if (may_be_echo) looked_through++
      if (may_be_echo && hasEcho(text, replies, own)) return true
      if (own.length < ECHO_BYTES_MAX) own += `${BOUNDARY}${text}`
      return false
    },
    mayReply: (length) => replied_bytes + length <= received_bytes * REPLY_FACTOR_MAX,
    replied(datagram) {
      replied_bytes += datagram.length
      if (replies.length < ECHO_BYTES_MAX) replies += `${BOUNDARY}${datagram.toString('latin1', 0, ECHO_BYTES_MAX)}`
    },
  }
}

const BOUNDARY = '\u{100}'

function hasEcho(text: string, replies: string, own: string): boolean {
  for (let start = 0; start + WINDOW_BYTES <= text.length; start++) {
    const window = text.slice(start, start + WINDOW_BYTES)
    if (replies.includes(window) && !own.includes(window) && new Set(window).size >= DISTINCT_MIN) return true
  }
  return false
}
