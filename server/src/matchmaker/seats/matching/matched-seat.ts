// A seat by the rules of a game mode: the request gets it at once, or waits for players who fit. The wait belongs to the call. A
// call with an Idempotency-Key that returns without a match may come again: it keeps its place and its age.
import { ApiError } from '@musterhost/contract'
import { newId } from '../../../ids.ts'
import { phase } from '../../../observe/ray.ts'
import type { Decision, SeatTaken } from '../../book/commands.ts'
import { progressOf } from '../../book/matching/find-match.ts'
import type { TicketCall } from '../../book/matching/ticket.ts'
import type { Book } from '../../book/state.ts'
import type { MatchWaitEnd } from '../../shards/match-waiters.ts'
import { continuesElsewhere } from '../../shards/shard-moved.ts'
import type { Patience } from '../../shards/waiters.ts'
import type { CaptchaGate } from '../captcha/captcha.ts'
import { commitSeat } from '../commit-seat.ts'
import type { MatchmakerContext, Seat } from '../context.ts'
import { chooseMatch, freshIds, type MatchTerms } from '../decisions.ts'
import type { SeatRequest } from '../request.ts'
import type { SeatSteps } from '../steps.ts'
import { matchWaitOf, waitingMetadata } from './match-wait.ts'
import type { MatchingRequest } from './matching-request.ts'
import { verifiedAttributes } from './verified-attributes.ts'

/** Throws MATCHMAKER_WAITING when no match is complete in time, and the refusals of a find. */
export async function takeMatchedSeat(
  ctx: MatchmakerContext,
  request: SeatRequest,
  captcha: CaptchaGate | null,
  steps: SeatSteps,
  patience: Patience,
): Promise<Seat> {
  const matching = request.matching!
  steps.attributes ??= await verifiedAttributes(ctx, request)
  const ids = { ...freshIds(request, ctx.now()), ...(steps.ticket_id === null ? {} : { player_id: steps.ticket_id }) }
  const call: TicketCall = { terms: termsOf(ctx, request, matching) }
  const found = await enter(ctx, request, { captcha, ids, call, attributes: steps.attributes })
  if ('seat' in found) {
    const is_new = found.seat.player_id === ids.player_id
    if (is_new) noteWait(ctx, request, 0)
    return { ...found.seat, is_new }
  }
  const { ticket_id } = found
  steps.ticket_id = ticket_id
  const deadline_ms = Math.min(patience.deadline_ms, ctx.elapsed() + matching.wait_ms)
  return waitForMatch(ctx, request, ticket_id, call, { ...patience, deadline_ms })
}

function termsOf(
  ctx: MatchmakerContext,
  { asked }: SeatRequest,
  { rules, plans }: MatchingRequest,
): TicketCall['terms'] {
  return { rules, plans, lobby_count_max: asked.request.lobby_count_max, lobby_id: newId(ctx.now()) }
}

/** A call whose decision was not committed waits for nothing. */
async function enter(ctx: MatchmakerContext, request: SeatRequest, entering: MatchTerms) {
  const { namespace_id, ray } = request.requester
  try {
    const found = await commitSeat(ctx, request, entering.captcha, chooseMatch(request, entering))
    if ('ticket_id' in found) phase(ray, 'wait')
    return found
  } catch (error) {
    detach(ctx, namespace_id, entering.ids.player_id, entering.call, false)
    throw error
  }
}

async function waitForMatch(
  ctx: MatchmakerContext,
  request: SeatRequest,
  ticket_id: string,
  call: TicketCall,
  patience: Patience,
): Promise<Seat> {
  const { namespace_id } = request.requester
  // Without a ticket the match is made already: another request of the same commit completed it.
  const create_ms = ctx.books.book(namespace_id)?.matching.get(ticket_id)?.create_ms ?? ctx.books.nowMs()
  let end: MatchWaitEnd
  try {
    end = await ctx.books.waitForMatch(namespace_id, ticket_id, call, patience)
  } catch (error) {
    detach(ctx, namespace_id, ticket_id, call, !continuesElsewhere(error))
    throw error
  }
  const has_hung_up = patience.isGone()
  const book = ctx.books.book(namespace_id)
  const progress = book === undefined ? null : progressOf(book, ticket_id, ctx.books.nowMs())
  detach(ctx, namespace_id, ticket_id, call, has_hung_up)
  const is_kept = request.asked.request.seat_key !== null
  const seat = await ctx.books.commit(namespace_id, (of_shard, { now_ms }) =>
    endOfCall(of_shard, ticket_id, is_kept, now_ms),
  )
  if (seat !== null) {
    noteWait(ctx, request, ctx.books.nowMs() - create_ms)
    return { ...seat, is_new: true }
  }
  const match_wait = progress === null ? null : matchWaitOf(request.matching!.rules, progress, usualWait(ctx, request))
  request.log.recordMatchWait(match_wait)
  const metadata = match_wait === null ? { reason: end } : waitingMetadata(match_wait)
  throw new ApiError('MATCHMAKER_WAITING', metadata, { retry_after_s: 1 })
}

function noteWait(ctx: MatchmakerContext, { requester, matching }: SeatRequest, wait_ms: number): void {
  ctx.match_waits.add(requester.namespace_id, wait_ms)
  ctx.recent_waits.add(requester.namespace_id, matching!.game_mode, wait_ms, ctx.books.nowMs())
}

function usualWait(ctx: MatchmakerContext, { requester, matching }: SeatRequest): number | null {
  return ctx.recent_waits.median(requester.namespace_id, matching!.game_mode, ctx.books.nowMs())
}

/** The seat, when the match was made meanwhile. A ticket that no call can come back to ends. */
function endOfCall(book: Book, ticket_id: string, is_kept: boolean, now_ms: number): Decision<SeatTaken | null> {
  const player = book.players.get(ticket_id)
  if (player !== undefined) {
    const is_ready = book.lobbies.get(player.lobby_id)?.ready_ms != null
    return { changes: [], result: { lobby_id: player.lobby_id, player_id: ticket_id, is_ready } }
  }
  const ticket = book.matching.get(ticket_id)
  if (ticket === undefined || is_kept || ticket.calls.size > 0) return { changes: [], result: null }
  return { changes: [{ kind: 'ticket_ended', player_id: ticket_id, ms: now_ms, reason: 'withdrawn' }], result: null }
}

function detach(
  ctx: MatchmakerContext,
  namespace_id: string,
  ticket_id: string,
  call: TicketCall,
  has_hung_up: boolean,
) {
  ctx.books.book(namespace_id)?.matching.detach(ticket_id, call, ctx.books.nowMs(), has_hung_up)
}
