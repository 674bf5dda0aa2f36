// The desk: the story of a request for a seat, from who asks to a token in his hand. Whatever fails after a seat was
// taken gives the seat back.
import { ApiError, type BodyOf, type createLobby, type findLobby, type joinLobby } from '@muster/contract'
import type { CallerOf } from '../caller.ts'
import type { Context } from '../context.ts'
import { newId } from '../ids.ts'
import type { SeatTaken, SeatWish } from './book.ts'
import type { Books } from './books.ts'
import type { NamespaceRecord, Namespaces } from './namespaces.ts'
import { type SeatAnswer, seatAnswer } from './seat.ts'
import { createWish, findWish } from './wishes.ts'

/** A find whose lobby dies while it starts chooses again, within its deadline. */
const PLACEMENT_ATTEMPTS_MAX = 3
/** find, join and create wait for a starting lobby at most this long. */
export const START_WAIT_MS = 50_000

export type Desk = { ctx: Context; books: Books; namespaces: Namespaces; open_requests: Map<string, symbol> }

/** Who asks, as the HTTP door saw it. */
export type Visitor = {
  caller: CallerOf<'namespace'>
  client: string
  idempotency_key: string | null
  /** True once nobody waits for the answer any more. */
  isGone: () => boolean
}

type Take = () => Promise<SeatTaken>

export async function findSeat(desk: Desk, visitor: Visitor, body: BodyOf<typeof findLobby>): Promise<SeatAnswer> {
  const namespace = await desk.namespaces.get(visitor.caller.namespace_id)
  const wish = { ...findWish(desk.ctx.config, namespace, body), ...seatWish(namespace, visitor, 'find') }
  // Captcha, client classes and the game's own verification belong here, before a seat is taken.
  return takeSeat(desk, visitor, wish, PLACEMENT_ATTEMPTS_MAX, () =>
    desk.books.commit(namespace.namespace_id, (book, now_ms) => book.find(wish, freshIds(now_ms), now_ms)),
  )
}

export async function joinSeat(desk: Desk, visitor: Visitor, body: BodyOf<typeof joinLobby>): Promise<SeatAnswer> {
  const namespace = await desk.namespaces.get(visitor.caller.namespace_id)
  const lobby = desk.books.lobby(namespace.namespace_id, body.lobby_id)
  if (lobby !== undefined) {
    const game_modes = await desk.namespaces.gameModes(lobby.version_id)
    if (game_modes.get(lobby.game_mode)?.join_enabled === false) throw new ApiError('MATCHMAKER_JOIN_DISABLED')
  }
  const wish = { lobby_id: body.lobby_id, ...seatWish(namespace, visitor, 'join') }
  return takeSeat(desk, visitor, wish, 1, () =>
    desk.books.commit(namespace.namespace_id, (book, now_ms) => book.join(wish, freshIds(now_ms), now_ms)),
  )
}

export async function createSeat(desk: Desk, visitor: Visitor, body: BodyOf<typeof createLobby>): Promise<SeatAnswer> {
  const namespace = await desk.namespaces.get(visitor.caller.namespace_id)
  const wish = { plan: createWish(desk.ctx.config, namespace, body), ...seatWish(namespace, visitor, 'create') }
  return takeSeat(desk, visitor, wish, 1, () =>
    desk.books.commit(namespace.namespace_id, (book, now_ms) => book.create(wish, freshIds(now_ms), now_ms)),
  )
}

/** Takes a seat, waits until its lobby is ready, and answers it; or gives it back. */
async function takeSeat(
  desk: Desk,
  visitor: Visitor,
  wish: SeatWish,
  attempts_max: number,
  take: Take,
): Promise<SeatAnswer> {
  const { namespace_id } = visitor.caller
  const deadline_ms = performance.now() + START_WAIT_MS
  const request: OpenRequest = { namespace_id, key: requestKey(namespace_id, wish), mark: Symbol('request') }
  if (request.key !== null) desk.open_requests.set(request.key, request.mark)
  try {
    for (let attempt = 0; attempt < attempts_max; attempt++) {
      const seat = await take()
      try {
        const wait_ms = deadline_ms - performance.now()
        const end = seat.is_ready ? 'ready' : await desk.books.waitUntilReady(namespace_id, seat, wait_ms)
        if (end === 'gone') continue
        if (end === 'ready' && !visitor.isGone()) return await seatAnswer(desk, namespace_id, seat)
        throw new ApiError('MATCHMAKER_LOBBY_NOT_STARTED', {}, { retry_after_s: 1 })
      } catch (error) {
        await giveBack(desk, request, seat)
        throw error
      }
    }
    throw new ApiError('MATCHMAKER_LOBBY_STOPPED')
  } finally {
    if (request.key !== null && isLatest(desk, request)) desk.open_requests.delete(request.key)
  }
}

type OpenRequest = { namespace_id: string; key: string | null; mark: symbol }

/** The same client and key in another namespace is another request. */
function requestKey(namespace_id: string, wish: SeatWish): string | null {
  return wish.seat_key === null ? null : `${namespace_id} ${wish.seat_key}`
}

function isLatest(desk: Desk, request: OpenRequest): boolean {
  return request.key === null || desk.open_requests.get(request.key) === request.mark
}

/** Unless a repetition of the same request has come in meanwhile: then the seat is its seat. */
async function giveBack(desk: Desk, request: OpenRequest, seat: SeatTaken): Promise<void> {
  if (!isLatest(desk, request)) return
  await desk.books.commit(request.namespace_id, (book, now_ms) => book.release(seat.player_id, now_ms))
}

/** The key is good for one action of one client: nobody can ask for another's seat with it. */
function seatWish(namespace: NamespaceRecord, visitor: Visitor, action: 'find' | 'join' | 'create'): SeatWish {
  const { client, idempotency_key } = visitor
  return {
    client,
    seat_key: idempotency_key === null ? null : `${action} ${client} ${idempotency_key}`,
    client_players_max: namespace.max_players_per_client,
    lobby_count_max: namespace.lobby_count_max,
  }
}

function freshIds(now_ms: number) {
  return { lobby_id: newId(now_ms), player_id: newId(now_ms) }
}
