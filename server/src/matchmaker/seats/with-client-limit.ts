// The decisions on a seat: take it, hold it, or turn a hold into it. Each runs inside its shard (shards/shard.ts), so
// between the limit, the captcha, the choice of a lobby and the record nothing else can change the book.
//
// How many players one client may have in a namespace is the least of the namespace's limit and the limits of all classes
// that the client's address belongs to. 0 lets nobody in.
import { ADDRESS_CLASSES, type AddressFacts } from '../../addresses/ip-intelligence.ts'
import { newId } from '../../ids.ts'
import { phase } from '../../observe/ray.ts'
import type { Decision, Env, FreshIds, Held, HoldRequest, SeatTaken } from '../book/commands.ts'
import * as decide from '../book/decide.ts'
import { PARTY_MEMBERS_MAX } from '../book/parties.ts'
import type { Book } from '../book/state.ts'
import type { ClientLimits, LimitName, NamespaceRecord } from '../watch/namespaces.ts'
import { type CaptchaGate, decideBehindCaptcha } from './captcha/captcha.ts'
import type { MatchmakerContext, Seat } from './context.ts'
import type { Asked, RequestLimits, SeatRequest } from './request.ts'

/** What a decision is made under. `captcha`: null when none is required, or when it was counted before. */
export type Terms = { limits: NamespaceRecord; captcha: CaptchaGate | null }

/** The strictest limit, and its number. */
type ClientLimit = { limit: LimitName; players_max: number }

/** Takes a seat, in an open lobby or in a new one. */
export function decideSeat(
  ctx: MatchmakerContext,
  request: SeatRequest,
  terms: Terms,
  book: Book,
  env: Env,
): Decision<Seat> {
  return withClientLimit(ctx, request, terms, book, env, (limits) => {
    const ids = freshIds(request, env.now_ms)
    const decision = chooseSeat(request.asked, limits, ids, book, env)
    if ('refused' in decision) return decision
    return { changes: decision.changes, result: { ...decision.result, is_new: decision.changes.length > 0 } }
  })
}

function chooseSeat(asked: Asked, limits: RequestLimits, ids: FreshIds, book: Book, env: Env): Decision<SeatTaken> {
  switch (asked.action) {
    case 'find':
      return decide.find(book, { ...asked.request, ...limits }, ids, env)
    case 'create':
      return decide.create(book, { ...asked.request, ...limits }, ids, env)
    case 'join':
      // The lobby came after its game mode was looked up, so the rules of the game mode were not checked.
      if (!asked.is_known && book.lobbies.has(asked.request.lobby_id)) return { refused: 'MATCHMAKER_LOBBY_NOT_FOUND' }
      return decide.join(book, { ...asked.request, ...limits }, ids, env.now_ms)
  }
}

/** Holds the place that the request would get, or returns its seat when the place needs no verification. */
export function decideHold(
  ctx: MatchmakerContext,
  request: SeatRequest,
  ids: FreshIds,
  terms: Terms,
  book: Book,
  env: Env,
): Decision<Held> {
  const { asked } = request
  return withClientLimit(ctx, request, terms, book, env, (limits) => {
    // The compiler does not see that each action keeps its own members.
    const hold_request = { ...asked, request: { ...asked.request, ...limits } } as HoldRequest
    return decide.hold(book, hold_request, ids, env)
  })
}

/** Turns a hold into its seat, under the limits as they are now. Null: the hold is over, or its lobby is. */
export function decideHeldSeat(
  ctx: MatchmakerContext,
  request: SeatRequest,
  ids: FreshIds,
  terms: Terms,
  book: Book,
  env: Env,
): Decision<SeatTaken | null> {
  const { lobby_count_max } = terms.limits
  return withClientLimit(ctx, request, terms, book, env, (limits) =>
    decide.seatHeld(book, ids, { ...request.asked.request, ...limits, lobby_count_max }, env),
  )
}

/**
 * Decides under the client's limit of this moment, and records the decision. A game's backend learns which limit refused
 * its player. A player does not: it would show which addresses are not recognised.
 */
function withClientLimit<T extends SeatTaken | Held | null>(
  { ip_intelligence }: MatchmakerContext,
  { requester, asked, log, with_party }: SeatRequest,
  { limits, captcha }: Terms,
  book: Book,
  env: Env,
  decideWithin: (limits: RequestLimits) => Decision<T>,
): Decision<T> {
  const limit = clientLimit(limits, ip_intelligence.factsOf(requester.client_ip))
  const playersMaxOf = (client_ip: string) => clientLimit(limits, ip_intelligence.factsOf(client_ip)).players_max
  const within: RequestLimits = {
    client_players_max: limit.players_max,
    party: with_party ? { playersMaxOf } : null,
  }
  const decision =
    captcha === null
      ? decideWithin(within)
      : decideBehindCaptcha(captcha, asked.request, book, env.now_ms, () => decideWithin(within))
  log.record(book, { request: asked.request, decision, limit })
  phase(requester.ray, 'commit')
  const is_over = 'refused' in decision && decision.refused === 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'
  return is_over && requester.is_backend ? { ...decision, metadata: limit } : decision
}

function clientLimit(limits: ClientLimits, { classes }: AddressFacts): ClientLimit {
  let strictest: ClientLimit = { limit: 'max_players_per_client', players_max: limits.max_players_per_client }
  if (classes.size === 0) return strictest
  for (const address_class of ADDRESS_CLASSES) {
    const limit = `max_players_per_client_${address_class}` as const
    if (classes.has(address_class) && limits[limit] < strictest.players_max) {
      strictest = { limit, players_max: limits[limit] }
    }
  }
  return strictest
}

/** Ids for a lobby and for players that a decision may create. */
export function freshIds({ with_party }: Pick<SeatRequest, 'with_party'>, now_ms: number): FreshIds {
  const member_ids = with_party ? Array.from({ length: PARTY_MEMBERS_MAX - 1 }, () => newId(now_ms)) : []
  return { lobby_id: newId(now_ms), player_id: newId(now_ms), member_ids }
}
