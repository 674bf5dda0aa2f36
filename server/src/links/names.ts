// The names in certificates of links, and the hash by which a key is known. Apart from authority.ts, whose libraries load slowly.
import { hash } from 'node:crypto'
import { join } from 'node:path'

const NODE_SUFFIX = '.node.muster.internal'

export function nameOfNode(node_id: string): string {
  return `${node_id}${NODE_SUFFIX}`
}

/** The node that the subject of a certificate names; null: it is not that of a node. */
export function nodeOfSubject(subject: string): string | null {
  const name = /^CN=([^\n]+)$/.exec(subject)?.[1]
  return name?.endsWith(NODE_SUFFIX) ? name.slice(0, -NODE_SUFFIX.length) : null
}

/** SHA-256, base64url. `public_key`: SPKI. */
export function keyHash(public_key: Uint8Array): string {
  return hash('sha256', public_key, 'base64url')
}

/** The unix sockets of a joined node for its edge: the HTTP of two roles, links of other nodes, and ports of lobbies. */
export function edgeSocketPath(folder: string, name: 'api' | 'matchmaker' | 'link' | 'ports'): string {
  return join(folder, `${name}.sock`)
}
