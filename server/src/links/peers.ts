// Recognises the other end of a link by its certificate. Node's own check is used where both ends are certain already; these
// two cases need more: a machine that joins knows only a hash, and a certificate that ended lately may still be renewed.
import type { X509Certificate } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import { keyHash, nodeOfSubject } from './names.ts'
import { PLATFORM_NAME, RENEW_LATE_MS_MAX } from './protocol.ts'

/** A node that has proven its key. `is_late`: its certificate has ended, so that it may only renew it. */
export type NodePeer = {
  node_id: string
  /** SPKI. */
  public_key: Buffer
  key_hash: string
  is_late: boolean
}

/** Null: the other end showed no valid certificate of a node. */
export function nodePeer(socket: TLSSocket, authority: X509Certificate, now_ms: number): NodePeer | null {
  const shown = socket.getPeerX509Certificate()
  if (shown === undefined || !isIssued(shown, authority)) return null
  const node_id = nodeOfSubject(shown.subject)
  const expire_ms = Date.parse(shown.validTo)
  if (node_id === null || Date.parse(shown.validFrom) > now_ms || expire_ms + RENEW_LATE_MS_MAX <= now_ms) return null
  const public_key = shown.publicKey.export({ type: 'spki', format: 'der' })
  return { node_id, public_key, key_hash: keyHash(public_key), is_late: expire_ms <= now_ms }
}

/**
 * The certificate of the authority of the platform at the other end, PEM; null unless its key has this hash and it has
 * certified that end. The TLS handshake has proven that the other end has the certified key.
 */
export function platformAuthority(socket: TLSSocket, key_hash: string): string | null {
  const shown = socket.getPeerX509Certificate()
  const authority = shown?.issuerCertificate
  if (shown === undefined || authority === undefined) return null
  const is_meant = keyHash(authority.publicKey.export({ type: 'spki', format: 'der' })) === key_hash
  const is_platform = isIssued(shown, authority) && shown.checkHost(PLATFORM_NAME) !== undefined
  return is_meant && is_platform ? authority.toString() : null
}

/** The hash of the key of whatever authority the other end shows, for a message. */
export function shownKeyHash(socket: TLSSocket): string | null {
  const authority = socket.getPeerX509Certificate()?.issuerCertificate
  return authority === undefined ? null : keyHash(authority.publicKey.export({ type: 'spki', format: 'der' }))
}

function isIssued(leaf: X509Certificate, authority: X509Certificate): boolean {
  return authority.ca && leaf.checkIssued(authority) && leaf.verify(authority.publicKey)
}
