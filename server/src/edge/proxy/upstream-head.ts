// The head of a request as a backend receives it: the one place where the edge adds headers for backends.
import { linesWithout } from '@musterhost/contract/edge'
import type { Exchange } from '../http/exchange.ts'
import { rayLine } from '../http/response.ts'
import type { ForwardedRequest } from './forwarded-request.ts'

/** Methods for which a backend expects no body. For the others a missing body is stated by a length of 0. */
const METHODS_WITHOUT_BODY = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

export function upstreamHead({ exchange, backend }: ForwardedRequest): string {
  const { head, method, path, client_ip, player_lines } = exchange
  const { isRequestDropped, request_added } = backend
  const lines = isRequestDropped === null ? head.lines : linesWithout(head.lines, isRequestDropped)
  const scheme = exchange.is_secure ? 'https' : 'http'
  const forwarded = `X-Forwarded-For: ${client_ip}\r\nX-Forwarded-Proto: ${scheme}\r\n${exchange.role_lines}`
  const connection = head.is_upgrade ? 'Connection: Upgrade\r\nUpgrade: websocket\r\n' : 'Connection: keep-alive\r\n'
  return `${method} ${path} HTTP/1.1\r\n${lines}${forwarded}${player_lines}${request_added}${rayLine(exchange)}${connection}${framingOf(exchange)}\r\n`
}

/** Whether the head states the length of the body, as it does for every body that is not chunked. */
export function hasLength({ head, method }: Exchange): boolean {
  return head.framing !== 'none' || !METHODS_WITHOUT_BODY.has(method)
}

function framingOf(exchange: Exchange): string {
  const { framing } = exchange.head
  if (framing === 'chunked') return 'Transfer-Encoding: chunked\r\n'
  if (framing !== 'none') return `Content-Length: ${framing}\r\n`
  return hasLength(exchange) ? 'Content-Length: 0\r\n' : ''
}
