// The keys of an edge on a node that has joined: it verifies player tokens, and proves itself to api and matchmaker. All other keys
// are made in memory, so that the node can issue and verify no other token of the platform.
import { postOverLink } from '../wire/link-call.ts'
import { EDGE_PROOF_PURPOSE } from './edge-proof.ts'
import { type Keys, keysOf } from './keys.ts'
import { createRing, type Ring, type RingKey } from './ring.ts'

type EdgeKeys = { proof: string; player_keys: RingKey[] }

/** `link`: the unix socket of the link. Rejects while the platform cannot be reached. */
export async function openLinkedKeys(link: string): Promise<Keys> {
  const own = createRing()
  let { proof, player_keys } = await readEdgeKeys(link)
  const ringOf = (keys: RingKey[]): Ring => ({
    keys: [...own.keys.filter(({ algorithm }) => algorithm !== 'hmac-sha256'), ...keys],
  })
  const keys = keysOf(ringOf(player_keys), async () => ringOf(player_keys))
  return {
    issue: keys.issue.bind(keys),
    verify: keys.verify.bind(keys),
    mac: (purpose, data) =>
      purpose === EDGE_PROOF_PURPOSE ? Buffer.from(proof, 'base64url') : keys.mac(purpose, data),
    playerKeys: () => player_keys,
    async refresh() {
      ;({ proof, player_keys } = await readEdgeKeys(link))
      await keys.refresh()
    },
  }
}

function readEdgeKeys(link: string): Promise<EdgeKeys> {
  return postOverLink(link, { path: '/edge-keys', body: {}, refusal: 'The platform gives this edge no keys' })
}
