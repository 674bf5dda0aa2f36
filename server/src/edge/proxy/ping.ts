// The response to a client that measures its latency. The edge sends it at once: no role, table or file is asked. It has no
// content, so nothing but the round trip counts.
import { ApiError } from '@musterhost/contract'
import { PING_PATH, WELL_KNOWN_PING_PATH } from '../../config/ping-addresses.ts'
import { METHOD_NOT_ALLOWED_HEADERS } from '../cdn/preflight.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Refuse } from '../http/refuse.ts'
import { sendResponse } from '../http/response.ts'
import type { HostMeaning } from '../routes/hosts.ts'

/** A page of any origin may ask, and may read the exact times of its browser (Resource Timing, 4.5). */
const HEADERS = ['cache-control', 'no-store', 'access-control-allow-origin', '*', 'timing-allow-origin', '*']

/** Hosts without files of a game: there the short path hides none. */
const OWN_HOSTS: ReadonlySet<string | undefined> = new Set(['main', 'edge', 'raw_ports'])

/** Lobbies have all paths of their hosts. `path`: with a query, or without. */
export function isPing(path: string, meaning: HostMeaning | null): boolean {
  if (hasPath(path, PING_PATH)) return OWN_HOSTS.has(meaning?.kind)
  return hasPath(path, WELL_KNOWN_PING_PATH) && meaning?.kind !== 'lobby'
}

function hasPath(path: string, wanted: string): boolean {
  return path.startsWith(wanted) && (path.length === wanted.length || path[wanted.length] === '?')
}

export function sendPing(exchange: Exchange, refuse: Refuse): void {
  if (exchange.method === 'GET' || exchange.method === 'HEAD') sendResponse(exchange, 204, HEADERS, null)
  else refuse.request(exchange, new ApiError('API_METHOD_NOT_ALLOWED'), METHOD_NOT_ALLOWED_HEADERS)
}
