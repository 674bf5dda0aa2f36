// Players, as the server of their lobby reports them.
import { ApiError, type BodyOf, type playerDisconnected } from '@musterhost/contract'
import type { PlayerAttributes } from '../../journal/changes.ts'
import type { Ray } from '../../observe/ray.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import type { Token } from '../../tokens/claims.ts'
import * as decide from '../book/decide.ts'
import type { MatchmakerContext } from '../seats/context.ts'

/** `key`: the idempotency key of the call. */
type OfCall = { key: string | null; ray: Ray | null }

/** Consumes the token. Of concurrent calls one succeeds. */
export async function connectPlayer(
  ctx: MatchmakerContext,
  caller: CallerOf<'lobby'>,
  player_token: string,
  { key, ray }: OfCall,
) {
  const { player_id, role } = playerOf(ctx, caller, player_token)
  if (ray !== null) ray.player_id = player_id
  const call = { player_id, lobby_id: caller.lobby_id, connect_key: key }
  await ctx.books.commit(caller.namespace_id, (book, { now_ms }) => decide.connected(book, call, now_ms))
  const { team = null, attributes } = ctx.books.book(caller.namespace_id)?.players.get(player_id)?.match ?? {}
  return {
    ...(role === 'spectator' && { role: 'spectator' as const }),
    ...(team !== null && { team }),
    ...(attributes !== undefined && { attributes: copyOf(attributes) }),
  }
}

export async function disconnectPlayer(
  ctx: MatchmakerContext,
  caller: CallerOf<'lobby'>,
  { player_token, hold_ms = 0 }: BodyOf<typeof playerDisconnected>,
  { key, ray }: OfCall,
) {
  const { player_id } = playerOf(ctx, caller, player_token)
  if (ray !== null) ray.player_id = player_id
  const call = { player_id, lobby_id: caller.lobby_id, disconnect_key: key, hold_ms }
  await ctx.books.commit(caller.namespace_id, (book, { now_ms }) => decide.disconnected(book, call, now_ms))
  return {}
}

function copyOf(attributes: PlayerAttributes): Record<string, number | string | string[]> {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, typeof value === 'object' ? [...value] : value]),
  )
}

function playerOf(ctx: MatchmakerContext, caller: CallerOf<'lobby'>, player_token: string) {
  const token = playerTokenOf(ctx, player_token)
  if (token.lobby_id !== caller.lobby_id) throw new ApiError('MATCHMAKER_PLAYER_IN_DIFFERENT_LOBBY')
  return token
}

/** A player token is data here, not the caller's credential: an invalid one is a bad request. */
export function playerTokenOf(ctx: MatchmakerContext, player_token: string): Extract<Token, { kind: 'player' }> {
  const token = readPlayerToken(ctx, player_token)
  if (token === null) throw new ApiError('PLAYER_TOKEN_INVALID')
  return token
}

/** Null: it is no valid player token. */
export function readPlayerToken(ctx: MatchmakerContext, text: string): Extract<Token, { kind: 'player' }> | null {
  const token = verify(ctx, text)
  return token?.kind === 'player' ? token : null
}

function verify(ctx: MatchmakerContext, player_token: string) {
  try {
    return ctx.keys.verify(player_token, ctx.now())
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}
