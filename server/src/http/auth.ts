// Authenticates the caller: by the bearer token of the Authorization header or, for a game's web page, by the Origin that
// stands for its namespace's public token. The contract lists the callers of an operation, and whether a person confirms it; only
// this file checks both.
import { ApiError, type CallerKind, type Operation } from '@musterhost/contract'
import type { Context } from '../context.ts'
import { requireConfirmation } from '../identity/passkeys/confirmation.ts'
import { requireSession } from '../identity/sessions.ts'
import type { Caller } from '../tokens/caller.ts'

type KnownCaller = Exclude<Caller, { kind: 'anyone' }>

const BEARER = /^Bearer ([\x21-\x7e]{1,2048})$/i

type Credentials = { authorization: string | undefined; origin: string | undefined }

/** Returns the namespace that an Origin stands for, or null. The matchmaker role has such a look-up, the api role none. */
export type OriginLookup = (origin: string) => Promise<string | null> | string | null

/** Returns without a promise where no query is needed. Throws API_UNAUTHORIZED, API_FORBIDDEN or a TOKEN_ error. */
export function authenticate(
  ctx: Context,
  operation: Operation,
  credentials: Credentials,
  namespaceOfOrigin: OriginLookup,
): Caller | Promise<Caller> {
  if (operation.auth.includes('anyone')) return { kind: 'anyone' }
  if (credentials.authorization !== undefined) {
    const caller = callerOfToken(ctx, operation, credentials.authorization)
    if (caller instanceof Promise) return caller
    if (!operation.auth.includes(caller.kind)) throw forbidden(caller.kind, operation)
    return caller
  }
  if (credentials.origin === undefined || !operation.auth.includes('namespace')) throw new ApiError('API_UNAUTHORIZED')
  const namespace_id = namespaceOfOrigin(credentials.origin)
  return namespace_id instanceof Promise ? namespace_id.then(callerOfOrigin) : callerOfOrigin(namespace_id)
}

function callerOfOrigin(namespace_id: string | null): Caller {
  if (namespace_id !== null) return { kind: 'namespace', namespace_id, identity_id: null }
  const message = 'This origin does not stand for a namespace; send a public token instead.'
  throw new ApiError('API_UNAUTHORIZED', {}, { message })
}

/** The token of an Authorization header; undefined without one. */
export function bearerOf(authorization: string | undefined): string | undefined {
  return BEARER.exec(authorization ?? '')?.[1]
}

function callerOfToken(ctx: Context, operation: Operation, authorization: string): KnownCaller | Promise<Caller> {
  const text = bearerOf(authorization)
  if (text === undefined) {
    throw new ApiError('TOKEN_INVALID', {}, { message: 'The Authorization header must be "Bearer" and a token.' })
  }
  const token = ctx.keys.verify(text, ctx.now())
  if (ctx.revoked.has(token.token_id)) throw new ApiError('TOKEN_REVOKED')
  switch (token.kind) {
    case 'access':
      return { kind: 'admin', name: token.name, user_id: null }
    case 'user':
      return callerOfSession(ctx, operation, token.session_id)
    case 'cloud':
      ctx.token_uses.note(token.token_id, ctx.now())
      return { kind: 'cloud', game_id: token.game_id }
    case 'public':
      return { kind: 'namespace', namespace_id: token.namespace_id, identity_id: null }
    case 'game_user':
      return { kind: operation.auth.includes('namespace') ? 'namespace' : 'identity', ...namesOf(token) }
    case 'lobby':
      return { kind: 'lobby', lobby_id: token.lobby_id, namespace_id: token.namespace_id }
    case 'development':
      return { kind: 'development', namespace_id: token.namespace_id, hostname: token.hostname, ports: token.ports }
    case 'player':
    case 'dev_player':
      throw new ApiError('API_FORBIDDEN', {}, { message: 'A player token is for the lobby server, not for a call.' })
    case 'device':
      throw new ApiError('API_FORBIDDEN', {}, { message: 'A device link is to be completed, not to be called with.' })
  }
}

function namesOf({ identity_id, namespace_id }: { identity_id: string; namespace_id: string }) {
  return { identity_id, namespace_id }
}

/** An administrator who has logged in is an administrator wherever the operation admits them, otherwise a user. */
async function callerOfSession(ctx: Context, operation: Operation, session_id: string): Promise<Caller> {
  const { auth, role, confirm } = operation
  if (!auth.includes('user') && !auth.includes('admin')) throw forbidden('user', operation)
  const { user_id, admin_name } = await requireSession(ctx, session_id)
  const is_admin = admin_name !== null && auth.includes('admin')
  if (!is_admin && !auth.includes('user')) throw forbidden('user', operation)
  if (confirm) await requireConfirmation(ctx, session_id)
  if (is_admin) {
    return { kind: 'admin', name: admin_name, user_id, session_id }
  }
  return { kind: 'user', user_id, role, session_id }
}

function forbidden(kind: CallerKind, operation: Operation): ApiError {
  return new ApiError(
    'API_FORBIDDEN',
    { caller: kind, allowed: operation.auth },
    { message: `${operation.id} takes a token of kind ${operation.auth.join(' or ')}, not ${kind}.` },
  )
}
