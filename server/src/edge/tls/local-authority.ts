// The certificate authority of a development machine. It is created in the data folder at the first start, and certifies this
// machine's own names to clients that trust it. Its own certificate limits it to localhost and loopback addresses. So a thief
// of its key cannot certify any name of the Internet.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ExtendedKeyUsage, Extension } from '@peculiar/x509'
import { certify, DAY_MS, newKeyPair, openPrivateAuthority, pemOf } from '../../process-tls/private-authority.ts'
import { type Certificate, readCertificate } from './certificate.ts'

export type LocalAuthority = {
  /** The path of the certificate that clients must trust. */
  file: string
  /** Issues a certificate for names and addresses, valid for CERTIFICATE_LIFETIME_MS. */
  certify: (hosts: readonly LocalHost[], now_ms: number) => Promise<Certificate>
}

export type LocalHost = { type: 'dns' | 'ip'; value: string }

export const CERTIFICATE_LIFETIME_MS = 397 * DAY_MS

/** Opens the authority of `folder`, or creates it. Concurrent processes get the same one. Throws when its file is damaged. */
export async function openLocalAuthority(folder: string, now_ms: number): Promise<LocalAuthority> {
  const authority_file = {
    path: join(folder, 'local-authority.pem'),
    subject: 'CN=Muster on this machine, O=Muster',
    extensions: [onlyThisMachine()],
    remedy: 'Remove it, and trust the new one that is made at the next start.',
  }
  const authority = await openPrivateAuthority(authority_file, now_ms)
  const file = join(folder, 'local-authority.crt')
  await writeFile(file, pemOf(authority.certificate), { mode: 0o644 })

  const own = await newKeyPair()
  const own_key = pemOf(own.privateKey)
  return {
    file,
    async certify(hosts, certify_ms) {
      const certificate = await certify(authority, {
        // OpenSSL applies the authority's name constraints to a common name that looks like a host or an address.
        common_name: hosts.find(({ type }) => type === 'dns')?.value ?? 'Muster raw ports',
        alternative_names: hosts,
        public_key: own.publicKey,
        usages: [ExtendedKeyUsage.serverAuth],
        now_ms: certify_ms,
        lifetime_ms: CERTIFICATE_LIFETIME_MS,
      })
      return readCertificate(certificate, own_key)
    },
  }
}

/** Returns critical name constraints (RFC 5280, 4.2.1.10). The library has no class for them. */
function onlyThisMachine(): Extension {
  const PERMITTED = 0xa0
  const DNS = 0x82
  const ADDRESS = 0x87
  const SEQUENCE = 0x30
  const subtrees = [
    der(DNS, Buffer.from('localhost')),
    der(ADDRESS, Buffer.from([127, 0, 0, 0, 255, 0, 0, 0])),
    der(ADDRESS, Buffer.concat([Buffer.alloc(15), Buffer.from([1]), Buffer.alloc(16, 0xff)])),
  ]
  const permitted = subtrees.map((base) => der(SEQUENCE, base))
  return new Extension('2.5.29.30', true, der(SEQUENCE, der(PERMITTED, Buffer.concat(permitted))))
}

/** Encodes a value of less than 128 bytes. */
function der(tag: number, content: Buffer): Buffer<ArrayBuffer> {
  return Buffer.concat([Buffer.from([tag, content.length]), content])
}
