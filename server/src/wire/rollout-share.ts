// Which clients are of the part that gets the version of a roll-out. The edge serves them its site, and the matchmaker its
// lobbies, so both must agree. A client keeps its place: a larger part has all clients of a smaller one, and another
// roll-out has others.
import { createHash } from 'node:crypto'

/** A roll-out under way, as the edge and the matchmaker know it. `percent`: the part of the clients, 1 to 99. */
export type RolloutShare = { rollout_id: string; percent: number }

const HASHES = 2 ** 32

/** `client_key`: an IPv4 address or an IPv6 /64, as limits count clients. */
export function isOfRollout({ rollout_id, percent }: RolloutShare, client_key: string): boolean {
  const hash = createHash('sha256').update(`${rollout_id}\n${client_key}`).digest().readUInt32BE(0)
  return hash < (percent / 100) * HASHES
}
