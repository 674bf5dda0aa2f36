// Writes responses. Every responder (a site, a redirect, a backend, a refusal) goes through this file, so the lines that
// belong to the client's connection are written in one place: whether it continues, and the date.
import { STATUS_CODES } from 'node:http'
import { RAY_HEADER } from '../../wire/headers.ts'
import { KEEP_ALIVE_MS_MAX, READ_AHEAD_BYTES_MAX, SMALL_BYTES_MAX } from '../limits.ts'
import type { Exchange } from './exchange.ts'
import { linesOf } from './headers.ts'

/** Writes the whole response; for a HEAD only its head. `headers` include the length of the body. */
export function sendResponse(
  exchange: Exchange,
  status: number,
  headers: readonly string[],
  body: Buffer | null,
): void {
  if (exchange.is_over || exchange.is_response_begun) return
  const { socket } = exchange.connection
  const head = ownHead(exchange, status, headers)
  exchange.is_response_begun = true
  if (body === null || exchange.method === 'HEAD') {
    socket.write(head, 'latin1')
  } else if (body.length <= SMALL_BYTES_MAX) {
    socket.write(`${head}${body.toString('latin1')}`, 'latin1')
  } else {
    socket.cork()
    socket.write(head, 'latin1')
    socket.write(body)
    socket.uncork()
  }
  endResponse(exchange)
}

/** Writes the head of a response. The caller writes the body to the connection's socket, then calls endResponse. */
export function beginResponse(exchange: Exchange, status: number, headers: readonly string[]): void {
  const head = ownHead(exchange, status, headers)
  exchange.is_response_begun = true
  exchange.connection.socket.write(head, 'latin1')
}

/** Like beginResponse, for a body of unknown length. The caller writes it by writeChunk, then calls endChunked. */
export function beginChunked(exchange: Exchange, status: number, headers: readonly string[]): void {
  if (exchange.head.is_version_1_0) {
    exchange.keeps_alive = false
    exchange.is_until_end = true
    beginResponse(exchange, status, headers)
  } else {
    beginResponse(exchange, status, [...headers, 'transfer-encoding', 'chunked'])
  }
}

export function writeChunk({ connection: { socket }, head }: Exchange, bytes: Buffer): void {
  if (head.is_version_1_0) {
    socket.write(bytes)
    return
  }
  socket.cork()
  socket.write(`${bytes.length.toString(16)}\r\n`, 'latin1')
  socket.write(bytes)
  socket.write('\r\n', 'latin1')
  socket.uncork()
}

export function endChunked(exchange: Exchange): void {
  if (!exchange.head.is_version_1_0) exchange.connection.socket.write('0\r\n\r\n', 'latin1')
  endResponse(exchange)
}

/** Resolves when the client takes more bytes, or is gone. */
export function drained(exchange: Exchange): Promise<void> {
  return new Promise((resolve) => {
    exchange.responder = { upstream: null, is_parked: false, onDrain: resolve, onLost: resolve }
  })
}

function ownHead(exchange: Exchange, status: number, headers: readonly string[]): string {
  const { date_line } = exchange.connection.ticks
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${linesOf(headers)}${rayLine(exchange)}${date_line}${connectionLines(exchange)}\r\n`
}

export function rayLine({ ray_id }: Exchange): string {
  return ray_id === null ? '' : `${RAY_HEADER}: ${ray_id}\r\n`
}

const KEEP_ALIVE = `Connection: keep-alive\r\nKeep-Alive: timeout=${KEEP_ALIVE_MS_MAX / 1_000}\r\n`

/** Decides whether the connection continues after this response, and returns the lines that say so. */
export function connectionLines(exchange: Exchange): string {
  if (!isRestShort(exchange)) exchange.keeps_alive = false
  return exchange.keeps_alive ? KEEP_ALIVE : 'Connection: close\r\n'
}

/** Whether the rest of the request's body is known to be short. Reading a long body only to drop it has a limit. */
function isRestShort({ body, head, responder }: Exchange): boolean {
  if (body.is_done) return true
  // A client that waits for "100 Continue" may never send its body.
  const is_expected = !head.expects_continue || responder?.upstream?.is_begun === true
  return is_expected && body.framing !== 'chunked' && body.left <= READ_AHEAD_BYTES_MAX
}

/** All of the response has been written. */
export function endResponse(exchange: Exchange): void {
  exchange.is_response_done = true
  exchange.connection.handlers.onResponseDone(exchange)
}

/** Breaks off a response that cannot be completed: it must not look complete. */
export function breakResponse({ connection, is_until_end }: Exchange): void {
  const { socket } = connection
  if (is_until_end && !connection.is_secure) socket.resetAndDestroy()
  else socket.destroy()
}
