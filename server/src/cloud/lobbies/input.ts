// Lines that developers write to the standard input of a lobby's server.
import { ApiError, gameModesOf, type VersionConfig } from '@musterhost/contract'
import { type ChangeContext, command } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import type { Caller } from '../../tokens/caller.ts'
import { requireLobby } from './logs.ts'

/** Resolves when the server's pipe has taken the line. Throws the errors of `writeLobbyInput`. */
export async function writeLobbyInput(
  ctx: ChangeContext,
  caller: Caller,
  { game_id, lobby_id }: { game_id: string; lobby_id: string },
  text: string,
): Promise<Record<string, never>> {
  await requireLobby(ctx, caller, game_id, lobby_id)
  const namespace_id = await requireAllowed(ctx, lobby_id)
  const note = `input by ${await nameOf(ctx, caller)}: ${text}`
  const change = { before: {}, after: { lobby_id, text } }
  await command(ctx, { game_id, namespace_id }, change, async () => {
    const result = await ctx.lobby_logs.writeInput(lobby_id, { line: text, note })
    if (result === 'not_running') throw new ApiError('LOBBY_NOT_RUNNING')
    if (result === 'not_read') throw new ApiError('LOBBY_INPUT_NOT_READ')
    return true
  })
  return {}
}

/** Returns the lobby's namespace. */
async function requireAllowed({ db }: Context, lobby_id: string): Promise<string> {
  const row = await db
    .selectFrom('lobbies')
    .innerJoin('versions', 'versions.version_id', 'lobbies.version_id')
    .where('lobby_id', '=', lobby_id)
    .select(['namespace_id', 'game_mode', 'config'])
    .executeTakeFirst()
  const mode = row && gameModesOf(row.config as VersionConfig).get(row.game_mode)
  if (row === undefined || mode?.standard_input !== true) throw new ApiError('LOBBY_INPUT_DISABLED')
  return row.namespace_id
}

/** The caller, for readers of the lobby's log. */
async function nameOf({ db }: Context, caller: Caller): Promise<string> {
  if (caller.kind === 'admin') return `administrator ${caller.name}`
  if (caller.kind !== 'user') return 'a cloud token'
  const user = await db
    .selectFrom('users')
    .select('display_name')
    .where('user_id', '=', caller.user_id)
    .executeTakeFirst()
  return user?.display_name ?? caller.user_id
}
