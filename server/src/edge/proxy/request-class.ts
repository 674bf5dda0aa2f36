// The class of a request to a role, which decides the pool that it takes a slot in (pools.ts). It follows from the
// operation's declaration in the contract, so a new operation needs no line here:
// - `seat`: an operation that only lobby servers call and that never waits, or that takes a seat. Its pool is a reserve for these.
// - `wait`: a long poll: an operation with a watch_index in its query, when the request sends one.
// - `live`: a WebSocket.
// - `upload`: a large body, or a body whose length the head does not state.
// - `call`: everything else.
import type { Operation } from '@musterhost/contract'
import { OPERATIONS } from '@musterhost/contract/operations'
import type { RequestHead } from '../http/head.ts'
import { type ROLE_POOLS, SMALL_BODY_BYTES_MAX } from '../limits.ts'

export type RequestClass = Exclude<keyof typeof ROLE_POOLS, 'parked'>

/** `path`: as the role receives it, with its query. */
export function classOf({ method, is_upgrade, framing }: RequestHead, path: string): RequestClass {
  if (is_upgrade) return 'live'
  if (framing === 'chunked' || (framing !== 'none' && framing > SMALL_BODY_BYTES_MAX)) return 'upload'
  const query = path.indexOf('?')
  if (query === -1) return SEAT_METHODS.get(path) === method ? 'seat' : 'call'
  const pathname = path.slice(0, query)
  if (SEAT_METHODS.get(pathname) === method) return 'seat'
  const is_watch = method === 'GET' && WATCH_MEMBER.test(path.slice(query + 1)) && isWatched(pathname)
  return is_watch ? 'wait' : 'call'
}

/**
 * Whether the request goes over a trunk (trunks.ts): an operation with a small body. Large bodies are streamed, a WebSocket
 * needs a connection of its own, and pages and downloads, which are no operations, may be long.
 */
export function goesByTrunk({ is_upgrade, framing }: RequestHead, path: string): boolean {
  if (is_upgrade || framing === 'chunked' || (framing !== 'none' && framing > SMALL_BODY_BYTES_MAX)) return false
  return OPERATION_BEGINNINGS.has(FIRST_SEGMENT.exec(path)![0])
}

/** Also matches any percent-encoded name, which may be this one. */
const WATCH_MEMBER = /(?:^|&)(?:watch_index|[^=&%]*%[^=&]*)=/

const isForSeats = ({ auth, rate_limit, idempotent, query }: Operation): boolean =>
  (auth.every((kind) => kind === 'lobby' || kind === 'development') && !('watch_index' in query.properties)) ||
  (rate_limit === 'seats' && idempotent)

const FIRST_SEGMENT = /^[^/]*\/?[^/?]*/

/** The first segments of the paths of all operations. */
const OPERATION_BEGINNINGS: ReadonlySet<string> = new Set(
  OPERATIONS.flatMap(({ path, aliases }) => [path, ...aliases]).map((path) => FIRST_SEGMENT.exec(path)![0]),
)

/** The method of each path; no two operations of this class share a path. */
const SEAT_METHODS: ReadonlyMap<string, string> = new Map(
  OPERATIONS.filter(isForSeats).flatMap(({ method, path, aliases }) =>
    [path, ...aliases].map((one): [string, string] => [one, method]),
  ),
)

const WATCH_PATHS: readonly RegExp[] = OPERATIONS.filter(
  ({ method, query }) => method === 'GET' && 'watch_index' in query.properties,
)
  .flatMap(({ path, aliases }) => [path, ...aliases])
  .map((path) => new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`))

function isWatched(pathname: string): boolean {
  return WATCH_PATHS.some((pattern) => pattern.test(pathname))
}
