// Address validation (RFC 9000, 8). The source of a datagram may be forged, and the game's replies would then hit a victim.
// Until a source is validated, it is sent at most three bytes for each byte received from it. A source is validated by a seat
// that its client took in the lobby (seats.ts), or by a cookie that the edge sent to it. Bytes of the game
// that the source sends back prove nothing: a banner is the same for every client, and a counter can be guessed.
import { REPLY_FACTOR_MAX } from '../limits.ts'

/** What a source that is not validated may still be sent. */
export type Allowance = {
  /** Counts received bytes. */
  received: (length: number) => void
  /** Returns whether this many bytes may be sent, and counts them if so. */
  mayReply: (length: number) => boolean
  /** For `createAllowance` in another process. */
  state: () => AllowanceState
}

export type AllowanceState = { received_bytes: number; replied_bytes: number }

export function createAllowance({ received_bytes, replied_bytes }: AllowanceState = NOTHING): Allowance {
  return {
    state: () => ({ received_bytes, replied_bytes }),
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

const NOTHING: AllowanceState = { received_bytes: 0, replied_bytes: 0 }
