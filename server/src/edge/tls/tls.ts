// TLS of the edge's public ports. The server name in the client's first message chooses the certificate; a name without a
// certificate ends the handshake with an alert. All requests of the connection must then be for that name.
import type { Socket } from 'node:net'
import { createSecureContext, type SecureContext, TLSSocket, type TlsOptions } from 'node:tls'
import { ApiError } from '@musterhost/contract'
import { clientKey } from '../../addresses/client-ip.ts'
import type { Context } from '../../context.ts'
import { TLS_HANDSHAKE_MS_MAX } from '../limits.ts'
import { canonicalHost, type HostMeaning } from '../routes/hosts.ts'
import { TLS_VERSION_MIN } from './certificate.ts'
import type { CertificateChoice } from './certificates.ts'
import { TICKET_OPTIONS } from './ticket-keys.ts'

const HTTP2 = 'h2'
/** What the HTTPS port speaks. A WebSocket needs HTTP/1.1, and browsers open a connection of its own for it. */
export const HTTPS_PROTOCOLS = [HTTP2, 'http/1.1']

/**
 * Returns the options of a TLS server with these certificates. In production it has no default certificate, because OpenSSL
 * would show it whenever the chosen one has another type of key. So a client that names no host gets an alert too. In
 * development the default certificate is that of the addresses it listens at.
 */
export function tlsOptions(ctx: Context, { own, find }: CertificateChoice): TlsOptions {
  // Without a default certificate, an empty context ends the handshake with an alert. Otherwise an error must.
  const nothing = own === null ? createSecureContext({ minVersion: TLS_VERSION_MIN }) : null
  const choose = async (name: string, client_key: string): Promise<SecureContext> => {
    const host = canonicalHost(name)
    const context = (host === null ? null : await find(host, client_key)) ?? nothing
    if (context === null) throw new Error('No certificate covers the name.')
    return context
  }
  return {
    ...TICKET_OPTIONS,
    minVersion: TLS_VERSION_MIN,
    handshakeTimeout: TLS_HANDSHAKE_MS_MAX,
    ...(own && { cert: own.chain, key: own.key }),
    // Node calls it as a method of the connection, which its type does not show.
    SNICallback(this: unknown, name, done) {
      choose(name, this instanceof TLSSocket ? clientKey(this.remoteAddress ?? '') : '').then(
        (context) => done(null, context),
        (error: Error) => {
          ctx.log.debug({ err: error, name }, 'TLS handshake refused')
          done(error)
        },
      )
    },
  }
}

/**
 * Throws API_MISDIRECTED_REQUEST unless the connection may carry requests for this host. A connection without TLS may carry
 * any; a TLS connection without a server name only those for the main domain.
 */
export function requireServerName(
  { is_secure, server_name }: { is_secure: boolean; server_name: string | null },
  host: string,
  meaningOf: (host: string) => HostMeaning | null,
): void {
  if (!is_secure) return
  if (server_name !== null ? canonicalHost(server_name) === host : meaningOf(host)?.kind === 'main') return
  throw new ApiError('API_MISDIRECTED_REQUEST')
}

export function isSecure(socket: Socket): boolean {
  return socket instanceof TLSSocket
}

/** The name of the handshake. Null: the client named no host, or the connection has no TLS. */
export function serverNameOf(socket: Socket): string | null {
  return socket instanceof TLSSocket && socket.servername ? socket.servername : null
}

/** Whether the handshake chose HTTP/2. */
export function isHttp2(socket: Socket): socket is TLSSocket {
  return socket instanceof TLSSocket && socket.alpnProtocol === HTTP2
}

/**
 * Breaks a connection visibly for the other side: by a reset, and over TLS by a close without close_notify. A unix socket,
 * which has no address, is closed.
 */
export function breakOff(socket: Breakable): void {
  if (socket instanceof TLSSocket || socket.remoteFamily === undefined) socket.destroy()
  else socket.resetAndDestroy()
}

type Breakable = Pick<Socket, 'remoteFamily'> & { destroy(): unknown; resetAndDestroy(): unknown }

/** Identifies a connection: the same text for its raw socket and for its TLS socket. */
export function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
