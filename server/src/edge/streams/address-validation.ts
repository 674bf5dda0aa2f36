// The source of a datagram may be forged, and what a game sends back would then hit somebody who never asked. So until a
// source has proven that it is where it says, it gets three bytes at most for each byte that came from it. It is proven by a
// seat in the lobby that its client took (seats.ts), or by a cookie that the edge sent there (udp-handshake.ts). Bytes of the
// game that come back prove nothing: a banner is the same for everybody, and a counter is guessed.
import { REPLY_FACTOR_MAX } from '../limits.ts'

/** What a source has yet to prove, and what it may get meanwhile. */
export type Allowance = {
  received: (length: number) => void
  /** Whether so many bytes may be sent there. They count when they may. */
  mayReply: (length: number) => boolean
}

export function createAllowance(): Allowance {
  let received_bytes = 0
  let replied_bytes = 0
  return {
    received(length) {
      received_bytes += length
    },
    mayReply(length) {
      if (replied_bytes + length > received_bytes * REPLY_FACTOR_MAX) return false
      replied_bytes += length
      return true
    },
  }
}
