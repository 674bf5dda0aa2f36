// Renaming: the display name of a row, and nothing else.
import { ApiError, type ErrorCode } from '@muster/contract'
import type { Caller } from '../caller.ts'
import type { Context } from '../context.ts'
import { requireGame } from './access.ts'
import { notUnique, orNameTaken } from './field-errors.ts'

const THINGS = {
  namespaces: { id: 'namespace_id', unknown: 'NAMESPACE_NOT_FOUND' },
  versions: { id: 'version_id', unknown: 'VERSION_NOT_FOUND' },
  builds: { id: 'build_id', unknown: 'BUILD_NOT_FOUND' },
  sites: { id: 'site_id', unknown: 'SITE_NOT_FOUND' },
} as const satisfies Record<string, { id: string; unknown: ErrorCode }>

/** Throws GAME_NOT_FOUND. */
export async function renameGame(ctx: Context, caller: Caller, game_id: string, display_name: string): Promise<void> {
  await requireGame(ctx, caller, game_id)
  await ctx.db.updateTable('games').set({ display_name }).where('game_id', '=', game_id).execute()
}

/** Throws GAME_NOT_FOUND, the not-found code of the thing, or NAME_TAKEN (versions). */
export async function renameThing(
  ctx: Context,
  caller: Caller,
  table: keyof typeof THINGS,
  place: { game_id: string; id: string },
  display_name: string,
): Promise<void> {
  await requireGame(ctx, caller, place.game_id)
  const { id, unknown } = THINGS[table]
  const taken = notUnique(['display_name'], `The game has one called ${JSON.stringify(display_name)} already.`)
  const result = await orNameTaken(taken, () =>
    ctx.db
      .updateTable(table)
      .set({ display_name })
      .where('game_id', '=', place.game_id)
      .where(id as never, '=', place.id as never)
      .executeTakeFirst(),
  )
  if (result.numUpdatedRows === 0n) throw new ApiError(unknown)
}
