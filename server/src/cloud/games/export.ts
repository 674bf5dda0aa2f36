// All of one game as a file, which another platform imports.
import type { Context } from '../../context.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame } from '../access.ts'
import { gameFileUrl } from '../export-urls.ts'

/** Throws GAME_NOT_FOUND. */
export async function exportGame(ctx: Context, caller: Caller, game_id: string): Promise<{ url: string }> {
  await requireGame(ctx, caller, game_id)
  return { url: gameFileUrl(ctx, game_id) }
}
