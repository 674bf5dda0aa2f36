// How api and matchmaker know that a request came through the edge, and that its X-Forwarded-For is therefore true: a
// header that only processes with the platform's keys can send. Lobbies run on the same machine; their word for a
// client's address is worth nothing.
import type { Keys } from './keys.ts'

/** Purpose of the proof, for Keys.mac. */
export const EDGE_PROOF_PURPOSE = 'edge'

/**
 * Returns the proof, which is the same for the life of the keys. It goes to api and matchmaker only, over the internal
 * address.
 */
export function edgeProof(keys: Keys): string {
  return keys.mac(EDGE_PROOF_PURPOSE, 'forwarded').toString('base64url')
}
