// TLS of the edge's public ports. The name that a client asks for in its first message chooses the certificate; a name
// that none covers ends the handshake with an alert. What comes over the connection afterwards must be for that name.

import type { Socket } from 'node:net'
import { createSecureContext, type SecureContext, TLSSocket, type TlsOptions } from 'node:tls'
import { ApiError } from '@muster/contract'
import { clientKey } from '../../addresses/client-ip.ts'
import type { Context } from '../../context.ts'
import { canonicalHost, type HostMeaning } from '../hosts.ts'
import { TLS_HANDSHAKE_MS_MAX } from '../limits.ts'
import { TLS_VERSION_MIN } from './certificate.ts'
import type { CertificateChoice } from './certificates.ts'

/**
 * Options of a TLS server whose certificates these are. In production it has none of its own: OpenSSL would show that one
 * whenever the one for the name is of another kind of key, so who names no host ends in an alert too. On a laptop it has
 * that of the addresses it listens at.
 */
export function tlsOptions(ctx: Context, { own, find }: CertificateChoice): TlsOptions {
  // With no certificate at all the handshake ends in an alert; next to one of the server's own only this is left.
  const nothing = own === null ? createSecureContext({ minVersion: TLS_VERSION_MIN }) : null
  const choose = async (name: string, source: string): Promise<SecureContext> => {
    const host = canonicalHost(name)
    const context = (host === null ? null : await find(host, source)) ?? nothing
    if (context === null) throw new Error('No certificate covers the name.')
    return context
  }
  return {
    minVersion: TLS_VERSION_MIN,
    handshakeTimeout: TLS_HANDSHAKE_MS_MAX,
    ...(own && { cert: own.chain, key: own.key }),
    // It is called as a method of the connection, of which its type does not tell.
    SNICallback(this: unknown, name, done) {
      choose(name, this instanceof TLSSocket ? clientKey(this.remoteAddress ?? '') : '').then(
        (context) => done(null, context),
        (error: Error) => {
          ctx.log.debug({ err: error, name }, 'a handshake is given up')
          done(error)
        },
      )
    },
  }
}

/**
 * Throws API_MISDIRECTED_REQUEST unless the connection was made for this host. A plain connection is made for any; one
 * that named no host for the main domain only.
 */
export function requireServerName(socket: Socket, host: string, meaningOf: (host: string) => HostMeaning | null): void {
  if (!(socket instanceof TLSSocket)) return
  const name = socket.servername
  if (name ? canonicalHost(name) === host : meaningOf(host)?.kind === 'main') return
  throw new ApiError('API_MISDIRECTED_REQUEST')
}

export function isSecure(socket: Socket): boolean {
  return socket instanceof TLSSocket
}

/** Ends a connection so that the other side sees that it broke: by a reset, and over TLS by leaving out the farewell. */
export function breakOff(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy()
  else socket.resetAndDestroy()
}

/** A connection as both of its sockets know it: the one below TLS, and the one above. */
export function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
