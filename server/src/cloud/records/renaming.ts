// Renaming: the display name of a row, and nothing else.
import { ApiError, type ErrorCode } from '@musterhost/contract'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireGame } from '../access.ts'
import { notUnique, orNameTaken } from '../field-errors.ts'

const THINGS = {
  namespaces: { id: 'namespace_id', unknown: 'NAMESPACE_NOT_FOUND' },
  versions: { id: 'version_id', unknown: 'VERSION_NOT_FOUND' },
  builds: { id: 'build_id', unknown: 'BUILD_NOT_FOUND' },
  sites: { id: 'site_id', unknown: 'SITE_NOT_FOUND' },
} as const satisfies Record<string, { id: string; unknown: ErrorCode }>

/** Throws GAME_NOT_FOUND. */
export async function renameGame(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  display_name: string,
): Promise<void> {
  await requireGame(ctx, caller, game_id)
  await changes(ctx, { game_id }, async (trx) => {
    const game = trx.selectFrom('games').select('display_name').where('game_id', '=', game_id)
    const before = await game.forNoKeyUpdate().executeTakeFirstOrThrow(() => new ApiError('GAME_NOT_FOUND'))
    await trx.updateTable('games').set({ display_name }).where('game_id', '=', game_id).execute()
    return { before, after: { display_name } }
  })
}

/** Throws GAME_NOT_FOUND, the not-found code of the thing, or NAME_TAKEN (versions). */
export async function renameRecord(
  ctx: ChangeContext,
  caller: Caller,
  table: keyof typeof THINGS,
  record: { game_id: string; id: string },
  display_name: string,
): Promise<void> {
  await requireGame(ctx, caller, record.game_id)
  const { id, unknown } = THINGS[table]
  const taken = notUnique(['display_name'], `The game has one called ${JSON.stringify(display_name)} already.`)
  const { game_id } = record
  const namespace = table === 'namespaces' ? { namespace_id: record.id } : {}
  await orNameTaken(taken, () =>
    changes(ctx, { game_id, ...namespace }, async (trx) => {
      const row = trx.selectFrom(table).select('display_name').where('game_id', '=', game_id)
      const before = await row
        .where(id as never, '=', record.id as never)
        .forNoKeyUpdate()
        .executeTakeFirstOrThrow(() => new ApiError(unknown))
      await trx
        .updateTable(table)
        .set({ display_name })
        .where(id as never, '=', record.id as never)
        .execute()
      return { before, after: { [id]: record.id, display_name } }
    }),
  )
}
