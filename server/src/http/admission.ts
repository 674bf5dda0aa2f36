// What happens before the body of a request is read: the caller is authenticated, its rate is counted, and a request that did
// not come through the edge takes a slot. A request that is refused here costs no memory for its body.
import type { IncomingMessage } from 'node:http'
import { ApiError, type Operation } from '@musterhost/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { clientIp, clientKey } from '../addresses/client-ip.ts'
import { phase } from '../observe/ray.ts'
import type { Caller } from '../tokens/caller.ts'
import { EDGE_PROOF_HEADER } from '../wire/headers.ts'
import { authenticate } from './auth.ts'
import type { MountOptions } from './mount-options.ts'
import { ownerOf, rayOf } from './ray.ts'

/** What is known of a request before its body is read: the body of an unknown caller is not parsed. */
type Admitted = { caller: Caller; client_ip: string; client_key: string }

declare module 'fastify' {
  interface FastifyRequest {
    /** Null until the caller is known. */
    admitted: Admitted | null
    /** The JSON body as it arrived, to find the position of an error; null when it is too large for that. */
    body_bytes: Buffer | null
    /** The JSON body as it arrived; null: there is none. */
    raw_body: Buffer | null
  }
}

type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void

/** Returns the hook that admits the requests of an operation. */
export function createAdmission(options: MountOptions, operation: Operation): OnRequest {
  const { ctx, peers } = options
  const admit = (request: FastifyRequest, reply: FastifyReply, caller: Caller): void => {
    const client_ip = addressOf(options, request.raw)
    const client_key = clientKey(client_ip)
    const ray = rayOf(request)
    if (ray !== null) ray.owner = ownerOf(caller)
    if (!peers.isCountedElsewhere(request, caller)) requireRate(options, operation, caller, client_key)
    peers.onAdmitted(request, reply, caller)
    if (request.headers[EDGE_PROOF_HEADER] !== options.edge_proof)
      takeSlot(options, reply, bucketOf(caller) ?? client_key)
    request.admitted = { caller, client_ip, client_key }
    phase(ray, 'http')
  }
  return (request, reply, done) => {
    const ray = rayOf(request)
    if (ray !== null) ray.operation = operation.id
    phase(ray, 'auth')
    try {
      const { authorization, origin } = request.headers
      const caller =
        peers.callerOf(request) ?? authenticate(ctx, operation, { authorization, origin }, options.namespaceOfOrigin)
      if (caller instanceof Promise) {
        caller.then((known) => admit(request, reply, known)).then(() => done(), done)
        return
      }
      admit(request, reply, caller)
    } catch (error) {
      done(error as Error)
      return
    }
    done()
  }
}

/** The address that the edge forwards is final. From any other peer, the header counts only behind trusted proxies. */
export function addressOf(options: MountOptions, request: IncomingMessage): string {
  const forwarded_for = request.headers['x-forwarded-for']
  const peer = request.socket.remoteAddress ?? '0.0.0.0'
  if (typeof forwarded_for !== 'string') return peer
  if (request.headers[EDGE_PROOF_HEADER] === options.edge_proof) return forwarded_for
  return options.own_addresses.has(peer) ? peer : clientIp({ peer, forwarded_for }, options.trusted)
}

/** A lobby has a limit of its own, so that other lobbies of its machine cannot starve it. */
export function requireRate(options: MountOptions, operation: Operation, caller: Caller, client_key: string): void {
  if (operation.rate_limit === 'none') return
  const key = bucketOf(caller) ?? client_key
  // A backend calls for all its players: only the number of its calls is limited.
  const asks_for_all = caller.kind === 'cloud' && operation.rate_limit !== 'kv'
  const limiter = options.limiters[asks_for_all ? 'cloud' : operation.rate_limit]
  const wait_ms = limiter.take(key, options.ctx.elapsed())
  if (wait_ms > 0) throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: Math.ceil(wait_ms / 1000) })
}

/**
 * Limits requests that did not come through the edge, which has limits of its own: those of lobbies (lobby-listener.ts). Each
 * lobby, game and user has its own share. Throws API_RATE_LIMIT and API_NOT_AVAILABLE.
 */
function takeSlot({ direct }: MountOptions, { raw }: FastifyReply, key: string): void {
  const slot = direct.enter(key)
  if (slot === 'client_full') throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s: 1 })
  if (slot === 'full') throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
  raw.once('close', slot.leave)
}

export function bucketOf(caller: Caller): string | null {
  switch (caller.kind) {
    case 'lobby':
      return caller.lobby_id
    case 'cloud':
      return caller.game_id
    case 'user':
      return caller.user_id
    default:
      return null
  }
}
