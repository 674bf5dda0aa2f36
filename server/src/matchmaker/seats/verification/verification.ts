// Asks the game's own endpoint whether a player may have a seat. seats.ts holds the seat before: while the endpoint
// decides, no other player gets it, and it counts in every limit.
import { ApiError } from '@musterhost/contract'
import type { PartyMember } from '../../../journal/changes.ts'
import { phase } from '../../../observe/ray.ts'
import type { FreshIds } from '../../book/commands.ts'
import { type Hold, SEAT_HOLD_MS } from '../../book/holds.ts'
import type { Callers, MatchmakerContext, Seat } from '../context.ts'
import type { SeatRequest } from '../request.ts'
import { type AskedAbout, aboutHold, verificationPayload } from './payload.ts'

/** Longest response of an endpoint that says attributes. */
const ATTRIBUTES_BYTES_MAX = 16 * 1024

/**
 * Verifies a request once: calls that repeat it meanwhile share its hold, its question and its seat. `verify` gets a signal
 * that is aborted when all of its callers have hung up.
 */
export function shareVerification(
  ctx: MatchmakerContext,
  { requester, asked }: SeatRequest,
  verify: (all_gone: AbortSignal) => Promise<Seat>,
): Promise<Seat> {
  const { seat_key } = asked.request
  const key = seat_key === null ? null : `${requester.namespace_id} ${seat_key}`
  const under_way = key === null ? undefined : ctx.verifying.get(key)
  // A verification that all its callers have left is about to end.
  if (under_way !== undefined && !under_way.callers.all_gone.aborted) {
    phase(requester.ray, 'verification')
    under_way.callers.add(requester)
    return under_way.seat
  }
  const callers = createCallers()
  callers.add(requester)
  const seat = verify(callers.all_gone)
  if (key !== null) {
    const verifying = { seat, callers }
    ctx.verifying.set(key, verifying)
    const forget = () => {
      if (ctx.verifying.get(key) === verifying) ctx.verifying.delete(key)
    }
    seat.then(forget, forget)
  }
  return seat
}

function createCallers(): Callers {
  const controller = new AbortController()
  let waiting = 0
  return {
    add({ hangUpSignal }) {
      waiting++
      const leave = (): void => {
        if (--waiting === 0) controller.abort()
      }
      const gone = hangUpSignal()
      if (gone.aborted) leave()
      else gone.addEventListener('abort', leave, { once: true })
    },
    all_gone: controller.signal,
  }
}

/**
 * Asks the endpoint of the held lobby's game mode. Throws MATCHMAKER_VERIFICATION_FAILED when it refuses,
 * MATCHMAKER_VERIFICATION_REQUEST_FAILED without a response in time or when all callers have hung up.
 */
export async function askAboutHold(
  ctx: MatchmakerContext,
  request: SeatRequest,
  hold: Hold,
  ids: FreshIds,
  patience: AskPatience,
): Promise<void> {
  const party = ctx.books.book(request.requester.namespace_id)?.heldParty(ids) ?? null
  await ask(ctx, request, aboutHold(hold), party, patience, 0)
}

/**
 * Asks the endpoint of a game mode with rules, before the request waits for a match. Returns the body of the response, which
 * may have attributes. Throws like askAboutHold().
 */
export async function askAboutMatch(ctx: MatchmakerContext, request: SeatRequest): Promise<string> {
  const { requester, asked, with_party } = request
  const [plan] = request.matching!.plans
  if (asked.action !== 'find' || plan === undefined) return ''
  const book = ctx.books.book(requester.namespace_id)
  const party = with_party && requester.identity_id !== null ? book?.parties.ofMember(requester.identity_id) : undefined
  const leader = party?.members.find(({ identity_id }) => identity_id === requester.identity_id)
  const members = party?.members.filter((member) => member !== leader) ?? []
  const patience = { deadline_ms: ctx.elapsed() + SEAT_HOLD_MS, all_gone: requester.hangUpSignal() }
  // Nothing is held: the lobby is the one that a match would start.
  const { version_id, game_mode } = plan
  const about: AskedAbout = { version_id, game_mode, existing: null, action: 'find' }
  return ask(ctx, request, about, leader === undefined ? null : [leader, ...members], patience, ATTRIBUTES_BYTES_MAX)
}

type AskPatience = { deadline_ms: number; all_gone: AbortSignal }

async function ask(
  ctx: MatchmakerContext,
  { requester, verification, log }: SeatRequest,
  about: AskedAbout,
  party: readonly PartyMember[] | null,
  patience: AskPatience,
  body_bytes_max: number,
): Promise<string> {
  const { namespace_id, client_ip, user_agent } = requester
  const modes = await ctx.namespaces.gameModes(about.version_id)
  const endpoint = modes.get(about.game_mode)?.verification[about.action]
  if (!endpoint) throw new Error(`the game mode ${about.game_mode} has lost its verification`)
  const others = (party ?? []).slice(1).map((member) => {
    const { coordinates } = ctx.ip_intelligence.factsOf(member.address)
    return { address: member.address, user_agent: member.user_agent, coordinates }
  })
  const { words, coordinates } = verification!
  const players = [{ address: client_ip, user_agent, coordinates }, ...others]
  const join_kind = party === null ? 'normal' : 'party'
  const { game_id } = await ctx.namespaces.get(namespace_id)
  const body = verificationPayload({ game_id, namespace_id, about, players, join_kind, words })
  const timeout_ms = patience.deadline_ms - ctx.elapsed()
  const onNotAsked = () => log.recordNotAsked()
  const signal = patience.all_gone
  const answer = await ctx.askGame({ namespace_id, endpoint, body, timeout_ms, signal, body_bytes_max, onNotAsked })
  if (signal.aborted) throw new ApiError('MATCHMAKER_VERIFICATION_REQUEST_FAILED')
  return answer
}
