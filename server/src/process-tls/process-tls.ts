// Mutual TLS between processes of one platform on several machines. Each process certifies itself (certificate.ts) when it
// needs a certificate for the first time: a platform of one machine never does. It renews it while it runs, and new
// connections use the new one. The other end must have a certificate of the same authority, which names its role.
import { Agent, type ClientRequestArgs } from 'node:http'
import type { OnReadOpts, Socket } from 'node:net'
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Keys } from '../tokens/keys.ts'
import type { ProcessCertificate } from './certificate.ts'
import { CERTIFICATE_LIFETIME_MS, nameOfProcess, type ProcessRole } from './names.ts'

export const TLS_VERSION = 'TLSv1.3'
/** How often a process checks whether its certificate is to be renewed, and how soon it tries again. */
const RENEW_CHECK_MS = 5_000
/** From the connection to the end of its handshake. A process that has just started gets many at once. */
const HANDSHAKE_MS_MAX = 5_000
/** The code of its error. The other process could be reached, and may be busy or suspended. */
export const HANDSHAKE_TIMEOUT = 'ETIMEDOUT'
/** Sessions to resume, one for each address. */
const SESSIONS_MAX = 128

type TlsOptions = {
  keys: Pick<Keys, 'mac'>
  now: () => number
  elapsed: () => number
  log: Logger
}

type Issued = ProcessCertificate & { context: SecureContext; issued_ms: number }

export type ConnectTarget = {
  host: string
  port: number
  onread?: OnReadOpts
  allowHalfOpen?: boolean
}

export class ProcessTls {
  readonly #options: TlsOptions
  readonly #role: ProcessRole
  readonly #sessions = new LRUCache<string, Buffer>({ max: SESSIONS_MAX })
  readonly #followers = new Set<(certificate: ProcessCertificate) => void>()
  #opening: Promise<void> | null = null
  #issued: Issued | null = null
  #timer: NodeJS.Timeout | undefined

  /** `role`: of this process. */
  constructor(options: TlsOptions, role: ProcessRole) {
    this.#options = options
    this.#role = role
  }

  /** Issues the certificate, once. Must have resolved before `connect`. After a failure the next call tries again. */
  open(): Promise<void> {
    this.#opening ??= this.#begin().catch((error: unknown) => {
      this.#opening = null
      throw error
    })
    return this.#opening
  }

  /** Calls the function with the certificate of this process, now and after each renewal. */
  async follow(use: (certificate: ProcessCertificate) => void): Promise<void> {
    await this.open()
    this.#followers.add(use)
    use(this.#issued!)
  }

  /** Begins a connection to a matchmaker. What is written meanwhile is sent once the matchmaker has proven itself. */
  connect({ host, port, onread, allowHalfOpen = false }: ConnectTarget): TLSSocket {
    if (this.#issued === null) throw new Error('A connection needs the certificate of this process.')
    const key = `${host}:${port}`
    const session = this.#sessions.get(key)
    // The types do not know that options of the connection below are accepted too.
    const below = { noDelay: true, ...(onread !== undefined && { onread }) }
    const socket = connect({
      ...below,
      ...{ host, port, allowHalfOpen, secureContext: this.#issued.context, minVersion: TLS_VERSION },
      servername: nameOfProcess('matchmaker'),
      ...(session !== undefined && { session }),
    })
    let late: NodeJS.Timeout | undefined
    socket.once('connect', () => {
      late = setTimeout(() => socket.destroy(handshakeTooLong()), HANDSHAKE_MS_MAX)
    })
    socket.once('secureConnect', () => clearTimeout(late))
    socket.on('session', (received: Buffer) => this.#sessions.set(key, received))
    socket.once('close', () => clearTimeout(late))
    socket.on('error', () => {
      // A session that the other end does not know any more costs nothing. One that breaks the handshake must not stay.
      if (!socket.authorized) this.#sessions.delete(key)
    })
    return socket
  }

  /** For requests to matchmakers. */
  agent(options: { maxFreeSockets: number }): Agent {
    return new TlsAgent(this, { keepAlive: true, ...options })
  }

  close(): void {
    clearInterval(this.#timer)
    this.#followers.clear()
  }

  async #begin(): Promise<void> {
    await this.#issue()
    this.#timer = setInterval(() => void this.#renew(), RENEW_CHECK_MS)
    this.#timer.unref()
  }

  async #issue(): Promise<void> {
    const { keys, now, elapsed } = this.#options
    const { issueProcessCertificate } = await import('./certificate.ts')
    const certificate = await issueProcessCertificate(keys, this.#role, now())
    const context = createSecureContext({ ...certificate, minVersion: TLS_VERSION })
    this.#issued = { ...certificate, context, issued_ms: elapsed() }
    // They stand for the certificate before.
    this.#sessions.clear()
    for (const use of this.#followers) use(certificate)
  }

  async #renew(): Promise<void> {
    const { elapsed, log } = this.#options
    if (elapsed() - this.#issued!.issued_ms < CERTIFICATE_LIFETIME_MS / 2) return
    try {
      await this.#issue()
    } catch (error) {
      log.warn({ err: error }, 'the certificate of this process could not be renewed; trying again')
    }
  }
}

class TlsAgent extends Agent {
  readonly #tls: ProcessTls

  constructor(tls: ProcessTls, options: { keepAlive: boolean; maxFreeSockets: number }) {
    super(options)
    this.#tls = tls
  }

  override createConnection({ host, port }: ClientRequestArgs): Socket {
    return this.#tls.connect({ host: host!, port: Number(port) })
  }
}

function handshakeTooLong(): Error {
  return Object.assign(new Error('The TLS handshake takes too long.'), { code: HANDSHAKE_TIMEOUT })
}
