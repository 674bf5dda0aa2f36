// What the server of a lobby asks and does about its own lobby, beside what lobbies.ts has.
import { createHash } from 'node:crypto'
import { ApiError, type BodyOf, type changeOwnLobby, type ResponseOf, type watchOwnLobby } from '@musterhost/contract'
import type { CallerOf } from '../../tokens/caller.ts'
import * as decide from '../book/decide.ts'
import { type Lobby, type Player, seatsIn } from '../book/lobby.ts'
import { changeOwn, setPlayers } from '../book/own-lobby.ts'
import { isRestarting, lastAnnouncement } from '../book/schedule-rules.ts'
import type { Book } from '../book/state.ts'
import type { MatchmakerContext } from '../seats/context.ts'
import { checkTags } from '../seats/request.ts'
import { readPlayerToken } from './players.ts'

/** The label of player tokens. No id begins so. */
const TOKEN_LABEL = 'player.'
/** A watch ends after this, changed or not. */
const WATCH_MS = 40_000

type OwnLobby = ResponseOf<typeof watchOwnLobby>
type Server = CallerOf<'lobby'>

/** With a watch_index: waits until the lobby differs from what had this index. Throws MATCHMAKER_LOBBY_STOPPED. */
export async function ownLobby(
  ctx: MatchmakerContext,
  { namespace_id, lobby_id }: Server,
  watch_index: string | undefined,
  isGone: () => boolean,
): Promise<OwnLobby> {
  const { books } = ctx
  const deadline_ms = ctx.elapsed() + WATCH_MS
  for (;;) {
    const woken = watch_index === undefined ? null : books.lobby_watch.next(lobby_id, { deadline_ms, isGone })
    const seen = await books.commit(namespace_id, (book) => ({ changes: [], result: viewOf(ctx, book, lobby_id) }))
    if (seen === null) throw new ApiError('MATCHMAKER_LOBBY_STOPPED')
    const index = createHash('sha256').update(JSON.stringify(seen)).digest('base64url')
    const is_over = books.isWaitingOver() || deadline_ms <= ctx.elapsed() || isGone()
    if (index !== watch_index || woken === null || is_over) return { ...seen, watch: { index } }
    await woken
  }
}

export async function reportPlayers(ctx: MatchmakerContext, server: Server, player_ids: readonly string[]) {
  const { namespace_id, lobby_id } = server
  const ids = new Map(player_ids.map((sent) => [sent, playerIdOf(ctx, sent)]))
  const unknown = await ctx.books.commit(namespace_id, (book, { now_ms }) =>
    setPlayers(book, { lobby_id, player_ids: [...ids.values()] }, now_ms),
  )
  const lost = new Set(unknown)
  return { unknown_player_ids: [...ids].filter(([, id]) => lost.has(id)).map(([sent]) => sent) }
}

/** The id in a valid player token. Every other text stands for itself. */
function playerIdOf(ctx: MatchmakerContext, sent: string): string {
  return sent.startsWith(TOKEN_LABEL) ? (readPlayerToken(ctx, sent)?.player_id ?? sent) : sent
}

export async function changeOwnLobbyOf(
  ctx: MatchmakerContext,
  { namespace_id, lobby_id }: Server,
  { keep_ms, tags }: BodyOf<typeof changeOwnLobby>,
): Promise<ResponseOf<typeof changeOwnLobby>> {
  if (tags !== undefined) await requireTags(ctx, { namespace_id, lobby_id }, tags)
  const asked = { lobby_id, ...(keep_ms !== undefined && { keep_ms }), ...(tags !== undefined && { tags }) }
  const { keep_until_ms } = await ctx.books.commit(namespace_id, (book, { now_ms }) => changeOwn(book, asked, now_ms))
  return keep_until_ms === null ? {} : { keep_until_ts: new Date(keep_until_ms).toISOString() }
}

async function requireTags(
  ctx: MatchmakerContext,
  { namespace_id, lobby_id }: Pick<Server, 'namespace_id' | 'lobby_id'>,
  tags: Readonly<Record<string, string>>,
): Promise<void> {
  const lobby = ctx.books.book(namespace_id)?.lobbies.get(lobby_id)
  const mode = lobby && (await ctx.namespaces.gameModes(lobby.version_id)).get(lobby.game_mode)
  if (mode === undefined) throw new ApiError('MATCHMAKER_LOBBY_STOPPED')
  checkTags([mode], tags)
}

export async function stopOwn(ctx: MatchmakerContext, { namespace_id, lobby_id }: Server) {
  await ctx.books.commit(namespace_id, (book, { now_ms }) => decide.stop(book, lobby_id, 'requested', now_ms))
  return {}
}

/** Null: it has stopped. */
function viewOf({ books }: MatchmakerContext, book: Book, lobby_id: string): Omit<OwnLobby, 'watch'> | null {
  const lobby = book.lobbies.get(lobby_id)
  if (lobby === undefined || lobby.stop_ms !== null) return null
  const is_node_draining = lobby.node_id !== null && books.capacity.isDraining(lobby.node_id)
  const announcement = lastAnnouncement(book.schedule_rules, lobby)
  return {
    lobby_id,
    is_closed: lobby.is_closed,
    is_draining: is_node_draining || book.isDraining([lobby]) || isRestarting(book.schedule_rules, lobby),
    ...(announcement !== undefined && {
      announcement: { text: announcement.text, ts: new Date(announcement.ms).toISOString() },
    }),
    seats: inOrder(lobby).map(seatOf),
  }
}

/** The order of the map differs after a restart, and would look like a change. */
function inOrder(lobby: Lobby): Player[] {
  return [...seatsIn(lobby)].sort(
    (a, b) => Number(a.is_spectator) - Number(b.is_spectator) || (a.player_id < b.player_id ? -1 : 1),
  )
}

function seatOf({ player_id, connect_ms, create_ms, is_spectator, match }: Player): OwnLobby['seats'][number] {
  const { team = null, attributes } = match ?? {}
  return {
    player_id,
    is_connected: connect_ms !== null,
    create_ts: new Date(create_ms).toISOString(),
    ...(is_spectator && { role: 'spectator' as const }),
    ...(team !== null && { team }),
    ...(attributes !== undefined && {
      attributes: structuredClone(attributes) as Record<string, number | string | string[]>,
    }),
  }
}
