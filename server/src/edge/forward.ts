// One request on its way to a backend and the answer on its way back. A request whose connection could not even be made
// may be tried again; once it has been sent, it is never sent twice: what it did over there is not known. The client's
// body is not read before there is somebody to read it, and neither side is read faster than the other takes it.
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ApiError } from '@muster/contract'
import { giveBack } from '../net/give-back.ts'
import type { Agents } from './agents.ts'
import { type RawHeaders, type RequestHead, responseHeaders } from './head.ts'
import { CONNECT_MS_MAX, HANDSHAKE_MS_MAX } from './limits.ts'
import { endAfterBody, type Refuse } from './refuse.ts'
import type { Address } from './routes.ts'
import { splice } from './splice.ts'

export type Exchange = {
  req: IncomingMessage
  res: ServerResponse
  head: RequestHead
  host: string
  /** In origin form, as the backend is to see it. */
  path: string
  /** The client's address. */
  client: string
  /** The client came over TLS, to us or to a proxy that we trust. */
  is_secure: boolean
  /** The client sends its body when it has been told that somebody wants it. */
  expects_continue: boolean
  /** Of a WebSocket handshake: what the client has sent after it. `res` then is for an answer other than 101. */
  upgrade: { socket: Socket; head: Buffer } | null
}

export type Upstream = {
  address: Address
  /** No connection could be made, for the nth time: where to try next, or null to give up. May throw an ApiError. */
  again: (attempt: number, error: NodeJS.ErrnoException) => Promise<Address | null>
  /** What the client is told when there is no answer, or none that is HTTP. */
  unavailable: () => ApiError
  /** Left out, and put in, on the way. */
  request_dropped?: ReadonlySet<string>
  request_added?: RawHeaders
  response_dropped?: ReadonlySet<string>
  response_added?: RawHeaders
}

/** Methods for which node:http assumes a body, unless told otherwise, are told. */
const METHODS_WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

const STATUS_FINAL_MIN = 200
const SMALL_BYTES_MAX = 4 * 1024

/** Answers `exchange` with what the upstream answers, or refuses it. Never throws. */
export function forward(agents: Agents, refuse: Refuse, exchange: Exchange, upstream: Upstream): void {
  const { req, res, head, upgrade } = exchange
  const method = req.method ?? 'GET'
  const headers = requestHeaders(exchange, upstream, method)
  const agent = upgrade === null ? agents.kept : agents.single
  let out: ClientRequest
  let attempt = 0
  let is_over = false
  /** The connection behind may serve another request by now. */
  let is_returned = false

  const fail = (error: unknown) => {
    if (is_over) return
    is_over = true
    refuse.request(req, res, error)
  }
  res.once('close', () => {
    is_over = true
    if (!res.writableFinished && !is_returned) abandon(out)
  })
  send(upstream.address)

  function send(address: Address): void {
    let has_begun = false
    try {
      out = request({ agent, host: address.hostname, port: address.port, method, path: exchange.path, headers })
    } catch {
      // A header that the parser in front let through and the one behind must not see.
      fail(new ApiError('API_BAD_REQUEST'))
      return
    }
    const begin = () => {
      has_begun = true
      if (head.body !== 'none') sendBody(exchange, out)
    }
    out.once('socket', (socket) => {
      if (!socket.connecting) begin()
      else awaitConnection(socket, begin)
    })
    out.once('response', (incoming) => {
      if (is_over) abandon(out)
      else relay(incoming)
    })
    out.once('upgrade', (incoming, socket, first) => switchProtocols(incoming, socket as Socket, first))
    out.on('error', (error) => {
      if (is_over) return
      if (has_begun || res.headersSent) fail(upstream.unavailable())
      else sendAgain(error)
    })
    if (upgrade !== null)
      out.setTimeout(HANDSHAKE_MS_MAX, () => out.destroy(new Error('The handshake takes too long.')))
    if (head.body === 'none') out.end()
  }

  function sendAgain(error: NodeJS.ErrnoException): void {
    attempt++
    upstream.again(attempt, error).then(
      (address) => {
        if (is_over) return
        if (address === null) fail(upstream.unavailable())
        else send(address)
      },
      (reason: unknown) => fail(reason),
    )
  }

  function relay(incoming: IncomingMessage): void {
    const answer = responseHeaders(incoming.rawHeaders, upstream.response_dropped)
    if (upstream.response_added !== undefined) answer.push(...upstream.response_added)
    const status = incoming.statusCode ?? 0
    try {
      // A 101 that names no protocol comes this way too.
      if (status < STATUS_FINAL_MIN) throw new RangeError(`The status is ${status}.`)
      res.writeHead(status, incoming.statusMessage, answer)
    } catch {
      fail(upstream.unavailable())
      abandon(out)
      return
    }
    incoming.on('data', (chunk: Buffer) => {
      // As text of the same bytes, a small answer leaves in one piece with its head.
      const is_small = chunk.length <= SMALL_BYTES_MAX
      const goes_on = is_small ? res.write(chunk.toString('latin1'), 'latin1') : res.write(chunk, givingBack(chunk))
      if (!goes_on) incoming.pause()
    })
    res.on('drain', () => incoming.resume())
    // An answer that breaks off breaks off for the client too: it must not look complete.
    incoming.once('error', () => res.destroy())
    incoming.once('end', () => {
      if (!req.complete) out.destroy()
      is_over = true
      is_returned = true
      endAfterBody(req, res)
    })
  }

  function switchProtocols(incoming: IncomingMessage, socket: Socket, first: Buffer): void {
    socket.on('error', () => {})
    if (upgrade === null || is_over) {
      socket.resetAndDestroy()
      fail(upstream.unavailable())
      return
    }
    is_over = true
    res.detachSocket(upgrade.socket)
    // What the handshake left there would keep all of it in memory for as long as the connection lives.
    for (const event of ['drain', 'timeout']) upgrade.socket.removeAllListeners(event)
    upgrade.socket.write(switchingHead(incoming), 'latin1')
    if (first.length > 0) upgrade.socket.write(first)
    if (upgrade.head.length > 0) socket.write(upgrade.head)
    splice(upgrade.socket, socket)
  }
}

function requestHeaders(exchange: Exchange, upstream: Upstream, method: string): RawHeaders {
  const { head, client, upgrade } = exchange
  const headers: RawHeaders = []
  for (let index = 0; index < head.headers.length; index += 2) {
    if (upstream.request_dropped?.has(head.headers[index]!.toLowerCase())) continue
    headers.push(head.headers[index]!, head.headers[index + 1]!)
  }
  headers.push('X-Forwarded-For', client, 'X-Forwarded-Proto', exchange.is_secure ? 'https' : 'http')
  headers.push(...(upstream.request_added ?? []))
  if (upgrade !== null) headers.push('Connection', 'Upgrade', 'Upgrade', 'websocket')
  if (head.body === 'chunked') headers.push('Transfer-Encoding', 'chunked')
  else if (head.body !== 'none') headers.push('Content-Length', head.body.content_length)
  else if (!METHODS_WITHOUT_BODY.has(method)) headers.push('Content-Length', '0')
  return headers
}

function sendBody({ req, res, expects_continue }: Exchange, out: ClientRequest): void {
  if (expects_continue) res.writeContinue()
  req.on('data', (chunk: Buffer) => {
    if (!out.write(chunk, givingBack(chunk))) req.pause()
  })
  out.on('drain', () => req.resume())
  req.once('end', () => out.end())
}

/** For when a chunk has been written; of one that was not, the system may still hold the memory. */
function givingBack(chunk: Buffer): (error?: Error | null) => void {
  return (error) => {
    if (error == null) giveBack(chunk)
  }
}

function awaitConnection(socket: Socket, begin: () => void): void {
  const timer = setTimeout(() => socket.destroy(new Error('The connection takes too long.')), CONNECT_MS_MAX)
  socket.once('connect', () => {
    clearTimeout(timer)
    begin()
  })
  socket.once('close', () => clearTimeout(timer))
}

/** The client is gone, or what came is not HTTP: the connection is of no use any more, and the backend is told at once. */
function abandon(out: ClientRequest | undefined): void {
  if (out?.socket && !out.socket.connecting) out.socket.resetAndDestroy()
  out?.destroy()
}

/** The values have gone through the parser: there is no line end in them. */
function switchingHead(incoming: IncomingMessage): string {
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: Upgrade', 'Upgrade: websocket']
  const headers = responseHeaders(incoming.rawHeaders)
  for (let index = 0; index < headers.length; index += 2) lines.push(`${headers[index]}: ${headers[index + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}
