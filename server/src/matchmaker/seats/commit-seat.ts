// The commit of what a request chooses. A decision that lacks ports is repeated, while the edge may be opening more.
import { ApiError } from '@musterhost/contract'
import type { SeatTaken } from '../book/commands.ts'
import type { HeldSeat } from '../book/holds.ts'
import type { MatchOrWait } from '../book/matching/find-match.ts'
import type { CaptchaGate } from './captcha/captcha.ts'
import type { MatchmakerContext } from './context.ts'
import { type Choose, decideWithin } from './decisions.ts'
import type { SeatRequest } from './request.ts'

/** Attempts while the edge opens more ports; with the pause between them a second in all. */
const PORT_ATTEMPTS_MAX = 5
const PORT_WAIT_MS = 250

/** Throws the refusal. The captcha is counted once. */
export async function commitSeat<T extends SeatTaken | HeldSeat | MatchOrWait | null>(
  ctx: MatchmakerContext,
  request: SeatRequest,
  captcha: CaptchaGate | null,
  choose: Choose<T>,
): Promise<T> {
  const { namespaces, books } = ctx
  const { namespace_id, isGone } = request.requester
  const limits = await namespaces.get(namespace_id)
  for (let attempt = 1; ; attempt++) {
    const terms = { limits, captcha: attempt === 1 ? captcha : null }
    try {
      return await books.commit(namespace_id, (book, env) => decideWithin(ctx, request, terms, { book, env, choose }))
    } catch (error) {
      const lacks_ports = error instanceof ApiError && error.code === 'MATCHMAKER_NO_PORTS'
      if (!lacks_ports || attempt === PORT_ATTEMPTS_MAX || isGone()) throw error
      await books.morePorts(PORT_WAIT_MS)
    }
  }
}
