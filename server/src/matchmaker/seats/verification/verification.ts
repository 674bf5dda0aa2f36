// Asks the game's own endpoint whether a player may have a seat. seats.ts holds the seat before: while the endpoint
// decides, no other player gets it, and it counts in every limit.
import { ApiError } from '@musterhost/contract'
import { phase } from '../../../observe/ray.ts'
import type { FreshIds } from '../../book/commands.ts'
import type { Hold } from '../../book/holds.ts'
import type { Callers, MatchmakerContext, Seat } from '../context.ts'
import type { SeatRequest } from '../request.ts'
import { verificationPayload } from './payload.ts'

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
  { requester, verification, log }: SeatRequest,
  hold: Hold,
  ids: FreshIds,
  patience: { deadline_ms: number; all_gone: AbortSignal },
): Promise<void> {
  const { namespace_id, client_ip, user_agent } = requester
  const modes = await ctx.namespaces.gameModes(hold.lobby.version_id)
  const endpoint = modes.get(hold.lobby.game_mode)?.verification[hold.action]
  if (!endpoint) throw new Error(`the game mode ${hold.lobby.game_mode} has lost its verification`)
  const party = ctx.books.book(namespace_id)?.heldParty(ids) ?? null
  const others = (party ?? []).slice(1).map((member) => {
    const { coordinates } = ctx.ip_intelligence.factsOf(member.address)
    return { address: member.address, user_agent: member.user_agent, coordinates }
  })
  const { words, coordinates } = verification!
  const players = [{ address: client_ip, user_agent, coordinates }, ...others]
  const join_kind = party === null ? 'normal' : 'party'
  const { game_id } = await ctx.namespaces.get(namespace_id)
  const body = verificationPayload({ game_id, namespace_id, hold, players, join_kind, words })
  const timeout_ms = patience.deadline_ms - ctx.elapsed()
  const onNotAsked = () => log.recordNotAsked()
  await ctx.askGame({ namespace_id, endpoint, body, timeout_ms, signal: patience.all_gone, onNotAsked })
  if (patience.all_gone.aborted) throw new ApiError('MATCHMAKER_VERIFICATION_REQUEST_FAILED')
}
