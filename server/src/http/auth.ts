// Who calls: the bearer token of the Authorization header or, for a game's web page, the Origin that stands for its
// namespace's public token. The contract says which callers an operation takes; that is checked here and nowhere else.
import { ApiError, type CallerKind, type Operation } from '@muster/contract'
import type { Caller } from '../caller.ts'
import type { Context } from '../context.ts'

const BEARER = /^Bearer ([\x21-\x7e]{1,2048})$/i

export type Credentials = { authorization: string | undefined; origin: string | undefined }

/** Answers the namespace that an Origin stands for, or null. The matchmaker role has one, the api role none. */
export type OriginLookup = (origin: string) => Promise<string | null> | string | null

/** Throws API_UNAUTHORIZED, API_FORBIDDEN, TOKEN_INVALID or TOKEN_EXPIRED. */
export async function authenticate(
  ctx: Context,
  operation: Operation,
  credentials: Credentials,
  namespaceOfOrigin: OriginLookup,
): Promise<Caller> {
  const anyone = operation.auth.includes('anyone')
  if (anyone) return { kind: 'anyone' }
  if (credentials.authorization !== undefined) {
    const caller = callerOfToken(ctx, credentials.authorization)
    if (!operation.auth.includes(caller.kind)) throw forbidden(caller.kind, operation)
    return caller
  }
  if (credentials.origin !== undefined && operation.auth.includes('namespace')) {
    const namespace_id = await namespaceOfOrigin(credentials.origin)
    if (namespace_id !== null) return { kind: 'namespace', namespace_id }
    throw new ApiError(
      'API_UNAUTHORIZED',
      {},
      { message: 'This origin does not stand for a namespace; send a public token instead.' },
    )
  }
  throw new ApiError('API_UNAUTHORIZED')
}

function callerOfToken(ctx: Context, authorization: string): Exclude<Caller, { kind: 'anyone' }> {
  const match = BEARER.exec(authorization)
  if (match === null) {
    throw new ApiError('TOKEN_INVALID', {}, { message: 'The Authorization header must be "Bearer" and a token.' })
  }
  const token = ctx.keys.verify(match[1]!, ctx.now())
  switch (token.kind) {
    case 'access':
      return { kind: 'admin', name: token.name }
    case 'cloud':
      return { kind: 'cloud', game_id: token.game_id }
    case 'public':
      return { kind: 'namespace', namespace_id: token.namespace_id }
    case 'lobby':
      return { kind: 'lobby', lobby_id: token.lobby_id, namespace_id: token.namespace_id }
    case 'player':
      throw new ApiError('API_FORBIDDEN', {}, { message: 'A player token is for the lobby server, not for a call.' })
  }
}

function forbidden(kind: CallerKind, operation: Operation): ApiError {
  return new ApiError(
    'API_FORBIDDEN',
    { caller: kind, allowed: operation.auth },
    { message: `${operation.id} takes a token of kind ${operation.auth.join(' or ')}, not ${kind}.` },
  )
}
