// Refusals that the audit log records: a caller who lacks a right (403), a token that has expired or was revoked (401), and
// log-ins that are refused. Who called is read from the token again, because most refusals come before the caller is known.
import type { IncomingMessage } from 'node:http'
import type { ApiError } from '@musterhost/contract'
import type { FastifyRequest } from 'fastify'
import { clientKey } from '../addresses/client-ip.ts'
import { actorOf, actorOfToken, type Event, type Scope, scopeOfToken, tokenOf } from '../audit/events.ts'
import { isLogin } from '../audit/unaudited.ts'
import { newId } from '../ids.ts'
import type { Caller } from '../tokens/caller.ts'
import type { Token } from '../tokens/keys.ts'
import { addressOf } from './admission.ts'
import type { MountOptions } from './mount-options.ts'

const REFUSED_TOKENS: readonly string[] = ['TOKEN_EXPIRED', 'TOKEN_REVOKED']

/** A call that was refused. `caller`: null when the refusal came before it was known. */
type RefusedCall = {
  operation: string
  raw: IncomingMessage
  authorization: string | undefined
  ray_id: string
  caller: Caller | null
  params: Readonly<Record<string, string | undefined>>
}

export function recordRefusedRequest(options: MountOptions, request: FastifyRequest, refusal: ApiError): void {
  const config = (request.routeOptions.config ?? {}) as { operation?: string; are_refusals_audited?: boolean }
  const { operation } = config
  if (config.are_refusals_audited !== true || operation === undefined) return
  const { raw, id: ray_id, admitted, headers } = request
  const params = (request.params ?? {}) as RefusedCall['params']
  const caller = admitted?.caller ?? null
  recordRefusal(options, { operation, raw, authorization: headers.authorization, ray_id, caller, params }, refusal)
}

/** For an operation whose refusals are audited (audit/unaudited.ts). */
export function recordRefusal(options: MountOptions, call: RefusedCall, refusal: ApiError): void {
  const { operation, ray_id, caller } = call
  const is_login = isLogin({ id: operation })
  const is_refused = refusal.status === 403 || REFUSED_TOKENS.includes(refusal.code)
  if (!is_refused && !(is_login && refusal.status === 401)) return
  const { ctx } = options
  const client_ip = addressOf(options, call.raw)
  const now_ms = ctx.now()
  options.refusals.add(clientKey(client_ip), (): Event => {
    const token = tokenOf(ctx.keys, call.authorization)
    return {
      event_id: newId(now_ms),
      create_ts: new Date(now_ms),
      ...scopeOf(call, refusal, token),
      ...(caller === null ? actorOfToken(token) : actorOf(caller, token)),
      ...{ client_ip, ray_id, operation },
      outcome: is_login ? 'failed' : 'refused',
      code: refusal.code,
      changes: [],
      dropped_count: 0,
    }
  })
}

/**
 * The group that refused one of its members, or else the game that the token stands for. An id that the caller only sent is no
 * scope: strangers could write into the log of a group.
 */
function scopeOf({ params }: RefusedCall, { code, metadata }: ApiError, token: Token | null): Scope {
  if (code !== 'GROUP_INSUFFICIENT_PERMISSIONS') return scopeOfToken(token)
  const { game_id } = params
  return { group_id: String(metadata.group_id), ...(game_id === undefined ? {} : { game_id }) }
}
