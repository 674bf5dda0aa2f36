// The certificate authority of the platform. It certifies the platform's end of links, and the nodes. Its key is in the key
// folder, is made at first use, and leaves the machine only in backups. The hash of its public key is in every invitation.
import { join } from 'node:path'
import { ExtendedKeyUsage } from '@peculiar/x509'
import {
  AUTHORITY_LIFETIME_MS,
  certify,
  KEY_ALGORITHM,
  type Leaf,
  newKeyPair,
  openPrivateAuthority,
  pemOf,
} from '../process-tls/private-authority.ts'
import { keyHash, nameOfNode } from './names.ts'
import { CERTIFICATE_LIFETIME_MS, PLATFORM_NAME } from './protocol.ts'

/** A certificate and its key, PEM. */
export type OwnCertificate = { certificate: string; key: string }

export type Authority = {
  /** The authority's own certificate, PEM. */
  certificate: string
  /** SHA-256 of its public key, base64url. */
  key_hash: string
  /** Certifies the platform's end of links, with a new key, which is in memory only. */
  certifyPlatform: (now_ms: number) => Promise<OwnCertificate>
  /** Certifies a node. `public_key`: SPKI. Throws when it is no P-256 key. */
  certifyNode: (node_id: string, public_key: Uint8Array, now_ms: number) => Promise<string>
}

/** Opens the authority of the key folder, or makes it. Concurrent processes get the same one. Throws when its file is damaged. */
export async function openAuthority(keys_folder: string, now_ms: number): Promise<Authority> {
  const file = {
    path: join(keys_folder, 'platform-authority.pem'),
    subject: 'CN=Muster platform, O=Muster',
    extensions: [],
    remedy: 'Restore it from a backup; without it every joined node must join again.',
  }
  const authority = await openPrivateAuthority(file, now_ms)
  const certifyName = (name: string, leaf: Omit<Leaf, 'common_name' | 'alternative_names'>): Promise<string> =>
    certify(authority, { common_name: name, alternative_names: [{ type: 'dns', value: name }], ...leaf })
  return {
    certificate: pemOf(authority.certificate),
    key_hash: keyHash(new Uint8Array(authority.certificate.publicKey.rawData)),
    async certifyPlatform(certify_ms) {
      const own = await newKeyPair()
      const certificate = await certifyName(PLATFORM_NAME, {
        public_key: own.publicKey,
        usages: [ExtendedKeyUsage.serverAuth],
        now_ms: certify_ms,
        lifetime_ms: AUTHORITY_LIFETIME_MS,
      })
      return { certificate, key: pemOf(own.privateKey) }
    },
    async certifyNode(node_id, public_key, certify_ms) {
      return certifyName(nameOfNode(node_id), {
        public_key: await crypto.subtle.importKey('spki', Buffer.from(public_key), KEY_ALGORITHM, true, ['verify']),
        usages: [ExtendedKeyUsage.clientAuth],
        now_ms: certify_ms,
        lifetime_ms: CERTIFICATE_LIFETIME_MS,
      })
    },
  }
}
