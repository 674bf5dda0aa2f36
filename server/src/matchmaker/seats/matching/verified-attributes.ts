// The attributes of the players of a request, from those who may say them: the page, the game's backend or its verification
// endpoint, and stored ratings.
import { ApiError, type Attributes } from '@musterhost/contract'
import type { MatchmakerContext } from '../context.ts'
import type { SeatRequest } from '../request.ts'
import { askAboutMatch } from '../verification/verification.ts'
import type { RequestAttributes } from './player-attributes.ts'
import { readAttributes } from './read-attributes.ts'

/**
 * Asks the game's endpoint where the game mode has one; its values replace those of the page. A repeated call whose request
 * waits already is not verified again. Throws MATCHMAKER_VERIFICATION_FAILED and MATCHMAKER_VERIFICATION_REQUEST_FAILED.
 */
export async function verifiedAttributes(ctx: MatchmakerContext, request: SeatRequest): Promise<RequestAttributes> {
  const { attributes, member_attributes, rules } = request.matching!
  const { namespace_id } = request.requester
  const { seat_key } = request.asked.request
  const book = ctx.books.book(namespace_id)
  const is_known = book?.hasSeat(seat_key, ctx.books.nowMs()) === true
  if (request.verification === null || is_known) return { attributes, member_attributes }
  const body = await askAboutMatch(ctx, request)
  const verified = readAttributes(rules, body)
  if (verified === null) {
    ctx.log.info({ namespace_id }, 'the verification endpoint of a game returned attributes that its rules do not know')
    throw new ApiError('MATCHMAKER_VERIFICATION_REQUEST_FAILED')
  }
  return {
    attributes: { ...attributes, ...verified.attributes },
    member_attributes: merged(member_attributes, verified.member_attributes),
  }
}

function merged(
  page: RequestAttributes['member_attributes'],
  game: RequestAttributes['member_attributes'],
): RequestAttributes['member_attributes'] {
  const all: Record<string, Attributes> = { ...page }
  for (const [identity_id, attributes] of Object.entries(game))
    all[identity_id] = { ...all[identity_id], ...attributes }
  return all
}
