// Binds an operation of the contract to its handler. What surrounds every handler is written once for all operations: before
// the body is read in admission.ts, around the handler in mount.ts. So a handler contains only the operation.
import type { BodyOf, CallerKind, ErrorDetail, Operation, ParamsOf, QueryOf, ResponseOf } from '@musterhost/contract'
import type { ChangeContext } from '../audit/changes.ts'
import type { Ray } from '../observe/ray.ts'
import type { Prepared } from '../text/json-text.ts'
import type { CallerOf } from '../tokens/caller.ts'

export type OperationRequest<O extends Operation, K extends CallerKind = CallerKind> = {
  ctx: ChangeContext
  caller: CallerOf<K>
  params: ParamsOf<O>
  query: QueryOf<O>
  body: BodyOf<O>
  ray_id: string
  /** Records where the time of the request goes; null when no ray is kept. */
  ray: Ray | null
  /** The client's own address, as the trusted proxies report it. */
  client_ip: string
  /** The key that limits per client count by: an IPv4 address or an IPv6 /64. */
  client_key: string
  user_agent: string | null
  idempotency_key: string | null
  /** Used only for logging in. */
  origin: string | undefined
  cookie: string | undefined
  setCookie: (cookie: string) => void
  /** Adds the line and column in the body to each message, for operations that return errors instead of throwing. */
  locateErrors: (errors: readonly ErrorDetail[]) => ErrorDetail[]
  /** What the handler has done so far, which it writes itself. When another process continues the request, it gets them. */
  steps: Record<string, unknown>
  /** Whether the caller has hung up. */
  isGone: () => boolean
  /** For a long poll: aborted when its caller has hung up or is no longer allowed. */
  gone: AbortSignal
  /** Aborted when the caller hangs up. It is created on demand: most requests need none. */
  hangUpSignal: () => AbortSignal
}

type Answer<T> = T | Promise<T>
/** A response without members is left out, or is that of another function. */
type ResponseWay<T> = unknown extends T
  ? unknown
  : keyof T extends never
    ? Promise<void> | Answer<Record<string, never>>
    : Answer<T | Prepared<T>>
type Handler<O extends Operation, K extends CallerKind = CallerKind> = (
  request: OperationRequest<O, K>,
) => ResponseWay<ResponseOf<O>>

/** One handler for each kind of caller that the contract admits. */
type HandlersByCaller<O extends Operation> = { [K in CallerKind]?: Handler<O, K> }

/** An operation and its handler; the types meet in implement() and are not needed afterwards. */
export type Implementation = { operation: Operation; handle: (request: OperationRequest<Operation>) => unknown }

/**
 * A single function handles every caller that the contract admits. Throws an Error where handlers by caller are not exactly
 * those of the operation's `auth`: a missing one would otherwise be found by its first caller.
 */
export function implement<O extends Operation>(
  operation: O,
  handler: Handler<O> | HandlersByCaller<O>,
): Implementation {
  if (typeof handler === 'function') return { operation, handle: handler as unknown as Implementation['handle'] }
  const handlers = handler as unknown as Readonly<Record<string, Implementation['handle']>>
  const kinds = Object.keys(handlers).sort()
  if (kinds.join() !== [...operation.auth].sort().join()) {
    throw new Error(`${operation.id} takes ${operation.auth.join(', ')}, but has handlers for ${kinds.join(', ')}`)
  }
  return { operation, handle: (request) => handlers[request.caller.kind]!(request) }
}
