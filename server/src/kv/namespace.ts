// Determines the namespace of a call: the one of the token, or the one that the call names.
import { ApiError, validationError } from '@musterhost/contract'
import { sql } from 'kysely'
import type { Context } from '../context.ts'
import type { Caller } from '../tokens/caller.ts'

/** Throws unless the caller may act for the game. Throws NAMESPACE_NOT_FOUND when the caller may not know of the game. */
export type RequireGame = (game_id: string) => Promise<void>

/**
 * Returns the namespace when its version has `kv` and the caller may use it. Throws VALIDATION_ERROR, NAMESPACE_NOT_FOUND,
 * API_FORBIDDEN (its version has no `kv`), or TOKEN_REVOKED for a lobby that has ended.
 */
export async function requireKvNamespace(
  ctx: Context,
  caller: Caller,
  named_id: string | undefined,
  requireGame: RequireGame,
): Promise<string> {
  const own_id = 'namespace_id' in caller ? caller.namespace_id : undefined
  const namespace_id = own_id ?? named_id
  if (namespace_id === undefined) throw missing()
  if (named_id !== undefined && named_id !== namespace_id) throw new ApiError('NAMESPACE_NOT_FOUND')
  const row = await ctx.db
    .selectFrom('namespaces')
    .innerJoin('versions', 'versions.version_id', 'namespaces.version_id')
    .where('namespace_id', '=', namespace_id)
    .select(['namespaces.game_id', sql<boolean>`versions.config->'kv' is not null`.as('has_kv')])
    .executeTakeFirstOrThrow(() => new ApiError('NAMESPACE_NOT_FOUND'))
  if (own_id === undefined) await requireGame(row.game_id)
  if (caller.kind === 'lobby') await requireLiving(ctx, caller.lobby_id)
  if (row.has_kv) return namespace_id
  const message = 'The version on this namespace has no kv section, so it keeps no entries.'
  throw new ApiError('API_FORBIDDEN', {}, { message })
}

/** A lobby's token ends with its process, not with the lobby, so that a stopping server may still write entries. */
async function requireLiving(ctx: Context, lobby_id: string): Promise<void> {
  await ctx.db
    .selectFrom('lobbies')
    .leftJoin('lobby_runs', 'lobby_runs.lobby_id', 'lobbies.lobby_id')
    .where('lobbies.lobby_id', '=', lobby_id)
    .where((is) =>
      is.or([
        is('stop_ts', 'is', null),
        is.and([is('lobby_runs.lobby_id', 'is not', null), is('lobby_runs.exit_ts', 'is', null)]),
      ]),
    )
    .select('lobbies.lobby_id')
    .executeTakeFirstOrThrow(() => new ApiError('TOKEN_REVOKED', {}, { message: 'The lobby of this token has ended.' }))
}

function missing(): ApiError {
  const message = 'namespace_id is missing: this token does not stand for a namespace.'
  return validationError([{ path: ['namespace_id'], reason: 'required', message }])
}
