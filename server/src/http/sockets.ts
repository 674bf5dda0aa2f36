// WebSockets: what can be waited for by long poll can be listened to, at the same address. A socket is opened with the
// token in the query, for browsers can send no header with one; then what is new is sent as it comes.
//
// Nothing queues up in a socket: the next message is made when the one before has been taken, so who is slow is told less
// often, and who takes nothing is ended. Close codes: 1000 there is nothing more to tell, 1001 the process ends, 1008 the
// credential is not good any more or too much is said, 1009 a message is too long, 1013 try again: too slow, or too many.
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { ApiError, type Operation, validationError } from '@muster/contract'
import { type WebSocket, WebSocketServer } from 'ws'
import { clientKey } from '../addresses/client-ip.ts'
import { ClientShare } from '../addresses/client-share.ts'
import type { Caller } from '../caller.ts'
import { phase, type Ray, type RayService } from '../observe/ray.ts'
import { createShapeCheck, type ShapeCheck } from '../schema-check.ts'
import { createTimerWhileNeeded } from '../timer-while-needed.ts'
import { RAY_HEADER } from '../tokens/edge-proof.ts'
import { authenticate, bearerOf } from './auth.ts'
import { refuseUpgrade } from './errors.ts'
import { addressOf, type MountOptions, requireRate } from './implement.ts'
import { ownerOf } from './ray.ts'
import { groundsOfToken, noPlace } from './watches.ts'

const SOCKETS_MAX = 20_000
/** Of one client: a school's network may have many players. */
const CLIENT_SOCKETS_MAX = 256
/** Nothing that a listener says is read. */
const MESSAGE_BYTES_MAX = 1_024
/** Messages, pieces of one, pings and pongs between two pings of our own. */
const MESSAGES_MAX = 32
const PING_EVERY_MS = 30_000
/** Pings are spread over that time: thousands at once would hold up requests here and at the edge. */
const PING_TURNS = 120
/** Who does not take a piece of what he is sent in so long is too slow. */
const SLOW_MS_MAX = 10_000
/** A long message goes in pieces: of who takes it slowly one piece waits here. */
const FRAGMENT_BYTES = 64 * 1_024
/** Who is told to go has this long to say good-bye; at the end of the process less. */
const CLOSE_MS_MAX = 2_000
const GOODBYE_MS_MAX = 500

const [OVER, GOING_AWAY, POLICY, INTERNAL, TRY_AGAIN] = [1000, 1001, 1008, 1011, 1013]

export type OpenSocket = {
  /** Resolves when it has been taken, or the socket is over. */
  send(text: string | Buffer): Promise<void>
  isOpen(): boolean
  /** Aborted at its end. */
  over: AbortSignal
}

export type Opening = {
  caller: Caller
  /** What limits per client count by. */
  client: string
  params: Record<string, string>
  query: Record<string, string>
}

export type SocketRoute = {
  /** Whose address, callers, parameters, query and rate limit it has. */
  operation: Operation
  /** The member of the query that carries the token. */
  token_member: string
  /** Browsers open sockets to whom they like: throws when the page is of somebody else. Programs have no Origin. */
  requireOrigin: (origin: string, caller: Caller) => void | Promise<void>
  /** Throws what the call would be refused with. Asked again while the socket is open. */
  admit: (opening: Opening) => void | Promise<void>
  /** Its end is that of the socket; an ApiError ends it with that code as the reason. */
  serve: (socket: OpenSocket, opening: Opening) => Promise<void>
}

type Known = { route: SocketRoute; pattern: RegExp; checkParams: ShapeCheck; checkQuery: ShapeCheck }
type Listener = {
  opening: Opening
  known: Known
  token: string
  is_alive: boolean
  message_count: number
}

/** For the server's options: all other requests are answered as if they had not asked to leave HTTP. */
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
  door: MountOptions,
  service: RayService,
  routes: readonly SocketRoute[],
): { close: () => void } {
  const { ctx } = door
  const known_routes: Known[] = routes.map((route) => ({
    route,
    pattern: patternOf(route.operation),
    checkParams: createShapeCheck(route.operation.params),
    checkQuery: createShapeCheck(route.operation.query),
  }))
  const options = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MESSAGE_BYTES_MAX,
    maxFragments: MESSAGES_MAX,
    // Its types do not know it yet.
    closeTimeout: CLOSE_MS_MAX,
  }
  const accepting = new WebSocketServer(options)
  /** Of those that are let in, for the head of their answer. */
  const ray_ids = new WeakMap<IncomingMessage, string>()
  accepting.on('headers', (headers, request) => headers.push(`${RAY_HEADER}: ${ray_ids.get(request)}`))
  const sockets = new Map<WebSocket, Listener>()
  const share = new ClientShare({ places_max: SOCKETS_MAX, client_max: CLIENT_SOCKETS_MAX })
  /** A socket has one turn of them. */
  const ping_turns = Array.from({ length: PING_TURNS }, () => new Set<WebSocket>())
  let turn = 0
  const pinging = createTimerWhileNeeded(PING_EVERY_MS / PING_TURNS, ping)

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // It may break while it is looked at.
    socket.on('error', () => socket.destroy())
    const ray_id = door.rayIdOf(request)
    const ray = ctx.recorder.open(service, ray_id)
    phase(ray, 'auth')
    try {
      const listener = await listenerOf(request, ray)
      if (socket.destroyed) return
      let opened: WebSocket | null = null
      const displace = (): void => {
        if (opened === null) socket.destroy()
        else end(opened, TRY_AGAIN, 'too many')
      }
      const place = share.enter(listener.opening.client, displace)
      if (typeof place === 'string') throw noPlace(place)
      socket.once('close', place.leave)
      ctx.recorder.end(ray, null)
      ray_ids.set(request, ray_id)
      accepting.handleUpgrade(request, socket, head, (accepted) => {
        opened = accepted
        void serve(accepted, listener)
      })
    } catch (error) {
      refuseUpgrade(ctx, socket, error, { ray_id, ray })
    }
  }

  /** Throws what the call would be refused with. */
  async function listenerOf(request: IncomingMessage, ray: Ray | null): Promise<Listener> {
    const url = request.url ?? '/'
    const path = pathOf(url)
    const known = known_routes.find(({ pattern }) => pattern.test(path))
    if (known === undefined) throw new ApiError('API_NOT_FOUND')
    const { operation, token_member, requireOrigin, admit } = known.route
    if (ray !== null) ray.operation = operation.id
    const { [token_member]: shown, ...query } = Object.fromEntries(new URL(url, 'http://localhost').searchParams)
    const authorization = shown === undefined ? request.headers.authorization : `Bearer ${shown}`
    const caller = await authenticate(ctx, operation, { authorization, origin: undefined }, door.namespaceOfOrigin)
    if (ray !== null) ray.owner = ownerOf(caller)
    const { origin } = request.headers
    if (origin !== undefined) await requireOrigin(origin, caller)
    const client = clientKey(addressOf(door, request))
    requireRate(door, operation, caller, client)
    const params = { ...known.pattern.exec(path)?.groups }
    requireShape(known.checkParams, params, 'params')
    requireShape(known.checkQuery, query, 'query')
    const opening = { caller, client, params, query }
    await admit(opening)
    const token = bearerOf(authorization) ?? ''
    return { opening, known, token, is_alive: true, message_count: 0 }
  }

  async function serve(socket: WebSocket, listener: Listener): Promise<void> {
    const over = enter(socket, listener)
    const isOpen = (): boolean => socket.readyState === socket.OPEN
    void followCaller(socket, listener)
    try {
      await listener.known.route.serve({ send: (text) => send(socket, text), isOpen, over }, listener.opening)
      socket.close(OVER)
    } catch (error) {
      if (error instanceof ApiError) return socket.close(TRY_AGAIN, error.code)
      ctx.log.error({ err: error }, 'a listener could not be told')
      socket.close(INTERNAL)
    }
  }

  function enter(socket: WebSocket, listener: Listener): AbortSignal {
    const over = new AbortController()
    sockets.set(socket, listener)
    pinging.need()
    // The turn that was a moment ago: its first ping comes after PING_EVERY_MS.
    const own_turn = ping_turns[turn]!
    own_turn.add(socket)
    const said = (): void => {
      listener.message_count++
      // Who goes on after he was told is not waited for.
      if (listener.message_count > 2 * MESSAGES_MAX) socket.terminate()
      else if (listener.message_count > MESSAGES_MAX) socket.close(POLICY, 'too many messages')
    }
    socket.on('message', said)
    socket.on('ping', said)
    socket.on('pong', () => {
      // The first answers our ping; nobody has asked for more.
      if (listener.is_alive) said()
      listener.is_alive = true
    })
    // What breaks it is followed by its close.
    socket.on('error', () => {})
    socket.on('close', () => {
      over.abort()
      sockets.delete(socket)
      own_turn.delete(socket)
    })
    return over.signal
  }

  /** Returns whether there is anybody. */
  function ping(): boolean {
    turn = (turn + 1) % PING_TURNS
    for (const socket of ping_turns[turn]!) {
      const listener = sockets.get(socket)!
      if (!listener.is_alive) socket.terminate()
      else {
        listener.is_alive = false
        listener.message_count = 0
        socket.ping()
        void requireStill(socket, listener)
      }
    }
    return sockets.size > 0
  }

  /** Asks the rules again as soon as what they rest on has changed. */
  async function followCaller(socket: WebSocket, listener: Listener): Promise<void> {
    const { opening, token } = listener
    const check = (): void => void requireStill(socket, listener)
    try {
      const grounds = groundsOfToken(ctx, opening.caller, token, { ...opening.query, ...opening.params })
      const unfollow = await door.callers.follow(grounds, check)
      if (socket.readyState === socket.CLOSED) unfollow()
      else socket.once('close', unfollow)
      // Something may have changed since the socket was let in.
      check()
    } catch (error) {
      ctx.log.warn({ err: error }, 'a listener cannot be followed, and has to come again')
      socket.close(TRY_AGAIN)
    }
  }

  /** Whoever may not ask any more is not told any more. That nobody can say so now changes nothing. */
  async function requireStill(socket: WebSocket, { opening, known, token }: Listener): Promise<void> {
    const { operation, admit } = known.route
    const credentials = { authorization: `Bearer ${token}`, origin: undefined }
    try {
      const caller = await authenticate(ctx, operation, credentials, door.namespaceOfOrigin)
      await admit({ ...opening, caller })
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) socket.close(POLICY, error.code)
    }
  }

  server.on('upgrade', (request, socket, head) => {
    if (door.parking.isChannel(request)) door.parking.accept(request, socket)
    else void upgrade(request, socket, head)
  })

  return {
    close() {
      pinging.close()
      for (const socket of sockets.keys()) end(socket, GOING_AWAY, '')
    },
  }
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

/** Resolves when the machine's own buffers have taken it. */
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

/** Who does not answer must not hold up the end. */
function end(socket: WebSocket, code: number, reason: string): void {
  socket.close(code, reason)
  setTimeout(() => socket.terminate(), GOODBYE_MS_MAX).unref()
}

function requireShape(check: ShapeCheck, value: unknown, part: string): void {
  const details = check(value)
  if (details.length > 0) throw validationError(details.map((detail) => ({ ...detail, path: [part, ...detail.path] })))
}
