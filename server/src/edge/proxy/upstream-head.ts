// The head of a request as a backend receives it: the one place where the edge adds headers for backends.
import { linesWithout } from '@musterhost/contract/edge'
import { CHANNEL_PROTOCOL } from '../../wire/parking-protocol.ts'
import type { Exchange } from '../http/exchange.ts'
import { rayLine } from '../http/response.ts'
import type { Backend, ForwardedRequest } from './forwarded-request.ts'

/** Methods for which a backend expects no body. For the others a missing body is stated by a length of 0. */
const METHODS_WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

export function upstreamHead({ exchange, backend, channel, parked }: ForwardedRequest): string {
  const park_line = channel?.park_line ?? ''
  return parked === null ? requestHead(exchange, backend, park_line) : claimHead(parked.claim_line, backend)
}

function requestHead(exchange: Exchange, backend: Backend, park_line: string): string {
  const { head, method, path, client_ip, player_lines } = exchange
  const { isRequestDropped, request_added } = backend
  const lines = isRequestDropped === null ? head.lines : linesWithout(head.lines, isRequestDropped)
  const scheme = exchange.is_secure ? 'https' : 'http'
  const forwarded = `X-Forwarded-For: ${client_ip}\r\nX-Forwarded-Proto: ${scheme}\r\n${park_line}${exchange.role_lines}`
  const connection = head.is_upgrade ? 'Connection: Upgrade\r\nUpgrade: websocket\r\n' : 'Connection: keep-alive\r\n'
  return `${method} ${path} HTTP/1.1\r\n${lines}${forwarded}${player_lines}${request_added}${rayLine(exchange)}${connection}${framingOf(exchange)}\r\n`
}

/** Fetches the response to a parked request. */
function claimHead(claim_line: string, { request_added }: Backend): string {
  return `GET / HTTP/1.1\r\nHost: ${CHANNEL_PROTOCOL}\r\n${request_added}${claim_line}Connection: keep-alive\r\n\r\n`
}

function framingOf({ head, method }: Exchange): string {
  if (head.framing === 'chunked') return 'Transfer-Encoding: chunked\r\n'
  if (head.framing !== 'none') return `Content-Length: ${head.framing}\r\n`
  return METHODS_WITHOUT_BODY.has(method) ? '' : 'Content-Length: 0\r\n'
}
