// Whose a game is. Every function on a game, or on something below one, begins here.
import { ApiError } from '@muster/contract'
import type { Caller } from '../caller.ts'
import type { Context } from '../context.ts'

/**
 * Throws GAME_NOT_FOUND when there is no such game, and the very same when it is not the caller's: a cloud token must
 * not learn which games exist.
 */
export async function requireGame(ctx: Context, caller: Caller, game_id: string): Promise<void> {
  const row = await ctx.db.selectFrom('games').select('game_id').where('game_id', '=', game_id).executeTakeFirst()
  if (row === undefined || !maySee(caller, game_id)) throw new ApiError('GAME_NOT_FOUND')
}

export function maySee(caller: Caller, game_id: string): boolean {
  return caller.kind === 'admin' || (caller.kind === 'cloud' && caller.game_id === game_id)
}
