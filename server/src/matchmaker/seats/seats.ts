// A request for a seat, from the call to the player token, top to bottom: who asks, what is asked, the captcha. For each
// lobby that is tried follow the client's limit, the decision, its record, the commit, the wait and the answer. A failure
// after a seat was taken gives the seat back.
import {
  ApiError,
  allocateLobby,
  type BodyOf,
  createLobby,
  findLobby,
  joinLobby,
  type ResponseOf,
} from '@musterhost/contract'
import { mark, phase } from '../../observe/ray.ts'
import type { Prepared } from '../../text/json-text.ts'
import { release } from '../book/decide.ts'
import { dropHolds } from '../book/evolve.ts'
import { SEAT_HOLD_MS } from '../book/holds.ts'
import type { DecisionLog } from '../explanations/decision-log.ts'
import type { WaitEnd } from '../shards/seat-waiters.ts'
import { continuesElsewhere } from '../shards/shard-moved.ts'
import type { Patience } from '../shards/waiters.ts'
import type { Namespaces } from '../watch/namespaces.ts'
import { allocateRequest, allocationAnswerFor, callOfFirstPlayer } from './allocate.ts'
import { seatAnswer } from './answer.ts'
import { type CaptchaGate, checkCaptcha } from './captcha/captcha.ts'
import { commitSeat } from './commit-seat.ts'
import type { MatchmakerContext, OpenRequest, Seat } from './context.ts'
import { chooseHeld, chooseHold, chooseSeat, freshIds } from './decisions.ts'
import { takeMatchedSeat } from './matching/matched-seat.ts'
import { createRequest, findRequest, joinRequest, type SeatRequest } from './request.ts'
import { type Requester, requesterOf, type SeatCall } from './requester.ts'
import { startError } from './start-errors.ts'
import { beginSteps, type SeatSteps } from './steps.ts'
import { askAboutHold, shareVerification } from './verification/verification.ts'

/** find, join and create wait for a starting lobby at most this long. */
const START_WAIT_MS_MAX = 50_000
/** A verified request whose held lobby ends or closes chooses again. */
const HOLDS_MAX = 3

/** `context` throws API_NOT_AVAILABLE while this process stops. */
export type SeatService = { namespaces: Namespaces; context: () => MatchmakerContext }

type SeatOperation = typeof findLobby | typeof joinLobby | typeof createLobby | typeof allocateLobby
type Call<O extends SeatOperation> = SeatCall<BodyOf<O>>
type Read<Body> = (ctx: MatchmakerContext, requester: Requester, log: DecisionLog, body: Body) => Promise<SeatRequest>
type AnswerWith<T> = (ctx: MatchmakerContext, request: SeatRequest, seat: Seat) => Promise<Prepared<T>>

export const findSeat = (service: SeatService, call: Call<typeof findLobby>) =>
  requestSeat(service, findLobby, call, findRequest, answerSeat)

export const joinSeat = (service: SeatService, call: Call<typeof joinLobby>) =>
  requestSeat(service, joinLobby, call, joinRequest, answerSeat)

export const createSeat = (service: SeatService, call: Call<typeof createLobby>) =>
  requestSeat(service, createLobby, call, createRequest, answerSeat)

export const allocateSeats = async (service: SeatService, call: SeatCall<BodyOf<typeof allocateLobby>>) =>
  requestSeat(service, allocateLobby, callOfFirstPlayer(call), allocateRequest, allocationAnswerFor(call.body))

const answerSeat: AnswerWith<ResponseOf<typeof findLobby>> = (ctx, { requester, latencies_ms }, seat) =>
  seatAnswer(ctx, requester.namespace_id, seat, latencies_ms)

/** `read` makes the body into the request. Throws every refusal of the operation. */
async function requestSeat<Body extends SeatCall['body'], T>(
  service: SeatService,
  operation: SeatOperation,
  call: SeatCall<Body>,
  read: Read<Body>,
  answerWith: AnswerWith<T>,
): Promise<Prepared<T>> {
  const requester = await requesterOf(service.namespaces, call)
  const { namespace_id, ray_id, isGone, hangUpSignal } = requester
  const ctx = service.context()
  const begin = performance.now()
  const steps = beginSteps(call.steps)
  const log = ctx.decision_logs.open({ ray_id, operation: operation.id, body: call.body, namespace_id })
  try {
    // Before anything else has an effect.
    ctx.books.requireHere(namespace_id)
    const request = await read(ctx, requester, log, call.body)
    const captcha = await checkedCaptcha(ctx, request, steps)
    log.recordChecks({ captcha: captcha !== null, verification: request.verification !== null })
    const patience = { deadline_ms: ctx.elapsed() + START_WAIT_MS_MAX, isGone, hangUpSignal }
    const open = openRequest(ctx, request)
    try {
      for (; ; steps.attempt++) {
        // A captcha is counted once, however many lobbies are tried.
        const seat = await nextSeat(ctx, request, steps, captcha, patience)
        steps.seat = seat
        const is_last = steps.attempt >= request.attempts_max
        const answer = await answerWhenReady(ctx, request, seat, { open, patience, is_last, answerWith })
        steps.seat = null
        if (answer === null) continue
        log.end(null)
        if (operation === findLobby) ctx.find_durations.add(namespace_id, performance.now() - begin)
        if (requester.rollout !== undefined) ctx.rollout_finds.add(requester.rollout, null)
        return answer
      }
    } finally {
      closeRequest(ctx, request, open)
    }
  } catch (error) {
    // The process that continues records how the request ends.
    if (continuesElsewhere(error)) throw error
    const explained = await startError(ctx, requester, error)
    if (requester.rollout !== undefined && !isGone()) ctx.rollout_finds.add(requester.rollout, error)
    log.end(explained instanceof ApiError ? explained.code : 'INTERNAL_ERROR')
    throw explained
  }
}

/** The captcha of the first attempt; null: none is required, or it was counted. It is checked once, in whatever process. */
async function checkedCaptcha(
  ctx: MatchmakerContext,
  request: SeatRequest,
  steps: SeatSteps,
): Promise<CaptchaGate | null> {
  if (request.captcha === null || steps.attempt > 1 || steps.seat !== null) return null
  const { has_solved_captcha } = steps
  if (has_solved_captcha !== null) return { captcha: request.captcha, has_solved: has_solved_captcha }
  const captcha = await checkCaptcha(ctx, request)
  steps.has_solved_captcha = captcha?.has_solved ?? null
  return captcha
}

/** The seat that another process has taken for this request, or another one. */
function nextSeat(
  ctx: MatchmakerContext,
  request: SeatRequest,
  steps: SeatSteps,
  captcha: CaptchaGate | null,
  patience: Patience,
): Seat | Promise<Seat> {
  const { attempt, seat } = steps
  // Whether its lobby is ready is read again.
  if (seat !== null) return { ...seat, is_ready: false }
  const gate = attempt === 1 ? captcha : null
  return request.matching === null ? takeSeat(ctx, request, gate) : takeMatchedSeat(ctx, request, gate, steps, patience)
}

/** A seat by one command of the book, or, verified, by two with the game's endpoint asked in between. */
function takeSeat(ctx: MatchmakerContext, request: SeatRequest, captcha: CaptchaGate | null): Promise<Seat> {
  phase(request.requester.ray, 'choose')
  if (request.verification !== null) {
    return shareVerification(ctx, request, (all_gone) => takeVerifiedSeat(ctx, request, captcha, all_gone))
  }
  return commitSeat(ctx, request, captcha, chooseSeat(request))
}

/**
 * Chooses a seat, holds it, asks the game, and turns the hold into the seat. A refusal, a failure or a hang-up gives the
 * hold up.
 */
async function takeVerifiedSeat(
  ctx: MatchmakerContext,
  request: SeatRequest,
  captcha: CaptchaGate | null,
  all_gone: AbortSignal,
): Promise<Seat> {
  const { namespace_id, ray } = request.requester
  const deadline_ms = ctx.elapsed() + SEAT_HOLD_MS
  for (let attempt = 1; attempt <= HOLDS_MAX; attempt++) {
    const ids = freshIds(request, ctx.now())
    try {
      const held = await commitSeat(ctx, request, attempt === 1 ? captcha : null, chooseHold(request, ids))
      if ('seat' in held) return { ...held.seat, is_new: held.seat.player_id === ids.player_id }
      phase(ray, 'verification')
      await askAboutHold(ctx, request, held.hold, ids, { deadline_ms, all_gone })
      phase(ray, 'choose')
      const seat = await commitSeat(ctx, request, null, chooseHeld(request, ids))
      if (seat !== null) return { ...seat, is_new: seat.player_id === ids.player_id }
    } finally {
      const book = ctx.books.book(namespace_id)
      if (book !== undefined) dropHolds(book, ids)
    }
  }
  throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: 1 })
}

/** Null: the lobby ended while it started, and another may be tried. */
async function answerWhenReady<T>(
  ctx: MatchmakerContext,
  request: SeatRequest,
  seat: Seat,
  how: { open: OpenRequest; patience: Patience; is_last: boolean; answerWith: AnswerWith<T> },
): Promise<Prepared<T> | null> {
  const { open, patience, is_last, answerWith } = how
  const { namespace_id, ray, isGone } = request.requester
  const { lobby_id, player_id } = seat
  if (ray !== null) ray.player_id = player_id
  try {
    const end = seat.is_ready ? 'ready' : await waitUntilReady(ctx, request, seat, patience)
    if (end === 'ready' && !isGone()) {
      phase(ray, 'answer')
      ctx.books.requireHere(namespace_id)
      const answer = await answerWith(ctx, request, seat)
      open.is_answered = true
      return answer
    }
    const may_come_again = request.matching !== null && request.asked.request.seat_key !== null
    if (end === 'timeout' && !isGone() && may_come_again) {
      open.is_answered = true
      throw new ApiError('MATCHMAKER_WAITING', { reason: 'starting', lobby_id }, { retry_after_s: 1 })
    }
    if (end !== 'gone' || isGone()) {
      throw new ApiError('MATCHMAKER_LOBBY_NOT_STARTED', { lobby_id }, { retry_after_s: 1 })
    }
    if (!is_last && (await mayTryAnother(ctx, namespace_id, lobby_id))) return null
    throw new ApiError('MATCHMAKER_LOBBY_STOPPED', { lobby_id })
  } catch (error) {
    if (!continuesElsewhere(error) && isUnanswered(open, seat)) {
      await ctx.books.commit(namespace_id, (book, { now_ms }) => release(book, player_id, now_ms))
    }
    throw error
  }
}

/** Whether another lobby may start where this one did not: not after several failures, and not of a damaged build. */
async function mayTryAnother(ctx: MatchmakerContext, namespace_id: string, lobby_id: string): Promise<boolean> {
  const lobby = ctx.books.lobby(namespace_id, lobby_id)
  if (lobby === undefined || ctx.failed_starts.isFailing(namespace_id, lobby)) return false
  const run = await ctx.db
    .selectFrom('lobby_runs')
    .select('exit_reason')
    .where('lobby_id', '=', lobby_id)
    .executeTakeFirst()
  return run?.exit_reason !== 'build_damaged'
}

async function waitUntilReady(
  ctx: MatchmakerContext,
  request: SeatRequest,
  seat: Seat,
  patience: Patience,
): Promise<WaitEnd> {
  const since = performance.now()
  const endPhase = traceStart(ctx, request.requester, seat)
  const end = await ctx.books.waitUntilReady(request.requester.namespace_id, seat, patience)
  endPhase?.()
  request.log.recordWait(seat.lobby_id, end, since)
  return end
}

/**
 * The phases of the wait, for the ray: the request that started the lobby waits for its process and then for its server. All
 * others only wait, and note which request started it.
 */
function traceStart(ctx: MatchmakerContext, { namespace_id, ray }: Requester, { lobby_id }: Seat): (() => void) | null {
  if (ray === null) return null
  ray.is_wanted = true
  const starter = ctx.books.lobby(namespace_id, lobby_id)?.ray_id ?? null
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
  const unfollow = ctx.run_starts.follow(lobby_id, endStart)
  return () => {
    unfollow()
    endStart()
  }
}

/** The same client and key in another namespace is another request. */
function requestKey({ requester, asked }: SeatRequest): string {
  return `${requester.namespace_id} ${asked.request.seat_key}`
}

function openRequest({ open_requests }: MatchmakerContext, request: SeatRequest): OpenRequest {
  if (request.asked.request.seat_key === null) return { call_count: 1, is_answered: false }
  const key = requestKey(request)
  const open = open_requests.get(key) ?? { call_count: 0, is_answered: false }
  open.call_count++
  open_requests.set(key, open)
  return open
}

function closeRequest({ open_requests }: MatchmakerContext, request: SeatRequest, open: OpenRequest): void {
  open.call_count--
  if (open.call_count === 0 && request.asked.request.seat_key !== null) open_requests.delete(requestKey(request))
}

/**
 * Whether no caller has the seat's token, nor will get it. Another call with the same key may still wait for it, may have
 * been answered, or may have been answered before this call came (then the lobby was ready already).
 */
function isUnanswered({ call_count, is_answered }: OpenRequest, seat: Seat): boolean {
  return call_count === 1 && !is_answered && (seat.is_new || !seat.is_ready)
}
