// The keys of an edge on a node that has joined: it verifies player tokens, and proves itself to api and matchmaker. All other keys
// are made in memory, so that the node can issue and verify no other token of the platform.
import { callLink } from '../link-call.ts'
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

async function readEdgeKeys(link: string): Promise<EdgeKeys> {
  const response = await callLink(link, { method: 'POST', path: '/edge-keys', body: '{}' })
  let text = ''
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) text += chunk
  if (response.statusCode !== 200) throw new Error(`The platform gives this edge no keys: ${text}`)
  return JSON.parse(text) as EdgeKeys
}
