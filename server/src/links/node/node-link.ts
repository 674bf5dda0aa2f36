// The node's end of its link: keeps its connections open, and renews the certificate. States of each connection:
// dialling -> open -> lost -> (a pause) -> dialling. Whatever was under way over a lost connection has failed; the database
// pool, the edge and the players' clients try again. The lobbies run on meanwhile.
// A connection to an edge that is being replaced is retired: it carries what runs over it until that edge ends, and the node
// has another one to the next edge, for everything new.
import { randomInt, X509Certificate } from 'node:crypto'
import { type ClientHttp2Session, connect, performServerHandshake, type ServerHttp2Session } from 'node:http2'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import {
  CERTIFICATE_LIFETIME_MS,
  CONNECTION_KINDS,
  type ConnectionKind,
  HelloResponse,
  Identity,
  LINK_VERSION,
  PLATFORM_NAME,
} from '../protocol.ts'
import { call, keepAlive, LinkRefusal, sessionOptions } from '../streams.ts'
import { dial } from './dial.ts'
import { type LobbyTargets, serveLobbyStreams } from './lobby-streams.ts'
import { type NodeFile, writeNodeFile } from './node-file.ts'

const RETRY_MS_MIN = 250
/** Longest pause before a connection is dialled again. */
const RETRY_MS_MAX = 10_000
/** How often the node says hello: its clock and version are compared. */
const HELLO_MS = 30_000
/** Retired connections. Each edge that was replaced has up to three, for an hour by default. The oldest is closed first. */
const RETIRED_MAX = 48
/** When half of the lifetime of the certificate is over. */
const RENEW_BEFORE_MS = CERTIFICATE_LIFETIME_MS / 2

export type NodeLinkOptions = {
  data_dir: string
  file: NodeFile
  version: string
  log: Logger
  now: () => number
  targets: LobbyTargets
  /** Called when the platform refuses this node for good. */
  onRemoved: (reason: string) => void
}

type Session = ClientHttp2Session | ServerHttp2Session
/** `retire`: another connection takes its place. */
type Current = { session: Session; retire: () => void }

export class NodeLink {
  readonly #options: NodeLinkOptions
  readonly #url: URL
  readonly #closing = new AbortController()
  readonly #running: Promise<unknown>
  readonly #first = Promise.withResolvers<HelloResponse>()
  readonly #current_by_kind = new Map<ConnectionKind, Current>()
  readonly #retired = new Set<Session>()
  #file: NodeFile
  #is_down_reported = false

  constructor(options: NodeLinkOptions) {
    this.#options = options
    this.#file = options.file
    this.#url = new URL(options.file.platform_url)
    this.#first.promise.catch(() => {})
    const kinds = CONNECTION_KINDS.filter((kind) => kind !== 'muster-edge' || options.file.roles.includes('edge'))
    this.#running = Promise.all(kinds.map((kind) => this.#keepOpen(kind)))
  }

  /** The response to the first hello. Rejects with a LinkRefusal when the platform refuses this node. */
  hello(): Promise<HelloResponse> {
    return this.#first.promise
  }

  /** The connection for calls; null while it is down. */
  calls(): ClientHttp2Session | null {
    return this.#client('muster-calls')
  }

  /** The connection for what the edge of this node forwards; null while it is down. */
  edge(): ClientHttp2Session | null {
    return this.#client('muster-edge')
  }

  #client(kind: 'muster-calls' | 'muster-edge'): ClientHttp2Session | null {
    const session = this.#current_by_kind.get(kind)?.session as ClientHttp2Session | undefined
    return session === undefined || session.destroyed ? null : session
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#first.reject(new Error('The link was closed.'))
    for (const { session } of this.#current_by_kind.values()) session.destroy()
    for (const session of this.#retired) session.destroy()
    await this.#running
  }

  /** The edge of the platform is being replaced. Until a new connection is open, the former one also gets what is new. */
  #retireAll(): void {
    this.#options.log.info('the edge of the platform is being replaced; connecting to the next one')
    for (const { retire } of this.#current_by_kind.values()) retire()
  }

  #keepRetired(session: Session): void {
    if (session.destroyed) return
    this.#retired.add(session)
    session.once('close', () => this.#retired.delete(session))
    if (this.#retired.size <= RETIRED_MAX) return
    const [oldest] = this.#retired
    oldest?.destroy()
  }

  async #keepOpen(kind: ConnectionKind): Promise<void> {
    const { signal } = this.#closing
    const { log } = this.#options
    let retry_ms = RETRY_MS_MIN
    while (!signal.aborted) {
      try {
        const { is_retired } = await this.#carry(kind, () => {
          retry_ms = RETRY_MS_MIN
        })
        if (is_retired) continue
        if (!signal.aborted) log.warn({ kind }, 'link to the platform was lost; connecting again')
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof LinkRefusal && FINAL_CODES.has(error.code)) {
          this.#first.reject(error)
          this.#options.onRemoved(error.message)
          return
        }
        log[this.#is_down_reported ? 'debug' : 'warn']({ err: error, kind }, 'platform cannot be reached; trying again')
        this.#is_down_reported = true
      }
      // Half of the pause is random, so that many nodes do not come back at the same moment.
      await delay(retry_ms / 2 + randomInt(retry_ms / 2), undefined, { signal }).catch(() => undefined)
      retry_ms = Math.min(retry_ms * 2, RETRY_MS_MAX)
    }
  }

  /** One connection from its opening to its end, or until it is retired. */
  async #carry(kind: ConnectionKind, onOpen: () => void): Promise<{ is_retired: boolean }> {
    const { authority, certificate, key } = this.#file
    const tls = { ca: authority, cert: certificate, key, servername: PLATFORM_NAME }
    const socket = await dial({ url: this.#url, tls }, kind)
    const is_calls = kind === 'muster-calls'
    const is_served = kind === 'muster-streams'
    const session: Session = !is_served
      ? connect('http://platform', { ...sessionOptions(kind), createConnection: () => socket })
      : performServerHandshake(socket, sessionOptions(kind))
    const closed = new Promise<void>((resolve) => void session.once('close', resolve))
    // A session does not notice a socket that closed before it began.
    socket.once('close', () => session.destroy())
    if (socket.destroyed) session.destroy()
    if (this.#closing.signal.aborted) session.destroy()
    keepAlive(session)
    if (is_served) {
      serveLobbyStreams(session as ServerHttp2Session, this.#options.targets, () => this.#retireAll())
    }
    const { promise: retired, resolve: retire } = Promise.withResolvers<void>()
    let is_retired = false
    try {
      if (is_calls) await this.#greet(session as ClientHttp2Session)
      const onRetired = (): void => {
        is_retired = true
        retire()
      }
      this.#current_by_kind.set(kind, { session, retire: onRetired })
      // It was closed after the first hello, before the session was known.
      if (this.#closing.signal.aborted) return { is_retired }
      onOpen()
      this.#is_down_reported = false
      const greeting = is_calls
        ? setInterval(() => this.#greetAgain(session as ClientHttp2Session), HELLO_MS)
        : undefined
      await Promise.race([closed, retired])
      clearInterval(greeting)
      return { is_retired }
    } finally {
      if (is_retired && !this.#closing.signal.aborted) this.#keepRetired(session)
      else {
        session.destroy()
        if (this.#current_by_kind.get(kind)?.session === session) this.#current_by_kind.delete(kind)
      }
    }
  }

  async #greet(session: ClientHttp2Session): Promise<void> {
    const { now, version } = this.#options
    await this.#renewIfDue(session)
    const hello = { link_version: LINK_VERSION, version, now_ms: now() }
    this.#first.resolve(await call(session, '/hello', hello, HelloResponse))
  }

  /** A failure ends the connection, and the next one reports what is wrong. */
  #greetAgain(session: ClientHttp2Session): void {
    this.#greet(session).catch((error: unknown) => {
      if (session.destroyed) return
      this.#options.log.warn({ err: error }, 'platform did not respond to a hello; connecting again')
      session.destroy()
    })
  }

  async #renewIfDue(session: ClientHttp2Session): Promise<void> {
    const { now, data_dir, log } = this.#options
    const expire_ms = Date.parse(new X509Certificate(this.#file.certificate).validTo)
    if (expire_ms - now() > RENEW_BEFORE_MS) return
    const { certificate, authority } = await call(session, '/renew', {}, Identity)
    this.#file = { ...this.#file, certificate, authority }
    writeNodeFile(data_dir, this.#file)
    log.info('certificate renewed')
    // The connections still use the old certificate. One that has ended may only renew itself.
    if (expire_ms <= now()) session.destroy()
  }
}

/** Refusals that trying again does not change. */
const FINAL_CODES: ReadonlySet<string> = new Set(['NODE_REMOVED', 'NODE_UNKNOWN', 'NODE_VERSION_UNSUPPORTED'])
