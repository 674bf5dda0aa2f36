// The seats that a player has already. A read: it waits for the commit under way, so it returns no seat that is then undone.
import { ApiError, type BodyOf, type listOwnSeats, type ResponseOf } from '@musterhost/contract'
import { type Prepared, prepare, preparedText } from '../../text/json-text.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import type { Player } from '../book/lobby.ts'
import type { Book } from '../book/state.ts'
import { seatAnswer } from '../seats/answer.ts'
import type { MatchmakerContext } from '../seats/context.ts'
import { playerTokenOf } from './players.ts'

/** Seats of one response. */
const SEATS_MAX = 16

type OwnSeat = Pick<Player, 'player_id' | 'lobby_id'> & { is_connected: boolean; expire_ms: number }
type Owner = { player_id: string | null; identity_id: string | null }

/** None without an identity and a player token. Throws PLAYER_TOKEN_INVALID and NAMESPACE_NOT_FOUND. */
export async function ownSeats(
  ctx: MatchmakerContext,
  caller: CallerOf<'namespace'>,
  { player_token }: BodyOf<typeof listOwnSeats>,
): Promise<Prepared<ResponseOf<typeof listOwnSeats>>> {
  const { identity_id } = caller
  const { namespace_id } = await ctx.namespaces.get(caller.namespace_id)
  const player_id = player_token === undefined ? null : playerIn(ctx, namespace_id, player_token)
  const seats = await ctx.books.commit(namespace_id, (book, { now_ms }) => ({
    changes: [],
    result: openSeats(book, { player_id, identity_id }, now_ms),
  }))
  const texts: string[] = []
  for (const { player_id, lobby_id, is_connected, expire_ms } of seats) {
    const book = ctx.books.book(namespace_id)
    // Forgotten while other seats were prepared.
    if (book?.players.has(player_id) !== true || !book.lobbies.has(lobby_id)) continue
    const seat = preparedText(await seatAnswer(ctx, namespace_id, { lobby_id, player_id, is_ready: true }))!
    const state = is_connected ? { is_connected } : { is_connected, expire_ts: new Date(expire_ms).toISOString() }
    texts.push(`${JSON.stringify(state).slice(0, -1)},${seat.slice(1)}`)
  }
  return prepare(`{"seats":[${texts.join()}]}`)
}

/** The token of another namespace is no token here. */
function playerIn(ctx: MatchmakerContext, namespace_id: string, player_token: string): string {
  const token = playerTokenOf(ctx, player_token)
  if (token.namespace_id !== namespace_id) throw new ApiError('PLAYER_TOKEN_INVALID')
  return token.player_id
}

/** The seats in ready lobbies that have not ended: that of the token, then those of the identity, the newest first. */
function openSeats(book: Book, { player_id, identity_id }: Owner, now_ms: number): OwnSeat[] {
  const presented = player_id === null ? undefined : book.players.get(player_id)
  const others = identity_id === null ? [] : book.seatsOf(identity_id)
  const newest = [...others].sort((a, b) => b.create_ms - a.create_ms || (a.player_id < b.player_id ? 1 : -1))
  return [...new Set(presented === undefined ? newest : [presented, ...newest])]
    .filter((player) => player.remove_ms === null && book.lobby(player.lobby_id).ready_ms !== null)
    .map(({ player_id, lobby_id, connect_ms, deadline_ms }) => {
      return { player_id, lobby_id, is_connected: connect_ms !== null, expire_ms: deadline_ms }
    })
    .filter(({ is_connected, expire_ms }) => is_connected || expire_ms > now_ms)
    .slice(0, SEATS_MAX)
}
