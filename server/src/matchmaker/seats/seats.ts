// The desk: the story of a request for a seat, from who asks to a token in his hand. Whatever fails after a seat was
// taken gives the seat back.
import {
  ApiError,
  type BodyOf,
  type createLobby,
  type findLobby,
  type joinLobby,
  type SeatAction,
} from '@muster/contract'
import type { AddressFacts, IpIntelligence } from '../../addresses/ip-intelligence.ts'
import type { AskProvider } from '../../captcha/provider.ts'
import type { Context } from '../../context.ts'
import { mark, phase } from '../../observe/ray.ts'
import type { Decision, Env, FreshIds, LobbyPlan, SeatTaken, SeatWish } from '../book/commands.ts'
import * as decide from '../book/decide.ts'
import type { Book } from '../book/state.ts'
import type { DecisionRecorder } from '../explanations/decision-log.ts'
import type { Rays } from '../explanations/store.ts'
import type { Books, Patience, WaitEnd } from '../shards/books.ts'
import type { FailedStarts } from '../watch/failed-starts.ts'
import type { NamespaceRecord, Namespaces } from '../watch/namespaces.ts'
import type { RunStarts } from '../watch/starts.ts'
import { type SeatAnswer, type SeatTexts, seatAnswer } from './answer.ts'
import { type CaptchaGate, type CaptchaResponses, gated, openGate, type Solving } from './captcha/captcha.ts'
import { clientLimit } from './client-limit.ts'
import { freshIds } from './fresh-ids.ts'
import { resolveGameModes } from './game-mode-names.ts'
import { requireIdentity } from './identity-rules.ts'
import { createWish, findWish } from './request.ts'
import type { Requester } from './requester.ts'
import { startError } from './start-errors.ts'
import type { AskGame } from './verification/calls.ts'
import { requireSmallData } from './verification/payload.ts'
import { type Verification, type Verifying, verifiedModes, verifiedSeat } from './verification/verification.ts'
import { whenPortsOpen } from './wait-for-ports.ts'
import { limited } from './with-client-limit.ts'

/** A find whose lobby dies while it starts chooses again, within its deadline. */
const PLACEMENT_ATTEMPTS_MAX = 3
/** find, join and create wait for a starting lobby at most this long. */
const START_WAIT_MS = 50_000

export type MatchmakerContext = {
  ctx: Context
  books: Books
  namespaces: Namespaces
  ip_intelligence: IpIntelligence
  open_requests: Map<string, OpenRequest>
  seat_texts: SeatTexts
  askProvider: AskProvider
  solving: Solving
  askGame: AskGame
  /** Requests that are verified now, by namespace and key. */
  verifying: Map<string, Verifying>
  rays: Rays
  teller: DecisionRecorder
  run_starts: RunStarts
  failed_starts: FailedStarts
}

/** The calls that are under way with one Idempotency-Key: they are one request, and share its seat. */
export type OpenRequest = { call_count: number; is_answered: boolean }

type Take = (book: Book, ids: FreshIds, env: Env) => Decision<SeatTaken>
/** `is_new`: this very call took it; else it was remembered for the key. */
type Seat = SeatTaken & { is_new: boolean }

/** How a seat is come by. `gate` and `verification`: null where the version has none. */
type SeatOrder = {
  wish: SeatWish
  gate: CaptchaGate | null
  verification: Verification | null
  attempts_max: number
  take: Take
}

export async function findSeat(
  desk: MatchmakerContext,
  visitor: Requester,
  given: BodyOf<typeof findLobby>,
): Promise<SeatAnswer> {
  const namespace = await desk.namespaces.get(visitor.namespace_id)
  const body = { ...given, game_modes: resolveGameModes(namespace, given.game_modes) }
  requireIdentity(
    visitor,
    'find',
    body.game_modes.map((name) => namespace.game_modes.get(name)),
  )
  const facts = await factsOf(desk, visitor)
  const found = findWish(desk.ctx.config, namespace, body, facts.coordinates, visitor.ray?.ray_id ?? null)
  const wish = {
    ...found,
    plan: found.plan && withFailures(desk, visitor, found.plan),
    ...seatWish(namespace, visitor, facts, 'find', body.party),
  }
  requireSmallData(body.verification_data)
  const verified_modes = verifiedModes(namespace.game_modes, body.game_modes, 'find')
  return takeSeat(desk, visitor, {
    wish,
    gate: await gateOf(desk, namespace, visitor, wish, body.captcha),
    verification:
      verified_modes.size === 0 ? null : { asked: { action: 'find', wish, verified_modes }, words: body, facts },
    attempts_max: PLACEMENT_ATTEMPTS_MAX,
    take: (book, ids, env) => decide.find(book, wish, ids, env),
  })
}

export async function joinSeat(
  desk: MatchmakerContext,
  visitor: Requester,
  body: BodyOf<typeof joinLobby>,
): Promise<SeatAnswer> {
  const namespace = await desk.namespaces.get(visitor.namespace_id)
  const lobby = desk.books.lobby(namespace.namespace_id, body.lobby_id)
  // A lobby that is not there is refused by the book.
  const mode = lobby && (await desk.namespaces.gameModes(lobby.version_id)).get(lobby.game_mode)
  requireIdentity(visitor, 'join', [mode])
  if (mode?.join_enabled === false) throw new ApiError('MATCHMAKER_JOIN_DISABLED')
  const facts = await factsOf(desk, visitor)
  const wish = { lobby_id: body.lobby_id, ...seatWish(namespace, visitor, facts, 'join', body.party) }
  requireSmallData(body.verification_data)
  const { verification_data } = body
  return takeSeat(desk, visitor, {
    wish,
    gate: await gateOf(desk, namespace, visitor, wish, body.captcha),
    verification: mode?.verification.join
      ? { asked: { action: 'join', wish }, words: { verification_data }, facts }
      : null,
    attempts_max: 1,
    take: (book, ids, { now_ms }) => {
      // One that was not there when its game mode was looked up has not been asked about.
      if (lobby === undefined && book.lobbies.has(body.lobby_id)) return { refused: 'MATCHMAKER_LOBBY_NOT_FOUND' }
      return decide.join(book, wish, ids, now_ms)
    },
  })
}

export async function createSeat(
  desk: MatchmakerContext,
  visitor: Requester,
  given: BodyOf<typeof createLobby>,
): Promise<SeatAnswer> {
  const namespace = await desk.namespaces.get(visitor.namespace_id)
  const body = { ...given, game_mode: resolveGameModes(namespace, [given.game_mode])[0]! }
  requireIdentity(visitor, 'create', [namespace.game_modes.get(body.game_mode)])
  const facts = await factsOf(desk, visitor)
  const creator = { identity_id: visitor.identity_id, ray_id: visitor.ray?.ray_id ?? null }
  const plan = createWish(desk.ctx.config, namespace, body, facts.coordinates, creator)
  const wish = {
    plan: withFailures(desk, visitor, plan),
    ...seatWish(namespace, visitor, facts, 'create', body.party),
  }
  requireSmallData(body.verification_data)
  const is_verified = namespace.game_modes.get(body.game_mode)?.verification.create
  return takeSeat(desk, visitor, {
    wish,
    gate: await gateOf(desk, namespace, visitor, wish, body.captcha),
    verification: is_verified ? { asked: { action: 'create', wish }, words: body, facts } : null,
    attempts_max: 1,
    take: (book, ids, env) => decide.create(book, wish, ids, env),
  })
}

function withFailures({ failed_starts }: MatchmakerContext, { namespace_id }: Requester, plan: LobbyPlan): LobbyPlan {
  const failed_before = failed_starts.before(namespace_id, plan)
  return failed_before === undefined ? plan : { ...plan, failed_before }
}

/** Null: the version has no captcha, or none is asked for. */
function gateOf(
  desk: MatchmakerContext,
  namespace: NamespaceRecord,
  { address, is_backend, ray }: Requester,
  { seat_key }: SeatWish,
  responses: CaptchaResponses | undefined,
): CaptchaGate | Promise<CaptchaGate> | null {
  const { captcha, namespace_id } = namespace
  if (captcha === null || is_backend) return null
  phase(ray, 'captcha')
  return openGate(desk, captcha, { namespace_id, address, seat_key }, responses)
}

async function takeSeat(desk: MatchmakerContext, visitor: Requester, order: SeatOrder): Promise<SeatAnswer> {
  try {
    return await awaitSeat(desk, visitor, order)
  } catch (error) {
    throw await startError(desk, visitor, error)
  }
}

/** Takes a seat, waits until its lobby is ready, and answers it; or gives it back. */
async function awaitSeat(desk: MatchmakerContext, visitor: Requester, order: SeatOrder): Promise<SeatAnswer> {
  const { namespace_id } = visitor
  const { wish, attempts_max } = order
  const patience = {
    deadline_ms: desk.ctx.elapsed() + START_WAIT_MS,
    isGone: visitor.isGone,
    hangUpSignal: visitor.hangUpSignal,
  }
  const request = openRequest(desk, namespace_id, wish)
  visitor.tale?.checked({ captcha: order.gate !== null, verification: order.verification !== null })
  try {
    for (let attempt = 0; ; attempt++) {
      const seat = await placed(desk, visitor, order, attempt)
      const { lobby_id } = seat
      try {
        const end = seat.is_ready ? 'ready' : await waited(desk, visitor, seat, patience)
        if (end === 'gone' && !visitor.isGone()) {
          if (attempt + 1 < attempts_max && (await mayTryAnother(desk, visitor, lobby_id))) continue
          throw new ApiError('MATCHMAKER_LOBBY_STOPPED', { lobby_id })
        }
        if (end === 'ready' && !visitor.isGone()) {
          phase(visitor.ray, 'answer')
          const answer = await seatAnswer(desk, namespace_id, seat)
          request.is_answered = true
          return answer
        }
        throw new ApiError('MATCHMAKER_LOBBY_NOT_STARTED', { lobby_id }, { retry_after_s: 1 })
      } catch (error) {
        if (isUnanswered(request, seat)) {
          await desk.books.commit(namespace_id, (book, { now_ms }) => decide.release(book, seat.player_id, now_ms))
        }
        throw error
      }
    }
  } finally {
    closeRequest(desk, namespace_id, wish, request)
  }
}

/** Whether another lobby may start where this one did not: not after several failures, and not of a damaged build. */
async function mayTryAnother(desk: MatchmakerContext, { namespace_id }: Requester, lobby_id: string): Promise<boolean> {
  const lobby = desk.books.lobby(namespace_id, lobby_id)
  if (lobby === undefined || desk.failed_starts.isFailing(namespace_id, lobby)) return false
  const run = await desk.ctx.db
    .selectFrom('lobby_runs')
    .select('exit_reason')
    .where('lobby_id', '=', lobby_id)
    .executeTakeFirst()
  return run?.exit_reason !== 'build_damaged'
}

async function waited(desk: MatchmakerContext, visitor: Requester, seat: Seat, patience: Patience): Promise<WaitEnd> {
  const since = performance.now()
  const endStart = tellOfStart(desk, visitor, seat)
  const end = await desk.books.waitUntilReady(visitor.namespace_id, seat, patience)
  endStart?.()
  visitor.tale?.waited(seat.lobby_id, end, since)
  return end
}

/** Whose request started the lobby sees its process come, and then waits for its server; all others wait for theirs. */
function tellOfStart(
  desk: MatchmakerContext,
  { namespace_id, ray }: Requester,
  { lobby_id }: Seat,
): (() => void) | null {
  if (ray === null) return null
  ray.is_wanted = true
  const starter = desk.books.lobby(namespace_id, lobby_id)?.ray_id ?? null
  if (starter !== ray.ray_id) {
    phase(ray, 'wait')
    if (starter !== null) mark(ray, 'started_by', starter)
    return null
  }
  phase(ray, 'start')
  let is_started = false
  const endStart = (): void => {
    if (!is_started) phase(ray, 'wait')
    is_started = true
  }
  const unfollow = desk.run_starts.follow(lobby_id, endStart)
  return () => {
    unfollow()
    endStart()
  }
}

/** A seat by one command of the book, or by two with the game's endpoint asked in between. */
async function placed(desk: MatchmakerContext, visitor: Requester, order: SeatOrder, attempt: number): Promise<Seat> {
  const { wish, verification, take } = order
  const { namespace_id, isGone } = visitor
  phase(visitor.ray, 'choose')
  // A request counts once, however often it is placed.
  const gate = attempt === 0 ? order.gate : null
  if (verification !== null) return verifiedSeat(desk, visitor, verification, gate)
  const limits = await desk.namespaces.get(namespace_id)
  return whenPortsOpen(desk.books, isGone, (is_first) => {
    const command = gate !== null && is_first ? gated(gate, wish, take) : take
    return commitSeat(desk, namespace_id, wish, limited(desk, limits, visitor, wish, command))
  })
}

function commitSeat(desk: MatchmakerContext, namespace_id: string, wish: SeatWish, take: Take): Promise<Seat> {
  return desk.books.commit(namespace_id, (book, env) => {
    const decision = take(book, freshIds(wish, env.now_ms), env)
    if ('refused' in decision) return decision
    return { changes: decision.changes, result: { ...decision.result, is_new: decision.changes.length > 0 } }
  })
}

/** The same client and key in another namespace is another request. */
function requestKey(namespace_id: string, wish: SeatWish): string {
  return `${namespace_id} ${wish.seat_key}`
}

function openRequest(desk: MatchmakerContext, namespace_id: string, wish: SeatWish): OpenRequest {
  if (wish.seat_key === null) return { call_count: 1, is_answered: false }
  const key = requestKey(namespace_id, wish)
  const request = desk.open_requests.get(key) ?? { call_count: 0, is_answered: false }
  request.call_count++
  desk.open_requests.set(key, request)
  return request
}

function closeRequest(desk: MatchmakerContext, namespace_id: string, wish: SeatWish, request: OpenRequest): void {
  request.call_count--
  if (request.call_count === 0 && wish.seat_key !== null) desk.open_requests.delete(requestKey(namespace_id, wish))
}

/**
 * Whether nobody has the seat's token, nor will have it: another call with the same key may still wait for it, may have
 * been answered, or may have been before this one came (then the lobby was ready already).
 */
function isUnanswered(request: OpenRequest, seat: Seat): boolean {
  return request.call_count === 1 && !request.is_answered && (seat.is_new || !seat.is_ready)
}

/** What is known of the player's address. Who comes before any data have been read waits a little for them. */
async function factsOf({ ip_intelligence }: MatchmakerContext, { address }: Requester): Promise<AddressFacts> {
  await ip_intelligence.opening()
  return ip_intelligence.factsOf(address)
}

/**
 * The key is good for one action of one client or identity: nobody can ask for another's seat with it, nor for one of a
 * backend's. Throws MATCHMAKER_IDENTITY_REQUIRED.
 */
function seatWish(
  namespace: NamespaceRecord,
  visitor: Requester,
  facts: AddressFacts,
  action: SeatAction,
  with_party = false,
): SeatWish {
  const { client, identity_id, idempotency_key } = visitor
  if (with_party && identity_id === null) throw new ApiError('MATCHMAKER_IDENTITY_REQUIRED')
  const { players_max } = clientLimit(namespace, facts)
  return {
    client,
    seat_key: idempotency_key === null ? null : `${action} ${ownerOf(visitor, with_party)} ${idempotency_key}`,
    client_players_max: players_max,
    lobby_count_max: namespace.lobby_count_max,
    identity_id,
    party: with_party ? { playersMaxOf: () => players_max } : null,
  }
}

function ownerOf({ client, identity_id, is_backend }: Requester, with_party: boolean): string {
  if (identity_id !== null) return `${with_party ? 'party' : 'identity'} ${identity_id}`
  return is_backend ? `backend ${client}` : client
}
