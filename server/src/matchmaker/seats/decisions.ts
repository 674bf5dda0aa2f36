// The decisions on a seat. The client's limit, the captcha, the choice of a lobby and the record follow each other inside one
// command of the shard (shards/shard.ts), so nothing else changes the book in between. The choices: take a seat, hold
// it, turn a hold into it, or wait for a match.
//
// How many players one client may have in a namespace is the least of the namespace's limit and the limits of all classes
// that the client's address belongs to. 0 lets nobody in.
import { ADDRESS_CLASSES, type AddressFacts } from '../../addresses/ip-intelligence.ts'
import { newId } from '../../ids.ts'
import { phase } from '../../observe/ray.ts'
import type { Decision, Env, FreshIds, HoldRequest, SeatTaken } from '../book/commands.ts'
import * as decide from '../book/decide.ts'
import type { HeldSeat } from '../book/holds.ts'
import { findWithRules, type MatchOrWait } from '../book/matching/find-match.ts'
import type { TicketCall } from '../book/matching/ticket.ts'
import { PARTY_MEMBERS_MAX } from '../book/parties.ts'
import type { Book } from '../book/state.ts'
import type { ClientLimits, LimitName, NamespaceRecord } from '../watch/namespaces.ts'
import { type CaptchaAdmission, type CaptchaGate, passCaptcha } from './captcha/captcha.ts'
import type { MatchmakerContext, Seat } from './context.ts'
import { attributesIn, type RequestAttributes } from './matching/player-attributes.ts'
import type { RequestedAction, RequestLimits, SeatRequest } from './request.ts'

/** What a decision is made under. `captcha`: null when none is required, or when it was counted before. */
export type Terms = { limits: NamespaceRecord; captcha: CaptchaGate | null }

/** The strictest limit, and its number. */
type ClientLimit = { limit: LimitName; players_max: number }

/** What a request chooses, under its client's limits: changes of the book, or a refusal. */
export type Choose<T> = (limits: RequestLimits, book: Book, env: Env, namespace: NamespaceRecord) => Decision<T>

/**
 * Decides under the limit of the client and the captcha as they are in this moment, and records the decision. A game's backend
 * learns which limit refused its player. A player does not: it would show which addresses are not recognised.
 */
export function decideWithin<T extends SeatTaken | HeldSeat | MatchOrWait | null>(
  ctx: MatchmakerContext,
  { requester, asked, log, with_party }: SeatRequest,
  { limits: namespace, captcha }: Terms,
  { book, env, choose }: { book: Book; env: Env; choose: Choose<T> },
): Decision<T> {
  const limitOf = (client_ip: string) => clientLimit(namespace, ctx.ip_intelligence.factsOf(client_ip))
  const limit = limitOf(requester.client_ip)
  const party = with_party ? { playersMaxOf: (client_ip: string) => limitOf(client_ip).players_max } : null
  const admission = passCaptcha(captcha, asked.request, book, env.now_ms)
  const decision =
    'refused' in admission
      ? admission
      : afterAdmission(admission, choose({ client_players_max: limit.players_max, party }, book, env, namespace))
  log.record(book, { request: asked.request, decision, limit })
  phase(requester.ray, 'commit')
  const is_over = 'refused' in decision && decision.refused === 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE'
  return is_over && requester.is_backend ? { ...decision, metadata: limit } : decision
}

/** The request counts, and a solved captcha is remembered, even when the request gets no seat. */
function afterAdmission<T>({ changes }: CaptchaAdmission, decision: Decision<T>): Decision<T> {
  if (changes.length === 0) return decision
  if ('refused' in decision) return { ...decision, noted: changes }
  return { changes: changes.concat(decision.changes), result: decision.result }
}

/** Chooses a seat, in an open lobby or in a new one. */
export function chooseSeat(request: SeatRequest): Choose<Seat> {
  return (limits, book, env) => {
    const decision = seatFor(request.asked, limits, freshIds(request, env.now_ms), book, env)
    if ('refused' in decision) return decision
    return { changes: decision.changes, result: { ...decision.result, is_new: decision.changes.length > 0 } }
  }
}

/** What a decision by rules needs beside the request. */
export type MatchTerms = {
  captcha: CaptchaGate | null
  ids: FreshIds
  call: TicketCall
  attributes: RequestAttributes
}

/** Chooses a seat by the rules of the game mode, or lets the request wait. */
export function chooseMatch(
  { asked, matching }: SeatRequest,
  { ids, call, attributes }: MatchTerms,
): Choose<MatchOrWait> {
  if (asked.action !== 'find' || matching === null) throw new Error('only a find has rules')
  const { regions, latencies } = matching
  return (limits, book, env) => {
    const request = { ...asked.request, ...limits, call, regions, latencies }
    const attributesOf = (identity_id: string | null) => attributesIn(attributes, identity_id)
    return findWithRules(book, { ...request, attributesOf }, ids, env)
  }
}

function seatFor(
  asked: RequestedAction,
  limits: RequestLimits,
  ids: FreshIds,
  book: Book,
  env: Env,
): Decision<SeatTaken> {
  switch (asked.action) {
    case 'find':
      return decide.find(book, { ...asked.request, ...limits }, ids, env)
    case 'create':
      return decide.create(book, { ...asked.request, ...limits }, ids, env)
    case 'allocate':
      return decide.allocate(book, { ...asked.request, ...limits }, ids, env)
    case 'join':
      // The lobby came after its game mode was looked up, so the rules of the game mode were not checked.
      if (!asked.is_known && book.lobbies.has(asked.request.lobby_id)) return { refused: 'MATCHMAKER_LOBBY_NOT_FOUND' }
      return decide.join(book, { ...asked.request, ...limits }, ids, env.now_ms)
  }
}

/** Holds the seat that the request would get, or takes it where the game mode needs no verification. */
export function chooseHold({ asked }: SeatRequest, ids: FreshIds): Choose<HeldSeat> {
  // The compiler does not see that each action keeps its own members.
  return (limits, book, env) =>
    decide.hold(book, { ...asked, request: { ...asked.request, ...limits } } as HoldRequest, ids, env)
}

/** Turns a hold into its seat, under the limits as they are now. Null: the hold is over, or its lobby is. */
export function chooseHeld({ asked }: SeatRequest, ids: FreshIds): Choose<SeatTaken | null> {
  return (limits, book, env, { lobby_count_max }) =>
    decide.seatHeld(book, ids, { ...asked.request, ...limits, lobby_count_max }, env)
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

/** Ids for a lobby and for players that a decision may create. Those of an allocation are in the order of their players. */
export function freshIds({ with_party, asked }: Pick<SeatRequest, 'with_party' | 'asked'>, now_ms: number): FreshIds {
  const lobby_id = newId(now_ms)
  if (!with_party) return { lobby_id, player_id: newId(now_ms) }
  const player_count = asked.action === 'allocate' ? asked.request.players.length : PARTY_MEMBERS_MAX
  const [player_id, ...member_ids] = Array.from({ length: player_count }, () => newId(now_ms)).sort()
  return { lobby_id, player_id: player_id!, member_ids }
}
