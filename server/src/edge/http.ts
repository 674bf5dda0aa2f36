// The edge's HTTP: each request goes where its own Host says, whatever the one before it on the same connection said.
// Requests that a client sends ahead are taken one after the other: their answers must leave in order, and what a later
// one does may rest on what an earlier one did.
import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ApiError } from '@muster/contract'
import type { Context } from '../context.ts'
import { clientAddress, clientBucket, isTrustedPeer, type TrustedProxies } from '../net/client-ip.ts'
import type { Agents } from './agents.ts'
import type { Cdn } from './cdn.ts'
import type { Certificates } from './certificates.ts'
import type { Domains } from './domains.ts'
import { type Exchange, forward } from './forward.ts'
import { isWebSocketUpgrade, readRequestHead } from './head.ts'
import { type HostMeaning, hostAndTarget } from './hosts.ts'
import { PIPELINED_MAX, REQUEST_IDLE_MS_MAX } from './limits.ts'
import type { Lookups } from './lookups.ts'
import type { Media } from './media.ts'
import { endAfterBody, type Refuse } from './refuse.ts'
import type { Routes } from './routes.ts'
import { isSecure, requireServerName } from './tls.ts'
import { createUpstreams, type Place } from './upstreams.ts'

export type Edge = {
  ctx: Context
  agents: Agents
  routes: Routes
  cdn: Cdn
  media: Media
  domains: Domains
  refuse: Refuse
  meaningOf: (host: string) => HostMeaning | null
  /** Null: this edge speaks no TLS. */
  certificates: Certificates | null
  lookups: Lookups
  trusted: TrustedProxies
}

/** `req` null: what waits is a refusal. */
type Waiting = { req: IncomingMessage | null; start: () => void }
/** One connection: the request that is being answered, and those that wait for it. */
type Peer = { busy: Pick<Exchange, 'req' | 'res'> | null; waiting: Waiting[] }

export function serveHttp(edge: Edge, server: Server): void {
  const { refuse } = edge
  const peers = new WeakMap<Socket, Peer>()
  const answer = createAnswer(edge)

  const peerOf = (socket: Socket): Peer => {
    let peer = peers.get(socket)
    if (peer === undefined) {
      peer = { busy: null, waiting: [] }
      peers.set(socket, peer)
    }
    return peer
  }

  function onRequest(req: IncomingMessage, res: ServerResponse, expects_continue = false): void {
    const peer = peerOf(req.socket)
    const start = () => {
      peer.busy = { req, res }
      res.once('close', () => {
        peer.busy = null
        if (req.socket.destroyed) peer.waiting.length = 0
        else peer.waiting.shift()?.start()
      })
      answer({ req, res, expects_continue, upgrade: null })
    }
    if (peer.busy === null) start()
    else if (peer.waiting.length < PIPELINED_MAX) peer.waiting.push({ req, start })
    else req.socket.destroy()
  }

  server.on('request', onRequest)
  server.on('checkContinue', (req, res) => onRequest(req, res, true))
  server.on('checkExpectation', (req, res) => refuse.request(req, res, new ApiError('API_BAD_REQUEST')))

  server.on('upgrade', (req: IncomingMessage, stream, head: Buffer) => {
    const socket = stream as Socket
    // A handshake behind an answer that is still to be written: no client does that.
    if (peerOf(socket).busy !== null) {
      socket.destroy()
      return
    }
    answer({ req, res: responseOn(req, socket), expects_continue: false, upgrade: { socket, head } })
  })

  server.on('connect', (_req: IncomingMessage, stream) =>
    refuse.socket(stream as Socket, new ApiError('API_BAD_REQUEST')),
  )

  server.on('clientError', (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket
    const peer = peerOf(socket)
    const refuseNow = () => refuse.socket(socket, toRefusal(error))
    // A handshake that failed: the alert has been sent, and nothing else can be said.
    const has_no_words = error.code === 'ECONNRESET' || HANDSHAKE_FAILED.test(error.code ?? '')
    if (has_no_words || !socket.writable) socket.destroy()
    else if (peer.busy === null) refuseNow()
    else if (peer.busy.req.complete) {
      // What is broken comes after whole requests: these are answered first. One whose rest will never come is not begun.
      peer.waiting = [...peer.waiting.filter(({ req }) => req?.complete), { req: null, start: refuseNow }]
    } else if (peer.busy.res.headersSent) socket.destroySoon()
    else refuseNow()
  })
}

/** Answers after which the parser is out of the way are written by hand, to a connection that then ends. */
function responseOn(req: IncomingMessage, socket: Socket): ServerResponse {
  const res = new ServerResponse(req)
  res.shouldKeepAlive = false
  res.assignSocket(socket)
  const onDrain = () => void res.emit('drain')
  socket.on('drain', onDrain)
  socket.setTimeout(REQUEST_IDLE_MS_MAX, () => socket.destroy())
  res.once('finish', () => {
    res.detachSocket(socket)
    socket.destroySoon()
  })
  return res
}

const HANDSHAKE_FAILED = /^ERR_(?:SSL|TLS)_/

function toRefusal(error: NodeJS.ErrnoException): ApiError {
  if (error.code === 'HPE_HEADER_OVERFLOW') return new ApiError('API_HEADERS_TOO_LARGE')
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ApiError('API_REQUEST_TIMEOUT')
  return new ApiError('API_BAD_REQUEST')
}

type Arrival = Pick<Exchange, 'req' | 'res' | 'expects_continue' | 'upgrade'>

function createAnswer(edge: Edge): (arrival: Arrival) => void {
  const { refuse, trusted } = edge
  const placeOf = createUpstreams(edge)

  const arrive = (arrival: Arrival): Exchange => {
    const { req } = arrival
    const head = readRequestHead(req.rawHeaders, req.httpVersion)
    const { host, path } = hostAndTarget(head.hosts, req.url ?? '')
    requireServerName(req.socket, host, edge.meaningOf)
    const peer = req.socket.remoteAddress
    // The client is gone already.
    if (peer === undefined) throw new ApiError('API_BAD_REQUEST')
    const client = clientAddress({ peer, forwarded_for: head.forwarded_for }, trusted)
    const is_secure = isSecure(req.socket) || saysSecure(peer, head.forwarded_proto, trusted)
    return { ...arrival, head, host, path, client, is_secure }
  }

  const go = (exchange: Exchange, place: Place): void => {
    if (exchange.res.destroyed || exchange.req.socket.destroyed) return
    if (place.kind === 'site') edge.cdn.serve(exchange, place, clientBucket(exchange.client))
    else if (place.kind === 'media') edge.media.serve(exchange, clientBucket(exchange.client))
    else if (place.kind === 'text') answerText(exchange, place.text)
    else if (place.kind === 'redirect') redirect(exchange, place.location)
    else forward(edge.agents, refuse, { ...exchange, path: place.path }, place.upstream)
  }

  return (arrival) => {
    const { req, res } = arrival
    try {
      const exchange = arrive(arrival)
      const place = placeOf(exchange)
      if (place instanceof Promise) {
        place.then((found) => go(exchange, found)).catch((error: unknown) => refuse.request(req, res, error))
      } else {
        go(exchange, place)
      }
    } catch (error) {
      refuse.request(req, res, error)
    }
  }
}

/** Something in front of the edge may have taken the TLS off; what anybody else says of it counts for nothing. */
function saysSecure(peer: string, forwarded_proto: string | undefined, trusted: TrustedProxies): boolean {
  return forwarded_proto?.toLowerCase() === 'https' && isTrustedPeer(peer, trusted)
}

/** With 308 the method stays what it was. */
function redirect({ req, res }: Exchange, location: string): void {
  res.writeHead(308, ['location', location, 'content-length', '0', 'cache-control', 'no-store'])
  endAfterBody(req, res)
}

function answerText({ req, res }: Exchange, text: string): void {
  const headers = [
    'content-type',
    'text/plain; charset=utf-8',
    'cache-control',
    'no-store',
    'x-content-type-options',
    'nosniff',
  ]
  res.writeHead(200, [...headers, 'content-length', String(Buffer.byteLength(text))])
  if (req.method !== 'HEAD') res.write(text)
  endAfterBody(req, res)
}

/** For the server's options: which requests leave HTTP behind. All others are answered as if they had not asked to. */
export function shouldUpgrade(req: IncomingMessage): boolean {
  return isWebSocketUpgrade(req.method, req.httpVersion, req.rawHeaders)
}
