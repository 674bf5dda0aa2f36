// WebSockets for operations that also have a long poll, at the same path. The token is in the query, because browsers cannot
// send a header with an upgrade. After the upgrade the server sends what is new, as soon as it is known.
//
// No message is queued: the next one is made when the client has taken the one before. So a slow client receives fewer
// messages, and a client that takes none is closed. Close codes: 1000 nothing more will come; 1001 the process ends; 1008 the
// caller is no longer allowed, or sent too much; 1009 a message is too long; 1013 try again: too slow, or too many sockets.
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { ApiError, type Operation, validationError } from '@musterhost/contract'
import { createShapeCheck, type ShapeCheck } from '@musterhost/contract/schema-check'
import { type WebSocket, WebSocketServer } from 'ws'
import { clientKey } from '../addresses/client-ip.ts'
import { ClientShare } from '../addresses/client-share.ts'
import { areRefusalsAudited } from '../audit/unaudited.ts'
import { createTimerWhileNeeded } from '../flow/timer-while-needed.ts'
import { phase, type Ray, type RayService } from '../observe/ray.ts'
import type { Caller } from '../tokens/caller.ts'
import { RAY_HEADER } from '../wire/headers.ts'
import { addressOf, requireRate } from './admission.ts'
import { authenticate, bearerOf } from './auth.ts'
import { refuseUpgrade } from './errors.ts'
import type { MountOptions } from './mount-options.ts'
import { ownerOf } from './ray.ts'
import { recordRefusal } from './refusals.ts'
import { groundsOfToken, noSlot } from './watches.ts'

/** WebSockets of a role. */
const SOCKETS_MAX = 20_000
/** WebSockets of one client: a school's network may have many players. */
const CLIENT_SOCKETS_MAX = 256
/** Bytes of a message of a client. The content of such messages is not read. */
const MESSAGE_BYTES_MAX = 1_024
/** Messages, fragments, pings and pongs of a client between two pings of the server. */
const MESSAGES_MAX = 32
const PING_EVERY_MS = 30_000
/** Pings are spread over PING_EVERY_MS: thousands at once would delay requests here and at the edge. */
const PING_GROUPS = 120
/** A client that does not take a fragment within this time is too slow. */
const SLOW_MS_MAX = 10_000
/** A long message is sent in fragments, so that at most one of them is buffered for a slow client. */
const FRAGMENT_BYTES = 64 * 1_024
/** How long a client may take to confirm a close; at the end of the process GOODBYE_MS_MAX. */
const CLOSE_MS_MAX = 2_000
/** Time for a client to confirm a close at the end of the process. */
const GOODBYE_MS_MAX = 500

const [OVER, GOING_AWAY, POLICY, INTERNAL, TRY_AGAIN] = [1000, 1001, 1008, 1011, 1013]

const SERVER_OPTIONS = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: MESSAGE_BYTES_MAX,
  maxFragments: MESSAGES_MAX,
  // The package's types lack it.
  closeTimeout: CLOSE_MS_MAX,
}

export type OpenSocket = {
  /** Resolves when the client has taken the message, or the socket is closed. */
  send(text: string | Buffer): Promise<void>
  isOpen(): boolean
  /** Aborted when the socket is closed. */
  over: AbortSignal
}

export type Opening = {
  caller: Caller
  /** The address of the client, and the key that limits count by. */
  client_ip: string
  client_key: string
  /** What the caller proved itself with. */
  token: string
  params: Record<string, string>
  query: Record<string, string>
}

export type SocketRoute = {
  /** Its path, callers, parameters, query and rate limit hold for the socket too. */
  operation: Operation
  /** The member of the query that has the token. */
  token_member: string
  /** Any page can open a socket: throws for a page of a foreign origin. Programs send no Origin. */
  requireOrigin: (origin: string, caller: Caller) => void | Promise<void>
  /** Throws what the call would be refused with. Called again while the socket is open. */
  admit: (opening: Opening) => void | Promise<void>
  /** When it resolves, the socket is closed. An ApiError closes it with that code as the reason. */
  serve: (socket: OpenSocket, opening: Opening) => Promise<void>
}

type KnownRoute = { route: SocketRoute; pattern: RegExp; checkParams: ShapeCheck; checkQuery: ShapeCheck }
type Target = {
  known: KnownRoute
  params: Record<string, string>
  query: Record<string, string>
  authorization: string | undefined
}
/** The client at the other end of a socket. */
type Subscriber = {
  opening: Opening
  known: KnownRoute
  token: string
  is_alive: boolean
  message_count: number
}

/** For the options of Node's server: any other upgrade is handled like a request without one. */
export function isSocketUpgrade(operations: readonly Operation[]): (request: IncomingMessage) => boolean {
  const patterns = operations.map(patternOf)
  return ({ method, url = '', headers }) => {
    const path = pathOf(url)
    const is_asked = method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket'
    return is_asked && patterns.some((pattern) => pattern.test(path))
  }
}

const pathOf = (url: string): string => url.split('?', 1)[0] ?? ''

function patternOf({ path }: Operation): RegExp {
  return new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
}

export function openSockets(
  server: Server,
  options: MountOptions,
  service: RayService,
  routes: readonly SocketRoute[],
): { close: () => void } {
  const sockets = new Sockets(options, service, routes)
  const handle: RequestListener = (request, response) => void server.emit('request', request, response)
  server.on('upgrade', (request, socket, head) => {
    if (options.peers.isUpgrade(request)) options.peers.accept(request, socket, head, handle)
    else void sockets.upgrade(request, socket, head)
  })
  return sockets
}

class Sockets {
  readonly #options: MountOptions
  readonly #service: RayService
  readonly #routes: readonly KnownRoute[]
  readonly #server = new WebSocketServer(SERVER_OPTIONS)
  /** Ray ids of requests whose upgrade is accepted, for the head of the response. */
  readonly #ray_ids = new WeakMap<IncomingMessage, string>()
  readonly #subscribers = new Map<WebSocket, Subscriber>()
  readonly #share = new ClientShare({ slots_max: SOCKETS_MAX, client_max: CLIENT_SOCKETS_MAX })
  /** Each socket is in one of these groups. One group is pinged at a time. */
  readonly #ping_groups = Array.from({ length: PING_GROUPS }, () => new Set<WebSocket>())
  readonly #pinging = createTimerWhileNeeded(PING_EVERY_MS / PING_GROUPS, () => this.#ping())
  #ping_group = 0

  constructor(options: MountOptions, service: RayService, routes: readonly SocketRoute[]) {
    this.#options = options
    this.#service = service
    this.#routes = routes.map((route) => ({
      route,
      pattern: patternOf(route.operation),
      checkParams: createShapeCheck(route.operation.params),
      checkQuery: createShapeCheck(route.operation.query, { coerce: true }),
    }))
    this.#server.on('headers', (headers, request) => headers.push(`${RAY_HEADER}: ${this.#ray_ids.get(request)}`))
  }

  /** Accepts the upgrade, or refuses it as the call would be refused. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { ctx, rayIdOf } = this.#options
    // The connection may break while the request is checked.
    socket.on('error', () => socket.destroy())
    const ray_id = rayIdOf(request)
    const ray = ctx.recorder.open(this.#service, ray_id)
    phase(ray, 'auth')
    try {
      const subscriber = await this.#subscriberOf(request, ray)
      if (socket.destroyed) return
      let accepted: WebSocket | null = null
      const displace = (): void => {
        if (accepted === null) socket.destroy()
        else end(accepted, TRY_AGAIN, 'too many')
      }
      const slot = this.#share.enter(subscriber.opening.client_key, displace)
      if (typeof slot === 'string') throw noSlot(slot)
      socket.once('close', slot.leave)
      ctx.recorder.end(ray, null)
      this.#ray_ids.set(request, ray_id)
      this.#server.handleUpgrade(request, socket, head, (opened) => {
        accepted = opened
        void this.#serve(opened, subscriber)
      })
    } catch (error) {
      this.#recordRefusal(request, ray_id, error)
      refuseUpgrade(ctx, socket, error, { ray_id, ray })
    }
  }

  close(): void {
    this.#pinging.close()
    for (const socket of this.#subscribers.keys()) end(socket, GOING_AWAY, '')
  }

  /** Throws what the call would be refused with. */
  async #subscriberOf(request: IncomingMessage, ray: Ray | null): Promise<Subscriber> {
    const options = this.#options
    const target = this.#targetOf(request)
    if (target === null) throw new ApiError('API_NOT_FOUND')
    const { known, params, query, authorization } = target
    const { operation, requireOrigin, admit } = known.route
    if (ray !== null) ray.operation = operation.id
    const credentials = { authorization, origin: undefined }
    const caller = await authenticate(options.ctx, operation, credentials, options.namespaceOfOrigin)
    if (ray !== null) ray.owner = ownerOf(caller)
    const { origin } = request.headers
    if (origin !== undefined) await requireOrigin(origin, caller)
    const client_ip = addressOf(options, request)
    const client_key = clientKey(client_ip)
    const token = bearerOf(authorization) ?? ''
    requireRate(options, operation, caller, client_key)
    requireShape(known.checkParams, params, 'params')
    // A copy, because the check makes numbers of text in their place.
    requireShape(known.checkQuery, { ...query }, 'query')
    const opening = { caller, client_ip, client_key, token, params, query }
    await admit(opening)
    return { opening, known, token, is_alive: true, message_count: 0 }
  }

  /** What the request asks for and with which token; null for an unknown path. */
  #targetOf({ url = '/', headers }: IncomingMessage): Target | null {
    const path = pathOf(url)
    const known = this.#routes.find(({ pattern }) => pattern.test(path))
    if (known === undefined) return null
    const members = Object.fromEntries(new URL(url, 'http://localhost').searchParams)
    const { [known.route.token_member]: shown, ...query } = members
    const authorization = shown === undefined ? headers.authorization : `Bearer ${shown}`
    return { known, params: { ...known.pattern.exec(path)?.groups }, query, authorization }
  }

  #recordRefusal(request: IncomingMessage, ray_id: string, error: unknown): void {
    const target = this.#targetOf(request)
    if (!(error instanceof ApiError) || target === null || !areRefusalsAudited(target.known.route.operation)) return
    const { known, params, authorization } = target
    const { id: operation } = known.route.operation
    recordRefusal(this.#options, { operation, raw: request, authorization, ray_id, caller: null, params }, error)
  }

  async #serve(socket: WebSocket, subscriber: Subscriber): Promise<void> {
    const over = this.#enter(socket, subscriber)
    const isOpen = (): boolean => socket.readyState === socket.OPEN
    void this.#followCaller(socket, subscriber)
    try {
      const { known, opening } = subscriber
      await known.route.serve({ send: (text) => send(socket, text), isOpen, over }, opening)
      socket.close(OVER)
    } catch (error) {
      if (error instanceof ApiError) return socket.close(TRY_AGAIN, error.code)
      this.#options.ctx.log.error({ err: error }, 'a message could not be sent to a socket')
      socket.close(INTERNAL)
    }
  }

  /** Returns a signal that is aborted at the end of the socket. */
  #enter(socket: WebSocket, subscriber: Subscriber): AbortSignal {
    const over = new AbortController()
    this.#subscribers.set(socket, subscriber)
    this.#pinging.need()
    // The group that was pinged a moment ago: the first ping of this socket comes after PING_EVERY_MS.
    const ping_group = this.#ping_groups[this.#ping_group]!
    ping_group.add(socket)
    countMessages(socket, subscriber)
    // An error is followed by a close.
    socket.on('error', () => {})
    socket.on('close', () => {
      over.abort()
      this.#subscribers.delete(socket)
      ping_group.delete(socket)
    })
    return over.signal
  }

  /** Returns whether any socket is open. */
  #ping(): boolean {
    this.#ping_group = (this.#ping_group + 1) % PING_GROUPS
    for (const socket of this.#ping_groups[this.#ping_group]!) {
      const subscriber = this.#subscribers.get(socket)!
      if (!subscriber.is_alive) {
        socket.terminate()
        continue
      }
      subscriber.is_alive = false
      subscriber.message_count = 0
      socket.ping()
      void this.#requireStillAdmitted(socket, subscriber)
    }
    return this.#subscribers.size > 0
  }

  /** Checks the caller again as soon as anything that its right rests on has changed. */
  async #followCaller(socket: WebSocket, subscriber: Subscriber): Promise<void> {
    const { ctx, callers } = this.#options
    const { opening, token } = subscriber
    const check = (): void => void this.#requireStillAdmitted(socket, subscriber)
    try {
      const grounds = groundsOfToken(ctx, opening.caller, token, { ...opening.query, ...opening.params })
      const unfollow = await callers.follow(grounds, check)
      if (socket.readyState === socket.CLOSED) unfollow()
      else socket.once('close', unfollow)
      // The caller's rights may have changed since it was admitted.
      check()
    } catch (error) {
      ctx.log.warn({ err: error }, 'a caller cannot be followed; its socket is closed and may be opened again')
      socket.close(TRY_AGAIN)
    }
  }

  /** Closes the socket of a caller that would be refused now. An error of the platform closes nothing. */
  async #requireStillAdmitted(socket: WebSocket, { opening, known, token }: Subscriber): Promise<void> {
    const { ctx, namespaceOfOrigin } = this.#options
    const { operation, admit } = known.route
    const credentials = { authorization: `Bearer ${token}`, origin: undefined }
    try {
      const caller = await authenticate(ctx, operation, credentials, namespaceOfOrigin)
      await admit({ ...opening, caller })
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) socket.close(POLICY, error.code)
    }
  }
}

/** Closes the socket of a client that sends more than MESSAGES_MAX between two pings. */
function countMessages(socket: WebSocket, subscriber: Subscriber): void {
  const count = (): void => {
    subscriber.message_count++
    // A client that goes on after the close is cut off.
    if (subscriber.message_count > 2 * MESSAGES_MAX) socket.terminate()
    else if (subscriber.message_count > MESSAGES_MAX) socket.close(POLICY, 'too many messages')
  }
  socket.on('message', count)
  socket.on('ping', count)
  socket.on('pong', () => {
    // The first pong belongs to our ping; further ones were not asked for.
    if (subscriber.is_alive) count()
    subscriber.is_alive = true
  })
}

async function send(socket: WebSocket, text: string | Buffer): Promise<void> {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  let sent = 0
  do {
    const fragment = bytes.subarray(sent, sent + FRAGMENT_BYTES)
    sent += fragment.length
    await sendFragment(socket, fragment, sent === bytes.length)
  } while (sent < bytes.length && socket.readyState === socket.OPEN)
}

/** Resolves when the kernel has taken it. */
function sendFragment(socket: WebSocket, fragment: Buffer, fin: boolean): Promise<void> {
  if (socket.readyState !== socket.OPEN) return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  const late = setTimeout(() => end(socket, TRY_AGAIN, 'too slow'), SLOW_MS_MAX)
  const taken = (): void => {
    clearTimeout(late)
    socket.off('close', taken)
    resolve()
  }
  socket.once('close', taken)
  socket.send(fragment, { binary: false, fin }, taken)
  return promise
}

/** A client that does not confirm the close is cut off. */
function end(socket: WebSocket, code: number, reason: string): void {
  socket.close(code, reason)
  setTimeout(() => socket.terminate(), GOODBYE_MS_MAX).unref()
}

function requireShape(check: ShapeCheck, value: unknown, part: string): void {
  const details = check(value)
  if (details.length > 0) throw validationError(details.map((detail) => ({ ...detail, path: [part, ...detail.path] })))
}
