// The attributes of the players of a request, from those who may say them: the page, the game's backend or its verification
// endpoint, and stored ratings.
import { ApiError, type Attributes } from '@musterhost/contract'
import { NEW_RATING, ratingsOf } from '../../../database/ratings.ts'
import type { MatchmakerContext } from '../context.ts'
import type { SeatRequest } from '../request.ts'
import { askAboutMatch } from '../verification/verification.ts'
import type { RequestAttributes } from './player-attributes.ts'
import { readAttributes } from './read-attributes.ts'

/**
 * Asks the game's endpoint where the game mode has one, and reads ratings where a rule names one; these values replace those
 * of the page. A repeated call whose request waits already is not checked again. Throws MATCHMAKER_VERIFICATION_FAILED and
 * MATCHMAKER_VERIFICATION_REQUEST_FAILED.
 */
export async function verifiedAttributes(ctx: MatchmakerContext, request: SeatRequest): Promise<RequestAttributes> {
  const { attributes, member_attributes } = request.matching!
  const of_page = { attributes, member_attributes }
  const { seat_key } = request.asked.request
  const book = ctx.books.book(request.requester.namespace_id)
  if (book?.hasSeat(seat_key, ctx.books.nowMs()) === true) return of_page
  const of_game = request.verification === null ? of_page : merged(of_page, await askGame(ctx, request))
  const of_ratings = await readRatings(ctx, request)
  return of_ratings === null ? of_game : merged(of_game, of_ratings)
}

async function askGame(ctx: MatchmakerContext, request: SeatRequest): Promise<RequestAttributes> {
  const verified = readAttributes(request.matching!.rules, await askAboutMatch(ctx, request))
  if (verified !== null) return verified
  const { namespace_id } = request.requester
  ctx.log.info({ namespace_id }, 'the verification endpoint of a game returned attributes that its rules do not know')
  throw new ApiError('MATCHMAKER_VERIFICATION_REQUEST_FAILED')
}

/** The estimate (`mu`) of each player. Null: no rule names a rating. */
async function readRatings(ctx: MatchmakerContext, request: SeatRequest): Promise<RequestAttributes | null> {
  const names = Object.entries(request.matching!.rules.sources).flatMap(([name, from]) =>
    from === 'rating' ? name : [],
  )
  if (names.length === 0) return null
  const { requester, with_party } = request
  const { namespace_id, identity_id } = requester
  const valuesOf = (mu: number): Attributes => Object.fromEntries(names.map((name) => [name, mu]))
  const stranger = { attributes: valuesOf(NEW_RATING.mu), member_attributes: {} }
  if (identity_id === null) return stranger
  const party = with_party ? ctx.books.book(namespace_id)?.parties.ofMember(identity_id) : undefined
  const identity_ids = party?.members.map((member) => member.identity_id) ?? [identity_id]
  const { game_mode } = request.matching!
  const ratings = await ratingsOf(ctx.db, namespace_id, game_mode, identity_ids)
  const member_attributes = [...ratings].map(([id, { mu }]): [string, Attributes] => [id, valuesOf(mu)])
  return { ...stranger, member_attributes: Object.fromEntries(member_attributes) }
}

/** The values of `over` replace those of `under`. */
function merged(under: RequestAttributes, over: RequestAttributes): RequestAttributes {
  const member_attributes: Record<string, Attributes> = { ...under.member_attributes }
  for (const [identity_id, attributes] of Object.entries(over.member_attributes)) {
    member_attributes[identity_id] = { ...member_attributes[identity_id], ...attributes }
  }
  return { attributes: { ...under.attributes, ...over.attributes }, member_attributes }
}
