// Events by WebSocket, at the address of the long poll. A socket is opened with the token in the query, for browsers can
// send no header with one; from then on it is told what a long poll would be answered, each time there is something.
//
// Nothing waits in a socket: what it is told is read again from the book behind the index that was told last. So a socket
// that does not take what it is sent is ended, and whoever opens the next one misses nothing. Close codes: 1001 the
// process ends, 1008 the token is not good any more or too much is said, 1009 a message is too long, 1013 try again.
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { ApiError, watchEvents } from '@muster/contract'
import { type WebSocket, WebSocketServer } from 'ws'
import type { CallerOf } from '../../caller.ts'
import { mainUrl } from '../../config.ts'
import { eventsFor, requireIndex } from '../../matchmaker/events.ts'
import type { Matchmaker } from '../../matchmaker/start.ts'
import { clientBucket } from '../../net/client-ip.ts'
import { RAY_HEADER } from '../../net/edge-proof.ts'
import { phase } from '../../observe/ray.ts'
import { preparedText } from '../../prepared.ts'
import { authenticate } from '../auth.ts'
import { refuseUpgrade } from '../errors.ts'
import { addressOf, type Door, requireRate } from '../implement.ts'
import { ownerOf } from '../ray.ts'

const SOCKETS_MAX = 20_000
/** Of one client bucket: a school's network may have many players. */
const CLIENT_SOCKETS_MAX = 256
/** Nothing that a listener says is read. */
const MESSAGE_BYTES_MAX = 1_024
/** Messages, pieces of one, pings and pongs between two pings of our own. */
const MESSAGES_MAX = 32
const PING_EVERY_MS = 30_000
/** Who is told to go has this long to say good-bye. */
const CLOSE_MS_MAX = 2_000
/** What a socket has not taken yet. */
const UNSENT_BYTES_MAX = 256 * 1_024

const [GOING_AWAY, POLICY, INTERNAL, TRY_AGAIN] = [1001, 1008, 1011, 1013]

type Listener = {
  caller: CallerOf<'identity'>
  token: string
  client: string
  is_alive: boolean
  message_count: number
}

export type LiveEvents = { close: () => void }

export function openLiveEvents(server: Server, door: Door, matchmaker: Matchmaker): LiveEvents {
  const { ctx } = door
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
  const client_counts = new Map<string, number>()
  const timer = setInterval(ping, PING_EVERY_MS)

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // It may break while it is looked at.
    socket.on('error', () => socket.destroy())
    const ray_id = door.rayIdOf(request)
    const ray = ctx.recorder.open('matchmaker', ray_id)
    if (ray !== null) ray.operation = watchEvents.id
    phase(ray, 'auth')
    try {
      const { listener, watch_index } = await admit(request)
      if (ray !== null) ray.owner = ownerOf(listener.caller)
      if (socket.destroyed) return
      ctx.recorder.end(ray, null)
      ray_ids.set(request, ray_id)
      accepting.handleUpgrade(request, socket, head, (opened) => void serve(opened, listener, watch_index))
    } catch (error) {
      refuseUpgrade(ctx, socket, error, { ray_id, ray })
    }
  }

  /** Throws what the long poll would be refused with. */
  async function admit(request: IncomingMessage): Promise<{ listener: Listener; watch_index: string | undefined }> {
    const { searchParams } = new URL(request.url ?? '/', 'http://localhost')
    const shown = searchParams.get('identity_token')
    const authorization = shown === null ? request.headers.authorization : `Bearer ${shown}`
    const caller = await authenticate(ctx, watchEvents, { authorization, origin: undefined }, door.namespaceOfOrigin)
    if (caller.kind !== 'identity') throw new ApiError('API_FORBIDDEN')
    await requireOrigin(request.headers.origin, caller)
    const client = clientBucket(addressOf(door, request))
    requireRate(door, watchEvents, caller, client)
    const watch_index = searchParams.get('watch_index') ?? undefined
    if (watch_index !== undefined) requireIndex(watch_index)
    if (sockets.size >= SOCKETS_MAX) throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 5 })
    if ((client_counts.get(client) ?? 0) >= CLIENT_SOCKETS_MAX) {
      throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: 5 })
    }
    const token = shown ?? (request.headers.authorization ?? '').replace(/^Bearer /i, '')
    return { listener: { caller, token, client, is_alive: true, message_count: 0 }, watch_index }
  }

  /** A browser opens sockets to whom it likes: the page must be of the identity's own namespace. Programs have no Origin. */
  async function requireOrigin(origin: string | undefined, { namespace_id }: CallerOf<'identity'>): Promise<void> {
    if (origin === undefined || origin === mainUrl(ctx.config)) return
    if ((await door.namespaceOfOrigin(origin)) === namespace_id) return
    const message = 'This origin does not stand for the namespace of the identity.'
    throw new ApiError('API_FORBIDDEN', {}, { message })
  }

  async function serve(socket: WebSocket, listener: Listener, watch_index: string | undefined): Promise<void> {
    enter(socket, listener)
    let told = watch_index
    try {
      for (let is_first = true; socket.readyState === socket.OPEN; is_first = false) {
        const isGone = () => socket.readyState !== socket.OPEN
        const news = await eventsFor(matchmaker.desk(), listener.caller, told, isGone)
        told = news.index
        if (isGone()) return
        if (news.is_empty && !is_first) continue
        if (socket.bufferedAmount > UNSENT_BYTES_MAX) return socket.terminate()
        socket.send(preparedText(news.answer) ?? '')
      }
    } catch (error) {
      if (error instanceof ApiError) return socket.close(TRY_AGAIN, error.code)
      ctx.log.error({ err: error }, 'a listener could not be told')
      socket.close(INTERNAL)
    }
  }

  function enter(socket: WebSocket, listener: Listener): void {
    const { client } = listener
    sockets.set(socket, listener)
    client_counts.set(client, (client_counts.get(client) ?? 0) + 1)
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
      sockets.delete(socket)
      const count = (client_counts.get(client) ?? 1) - 1
      if (count === 0) client_counts.delete(client)
      else client_counts.set(client, count)
    })
  }

  function ping(): void {
    for (const [socket, listener] of sockets) {
      if (!listener.is_alive) socket.terminate()
      else if (!isGood(listener.token)) socket.close(POLICY, 'the token is not good any more')
      else {
        listener.is_alive = false
        listener.message_count = 0
        socket.ping()
      }
    }
  }

  function isGood(token: string): boolean {
    try {
      return !ctx.revoked.has(ctx.keys.verify(token, ctx.now()).token_id)
    } catch (error) {
      if (error instanceof ApiError) return false
      throw error
    }
  }

  server.on('upgrade', (request, socket, head) => void upgrade(request, socket, head))

  return {
    close() {
      clearInterval(timer)
      for (const socket of sockets.keys()) {
        socket.close(GOING_AWAY)
        // A listener that does not answer must not hold up the end.
        setTimeout(() => socket.terminate(), 500).unref()
      }
    },
  }
}

/** For the server's options: all other requests are answered as if they had not asked to leave HTTP. */
export function isLiveUpgrade({ method, url = '', headers }: IncomingMessage): boolean {
  const [path] = url.split('?', 1)
  return method === 'GET' && path === watchEvents.path && headers.upgrade?.toLowerCase() === 'websocket'
}
