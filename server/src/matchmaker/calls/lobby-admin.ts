// What developers do to running lobbies: stop one, remove a player, drain a version. The HTTP operation has checked that the
// caller may manage the game; lobbies of other games are not found. Each is a command of a book, and durable when it returns.
import { ApiError, type listMatchmakerLobbyPlayers, type ResponseOf } from '@musterhost/contract'
import { type ChangeContext, command } from '../../audit/changes.ts'
import * as decide from '../book/decide.ts'
import { type Lobby, type Player, seatsIn } from '../book/lobby.ts'
import type { MatchmakerContext } from '../seats/context.ts'

type AdminContext = MatchmakerContext & Pick<ChangeContext, 'audit'>
type OfGame = { game_id: string }
type OfLobby = OfGame & { lobby_id: string }

/** `did_remove`: the lobby was running. Throws LOBBY_NOT_FOUND. */
export async function stopLobby(ctx: AdminContext, params: OfLobby): Promise<{ did_remove: boolean }> {
  const { lobby_id } = params
  const namespace_id = await namespaceOfLobby(ctx, params)
  // Before the audit event.
  ctx.books.requireHere(namespace_id)
  const change = { before: { lobby_id }, after: {} }
  const did_remove = await command(ctx, { game_id: params.game_id, namespace_id }, change, () =>
    ctx.books.commit(namespace_id, (book, { now_ms }) => decide.stop(book, lobby_id, 'requested', now_ms)),
  )
  return { did_remove }
}

/** Throws LOBBY_NOT_FOUND. */
export async function playersOfLobby(
  ctx: MatchmakerContext,
  params: OfLobby,
): Promise<ResponseOf<typeof listMatchmakerLobbyPlayers>> {
  const namespace_id = await namespaceOfLobby(ctx, params)
  const players = await ctx.books.commit(namespace_id, (book) => ({
    changes: [],
    result: seatsOf(book.lobbies.get(params.lobby_id)).map(({ player_id, create_ms, connect_ms, is_spectator }) => ({
      player_id,
      create_ts: new Date(create_ms).toISOString(),
      ...(connect_ms === null ? {} : { connect_ts: new Date(connect_ms).toISOString() }),
      ...(is_spectator ? { role: 'spectator' as const } : {}),
    })),
  }))
  return { players }
}

function seatsOf(lobby: Lobby | undefined): Player[] {
  return lobby === undefined ? [] : [...seatsIn(lobby)]
}

/** `did_remove`: the player was in the lobby. Throws LOBBY_NOT_FOUND. */
export async function removePlayer(
  ctx: AdminContext,
  params: OfLobby & { player_id: string },
): Promise<{ did_remove: boolean }> {
  const namespace_id = await namespaceOfLobby(ctx, params)
  // Before the audit event.
  ctx.books.requireHere(namespace_id)
  const change = { before: { player_id: params.player_id, lobby_id: params.lobby_id }, after: {} }
  const did_remove = await command(ctx, { game_id: params.game_id, namespace_id }, change, () =>
    ctx.books.commit(namespace_id, (book, { now_ms }) => decide.expel(book, params, now_ms)),
  )
  return { did_remove }
}

/** Throws NAMESPACE_NOT_FOUND, VERSION_NOT_FOUND, or QUOTA_REACHED when too many versions drain. */
export async function drainVersion(
  ctx: AdminContext,
  { game_id, namespace_id, version_id }: OfGame & { namespace_id: string; version_id: string },
  is_draining: boolean,
): Promise<Record<string, never>> {
  if ((await ctx.namespaces.get(namespace_id)).game_id !== game_id) throw new ApiError('NAMESPACE_NOT_FOUND')
  await requireVersion(ctx, game_id, version_id)
  ctx.books.requireHere(namespace_id)
  const change = { before: {}, after: { version_id, is_draining } }
  await command(ctx, { game_id, namespace_id }, change, async () => {
    await ctx.books.commit(namespace_id, (book) => decide.setDraining(book, version_id, is_draining))
    return true
  })
  return {}
}

/** A caller has a lobby's id from a response or a table, so the lobby's row exists. Throws LOBBY_NOT_FOUND. */
async function namespaceOfLobby(ctx: MatchmakerContext, { game_id, lobby_id }: OfLobby): Promise<string> {
  const row = await ctx.db
    .selectFrom('lobbies')
    .innerJoin('namespaces', 'namespaces.namespace_id', 'lobbies.namespace_id')
    .where('lobby_id', '=', lobby_id)
    .where('game_id', '=', game_id)
    .select('namespaces.namespace_id')
    .executeTakeFirst()
  if (row === undefined) throw new ApiError('LOBBY_NOT_FOUND')
  return row.namespace_id
}

/** Throws VERSION_NOT_FOUND. */
export async function requireVersion(
  { db }: Pick<AdminContext, 'db'>,
  game_id: string,
  version_id: string,
): Promise<void> {
  const version = await db
    .selectFrom('versions')
    .where('version_id', '=', version_id)
    .where('game_id', '=', game_id)
    .select('version_id')
    .executeTakeFirst()
  if (version === undefined) throw new ApiError('VERSION_NOT_FOUND')
}
