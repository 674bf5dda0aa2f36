// A version that has a captcha requires a solved one of a client, and then admits a number of its requests for a time
// without. The book remembers who has solved one (book/captcha-memory.ts). It is checked and counted in the command that
// takes the seat, so it is exact, durable with the seat, and needs no journal row of its own. Nothing is reserved or
// created before the captcha is checked.
import {
  ApiError,
  CAPTCHA_PROVIDERS,
  CAPTCHA_TEST_SECRETS,
  type CaptchaConfig,
  type ErrorMetadata,
} from '@musterhost/contract'
import type { Solved } from '../../../captcha/provider.ts'
import { spendResponse } from '../../../captcha/spend.ts'
import type { Change } from '../../../journal/changes.ts'
import { phase } from '../../../observe/ray.ts'
import type { Refused, RequestedSeat } from '../../book/commands.ts'
import { admit } from '../../book/decide.ts'
import type { Book } from '../../book/state.ts'
import type { MatchmakerContext } from '../context.ts'
import type { SeatRequest } from '../request.ts'
import { isOwnHost } from './hosts.ts'

type CaptchaResponses = NonNullable<SeatRequest['captcha_responses']>

/** The captcha that the version requires, and whether the request carries a solved one. */
export type CaptchaGate = { captcha: CaptchaConfig; has_solved: boolean }

/**
 * Checks the response that the request carries. Null: no captcha is required. Throws CAPTCHA_CAPTCHA_INVALID,
 * CAPTCHA_CAPTCHA_FAILED or CAPTCHA_PROVIDER_FAILED.
 */
export function checkCaptcha(ctx: MatchmakerContext, request: SeatRequest): CaptchaGate | Promise<CaptchaGate> | null {
  const { captcha, captcha_responses, requester } = request
  if (captcha === null) return null
  phase(requester.ray, 'captcha')
  if (captcha_responses === undefined) return { captcha, has_solved: false }
  return hasSolved(ctx, captcha, request, captcha_responses).then((has_solved) => ({ captcha, has_solved }))
}

/** What admits a request: nothing, or that its client has solved a captcha or has used one more of its requests. */
export type CaptchaAdmission = { changes: readonly Change[] }

/**
 * Admits a request whose client has solved a captcha, now or before; refuses it otherwise. A repeated request whose seat is
 * remembered passes. `gate` null: no captcha is required.
 */
export function passCaptcha(
  gate: CaptchaGate | null,
  { client_key, seat_key }: Pick<RequestedSeat, 'client_key' | 'seat_key'>,
  book: Book,
  now_ms: number,
): CaptchaAdmission | Refused {
  if (gate === null || book.hasSeat(seat_key, now_ms)) return NO_CHANGES
  const { captcha, has_solved } = gate
  const { requests_before_reverify, verification_ttl: verification_ttl_ms } = captcha
  const admission = admit(book, client_key, { requests_before_reverify, verification_ttl_ms }, has_solved, now_ms)
  return 'refused' in admission ? { ...admission, metadata: metadataOf(captcha) } : admission
}

const NO_CHANGES: CaptchaAdmission = { changes: [] }

/** What a client needs to show the captcha; never a secret. Of two providers the first is named. */
function metadataOf({ hcaptcha, turnstile }: CaptchaConfig): ErrorMetadata {
  if (hcaptcha !== undefined) return { hcaptcha: { site_id: hcaptcha.site_key, site_key: hcaptcha.site_key } }
  if (turnstile === undefined) return {}
  const { site_key, action } = turnstile
  return { turnstile: { site_key, ...(action !== undefined && { action }) } }
}

async function hasSolved(
  ctx: MatchmakerContext,
  captcha: CaptchaConfig,
  { requester, asked }: SeatRequest,
  responses: CaptchaResponses,
): Promise<boolean> {
  const { namespace_id, client_ip } = requester
  const { seat_key } = asked.request
  const sent = CAPTCHA_PROVIDERS.filter((provider) => responses[provider] !== undefined)
  const provider = sent.find((name) => captcha[name] !== undefined)
  if (provider === undefined) {
    if (sent.length > 0) throw new ApiError('CAPTCHA_CAPTCHA_INVALID', metadataOf(captcha))
    return false
  }
  // A repeated request whose first answer was lost: its response is spent, and it needs none.
  if (ctx.books.book(namespace_id)?.hasSeat(seat_key, ctx.books.nowMs())) return false
  const { client_response } = responses[provider]!
  const { site_key, secret_key } = captcha[provider]!
  const question = { site_key, secret_key, namespace_id, response: client_response, address: client_ip }
  // All responses of published test keys have the same text, and were solved on no page.
  if (CAPTCHA_TEST_SECRETS.has(secret_key)) {
    if ((await ctx.askProvider(provider, question)) !== null) return true
    throw failed(captcha, 'response')
  }
  const key = seat_key === null ? null : `${namespace_id} ${seat_key}`
  const solve = () => spendResponse({ ctx, askProvider: ctx.askProvider }, provider, key, question)
  const solved = await (key === null ? solve() : shared(ctx.solving, `${key} ${client_response}`, solve))
  if (solved === null) throw failed(captcha, 'response')
  const { hostname, action } = solved
  if (hostname === null || !(await isOwnHost(ctx, namespace_id, hostname))) throw failed(captcha, 'hostname')
  const wanted_action = provider === 'turnstile' ? captcha.turnstile?.action : undefined
  if (wanted_action !== undefined && action !== wanted_action) throw failed(captcha, 'action')
  return true
}

/** `reason`: what was wrong: the response, or the page or the action that it was solved for. */
function failed(captcha: CaptchaConfig, reason: 'response' | 'hostname' | 'action'): ApiError {
  return new ApiError('CAPTCHA_CAPTCHA_FAILED', { ...metadataOf(captcha), reason })
}

/** Calls that repeat a request under way share its check. */
function shared(
  solving: MatchmakerContext['solving'],
  key: string,
  solve: () => Promise<Solved | null>,
): Promise<Solved | null> {
  const under_way = solving.get(key)
  if (under_way !== undefined) return under_way
  const solved = solve().finally(() => solving.delete(key))
  solving.set(key, solved)
  return solved
}
