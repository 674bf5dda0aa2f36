// The lobby whose server calls: its game mode, and whether the version that it runs has ratings.
import { ApiError } from '@musterhost/contract'
import { sql } from 'kysely'
import type { Context } from '../context.ts'
import type { CallerOf } from '../tokens/caller.ts'

export type RatedLobby = { namespace_id: string; game_mode: string }

/** Throws RATING_DISABLED, or TOKEN_REVOKED when the lobby and its process have ended: a stopping server may still report. */
export async function requireRatedLobby(ctx: Context, caller: CallerOf<'lobby'>): Promise<RatedLobby> {
  const { namespace_id, game_mode, has_ratings } = await findLobby(ctx, caller)
  if (has_ratings) return { namespace_id, game_mode }
  const message = `The game mode ${game_mode} has no ratings in the version that the lobby runs. Add "ratings": {} to it.`
  throw new ApiError('RATING_DISABLED', { game_mode }, { message })
}

async function findLobby(
  ctx: Context,
  { lobby_id }: CallerOf<'lobby'>,
): Promise<RatedLobby & { has_ratings: boolean }> {
  return ctx.db
    .selectFrom('lobbies')
    .leftJoin('lobby_runs', 'lobby_runs.lobby_id', 'lobbies.lobby_id')
    .leftJoin('versions', 'versions.version_id', 'lobbies.version_id')
    .where('lobbies.lobby_id', '=', lobby_id)
    .where((is) =>
      is.or([
        is('stop_ts', 'is', null),
        is.and([is('lobby_runs.lobby_id', 'is not', null), is('lobby_runs.exit_ts', 'is', null)]),
      ]),
    )
    .select([
      'lobbies.namespace_id',
      'lobbies.game_mode',
      sql<boolean>`versions.config #> array['matchmaker', 'game_modes', lobbies.game_mode, 'ratings'] is not null`.as(
        'has_ratings',
      ),
    ])
    .executeTakeFirstOrThrow(() => new ApiError('TOKEN_REVOKED', {}, { message: 'The lobby of this token has ended.' }))
}
