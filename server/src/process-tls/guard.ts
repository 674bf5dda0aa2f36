// The listeners of api and matchmaker, which processes of this machine and of other machines reach at the same port. The first
// byte of a connection says whether it is TLS. From other machines nothing else is served: their processes prove themselves by
// certificates (process-tls.ts). Connections of this machine may be plain.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { createServer, type Server as SecureServer } from 'node:tls'
import type { Logger } from 'pino'
import { isTrustedPeer, parseTrustedProxies, type TrustedProxies } from '../addresses/client-ip.ts'
import { isLoopback, type OwnAddresses } from '../addresses/own-addresses.ts'
import { type ProcessRole, roleOfSubject } from './names.ts'
import { type ProcessTls, TLS_VERSION } from './process-tls.ts'

/** The first byte of a TLS record that begins a handshake. */
const HANDSHAKE = 0x16
/** Time until the first byte of a connection. The edge sends it at once. */
const FIRST_BYTE_MS_MAX = 10_000
/** Time for the handshake. */
const HANDSHAKE_MS_MAX = 10_000
/** Connections of other machines that have not proven themselves. */
const UNPROVEN_MAX = 256
/** A connection that is refused is logged once in this time. */
const LOG_EVERY_MS = 60_000

type GuardOptions = {
  tls: ProcessTls
  /** Roles whose certificates are accepted. */
  roles: readonly ProcessRole[]
  own_addresses: OwnAddresses
  /** CIDR blocks of other machines whose connections may be plain. */
  plain_from: readonly string[]
  elapsed: () => number
  log: Logger
}

/** Takes over the connections of a server that does not listen yet. */
export class ListenerGuard {
  readonly #options: GuardOptions
  readonly #serve: (socket: Socket) => void
  /** The ends of connections of other machines that have not proven themselves. */
  readonly #unproven = new Set<string>()
  readonly #plain_from: TrustedProxies
  /** Connections that the server does not know yet, by their ends. */
  readonly #waiting = new Map<string, Socket>()
  #secure: Promise<SecureServer> | null = null
  #logged_ms = Number.NEGATIVE_INFINITY

  constructor(server: Server, options: GuardOptions) {
    this.#options = options
    this.#plain_from = parseTrustedProxies(options.plain_from)
    const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
    this.#serve = (socket) => {
      for (const listener of listeners) listener.call(server, socket)
    }
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => this.#accept(socket))
  }

  /** The server is about to close, and closes only connections that it knows. */
  close(): void {
    for (const socket of this.#waiting.values()) socket.destroy()
  }

  #accept(socket: Socket): void {
    const ends = endsOf(socket)
    const is_own = this.#isOwn(socket)
    if (!is_own && this.#unproven.size >= UNPROVEN_MAX) return void socket.destroy()
    if (!is_own) this.#unproven.add(ends)
    this.#waiting.set(ends, socket)
    const destroy = (): void => void socket.destroy()
    const late = setTimeout(destroy, FIRST_BYTE_MS_MAX)
    socket.once('error', destroy).once('end', destroy)
    socket.once('close', () => {
      clearTimeout(late)
      this.#forget(ends)
    })
    socket.once('data', (bytes: Buffer) => {
      clearTimeout(late)
      socket.off('end', destroy)
      socket.pause()
      socket.unshift(bytes)
      if (bytes[0] === HANDSHAKE) return void this.#acceptSecure(socket)
      if (!is_own && !this.#mayBePlain(socket)) return this.#refuse(socket, 'it is not TLS')
      socket.off('error', destroy)
      this.#forget(ends)
      this.#serve(socket)
      socket.resume()
    })
  }

  async #acceptSecure(socket: Socket): Promise<void> {
    try {
      this.#secure ??= this.#openSecure()
      const secure = await this.#secure
      // Otherwise a client that ends in its handshake would be waited for.
      socket.allowHalfOpen = false
      if (!socket.destroyed) secure.emit('connection', socket)
    } catch (error) {
      this.#secure = null
      this.#options.log.error({ err: error }, 'the certificate of this process could not be made')
      socket.destroy()
    }
  }

  async #openSecure(): Promise<SecureServer> {
    const { tls, roles } = this.#options
    const proof = { requestCert: true, rejectUnauthorized: true, handshakeTimeout: HANDSHAKE_MS_MAX }
    const secure = createServer({ ...proof, minVersion: TLS_VERSION }, (socket) => {
      const role = roleOfSubject(socket.getPeerX509Certificate()?.subject ?? '')
      if (!roles.some((one) => one === role)) return this.#refuse(socket, 'its certificate is of another role')
      this.#forget(endsOf(socket))
      this.#serve(socket)
    })
    secure.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
      // A caller that ended, or that was too busy.
      if (error.code === 'ECONNRESET') socket.destroy()
      else this.#refuse(socket, error.message)
    })
    await tls.follow((certificate) => secure.setSecureContext({ ...certificate, minVersion: TLS_VERSION }))
    return secure
  }

  #forget(ends: string): void {
    this.#unproven.delete(ends)
    this.#waiting.delete(ends)
  }

  #isOwn({ remoteAddress = '', localAddress }: Socket): boolean {
    if (remoteAddress === localAddress) return true
    return isLoopback(remoteAddress) || this.#options.own_addresses.has(remoteAddress)
  }

  #mayBePlain({ remoteAddress = '' }: Socket): boolean {
    return isTrustedPeer(remoteAddress, this.#plain_from)
  }

  #refuse(socket: Socket, reason: string): void {
    const { elapsed, log } = this.#options
    if (elapsed() - this.#logged_ms >= LOG_EVERY_MS) {
      this.#logged_ms = elapsed()
      log.warn({ peer: socket.remoteAddress, reason }, 'a connection to an internal port was refused')
    }
    socket.destroy()
  }
}

/** Identifies a connection: the same text for its raw socket and for its TLS socket. */
function endsOf({ remoteAddress, remotePort, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localPort}`
}
