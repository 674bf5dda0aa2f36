// Removes ratings for a developer, with an audit event. A player without a rating has that of a new player.
import { type BodyOf, type resetRatings as resetOperation, validationError } from '@musterhost/contract'
import { sql } from 'kysely'
import { type ChangeContext, changes } from '../audit/changes.ts'
import { ratingsLock } from './results.ts'

/** Time of the transaction: a game mode may have millions of ratings. */
const RESET_MS_MAX = 120_000

/** Throws VALIDATION_ERROR for a body that names neither an identity nor a game mode. */
export async function resetRatings(
  ctx: ChangeContext,
  { namespace_id, identity_id, game_mode }: BodyOf<typeof resetOperation>,
): Promise<{ removed_count: number }> {
  if (identity_id === undefined && game_mode === undefined) {
    const message = 'identity_id or game_mode is missing: send one of them, or both.'
    throw validationError([{ path: ['game_mode'], reason: 'required', message }])
  }
  const { after } = await changes(ctx, { namespace_id }, async (trx) => {
    await sql`select set_config('statement_timeout', ${String(RESET_MS_MAX)}, true)`.execute(trx)
    if (identity_id === undefined) {
      // Results of the game mode end before: each counts fully before the reset, or fully after it.
      await sql`
        select pg_advisory_xact_lock(hashtextextended(${ratingsLock(namespace_id, game_mode!)}, 0))`.execute(trx)
    }
    const { numDeletedRows } = await trx
      .deleteFrom('ratings')
      .where('namespace_id', '=', namespace_id)
      .$if(game_mode !== undefined, (query) => query.where('game_mode', '=', game_mode!))
      .$if(identity_id !== undefined, (query) => query.where('identity_id', '=', identity_id!))
      .executeTakeFirst()
    const removed_count = Number(numDeletedRows)
    return { before: { identity_id, game_mode }, after: { removed_count } }
  })
  return after
}
