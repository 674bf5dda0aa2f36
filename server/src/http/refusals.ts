// Refusals that the audit log records: a caller who lacks a right (403), a token that has expired or was revoked (401), and
// log-ins that are refused. Who called is read from the token again, because most refusals come before the caller is known.
import type { ApiError } from '@muster/contract'
import type { FastifyRequest } from 'fastify'
import { clientKey } from '../addresses/client-ip.ts'
import { type Actor, actorOf, actorOfToken, type Event, type Scope, scopeOfToken, tokenOf } from '../audit/events.ts'
import { isLogin } from '../audit/unaudited.ts'
import { newId } from '../ids.ts'
import type { Token } from '../tokens/keys.ts'
import { addressOf, type MountOptions } from './implement.ts'

const REFUSED_TOKENS: readonly string[] = ['TOKEN_EXPIRED', 'TOKEN_REVOKED']

export function recordRefusal(options: MountOptions, request: FastifyRequest, refusal: ApiError): void {
  const config = (request.routeOptions.config ?? {}) as { operation?: string; are_refusals_audited?: boolean }
  if (config.are_refusals_audited !== true || config.operation === undefined) return
  const { operation } = config
  const is_login = isLogin({ id: operation })
  const is_refused = refusal.status === 403 || REFUSED_TOKENS.includes(refusal.code)
  if (!is_refused && !(is_login && refusal.status === 401)) return
  const { ctx } = options
  const client_ip = addressOf(options, request.raw)
  const now_ms = ctx.now()
  options.refusals.add(clientKey(client_ip), (): Event => {
    const token = tokenOf(ctx.keys, request.headers.authorization)
    return {
      event_id: newId(now_ms),
      create_ts: new Date(now_ms),
      ...scopeOf(request, refusal, token),
      ...actorOfRequest(request, token),
      ...{ client_ip, ray_id: request.id, operation },
      outcome: is_login ? 'failed' : 'refused',
      code: refusal.code,
      changes: [],
      dropped_count: 0,
    }
  })
}

function actorOfRequest({ admitted }: FastifyRequest, token: Token | null): Actor {
  return admitted === null ? actorOfToken(token) : actorOf(admitted.caller, token)
}

/**
 * The group that refused one of its members, or else the game that the token stands for. An id that the caller only sent is no
 * scope: strangers could write into the log of a group.
 */
function scopeOf({ params }: FastifyRequest, { code, metadata }: ApiError, token: Token | null): Scope {
  if (code !== 'GROUP_INSUFFICIENT_PERMISSIONS') return scopeOfToken(token)
  const { game_id } = (params ?? {}) as Scope
  return { group_id: String(metadata.group_id), ...(game_id === undefined ? {} : { game_id }) }
}
