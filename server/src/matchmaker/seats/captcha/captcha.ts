// Captcha, the story: a version that has one lets a client in who comes with a solved one, and then for a number of
// requests and a time without. Who has solved one is a fact of the book (captcha-memory.ts), asked and counted in the
// very command that takes the seat: exact, durable with the seat, and no row of the journal more. Nothing is reserved or
// created before it.
import {
  ApiError,
  CAPTCHA_PROVIDERS,
  CAPTCHA_TEST_SECRETS,
  type CaptchaConfig,
  type ErrorMetadata,
} from '@muster/contract'
import type { AskProvider, Solved } from '../../../captcha/provider.ts'
import { spendResponse } from '../../../captcha/spend.ts'
import type { Context } from '../../../context.ts'
import type { Decision, Env, FreshIds, SeatWish } from '../../book/commands.ts'
import * as decide from '../../book/decide.ts'
import type { Book } from '../../book/state.ts'
import type { Books } from '../../shards/books.ts'
import { isOwnHost } from './hosts.ts'

/** What a request may bring along, as the contract has it. */
export type CaptchaResponses = Partial<Record<(typeof CAPTCHA_PROVIDERS)[number], { client_response: string }>>

/** What the book is asked before it gives a seat. */
export type CaptchaGate = { captcha: CaptchaConfig; has_solved: boolean }

type MatchmakerContext = { ctx: Context; books: Books; askProvider: AskProvider; solving: Solving }
/** Captchas that are being checked, by request and response. */
export type Solving = Map<string, Promise<Solved | null>>
type Request = { namespace_id: string; address: string; seat_key: string | null }
type Command<T> = (book: Book, ids: FreshIds, env: Env) => Decision<T>

/**
 * Looks at the response that came along; at once where none did, as with nearly all requests. Throws
 * CAPTCHA_CAPTCHA_INVALID, CAPTCHA_CAPTCHA_FAILED or CAPTCHA_PROVIDER_FAILED.
 */
export function openGate(
  desk: MatchmakerContext,
  captcha: CaptchaConfig,
  request: Request,
  responses: CaptchaResponses | undefined,
): CaptchaGate | Promise<CaptchaGate> {
  if (responses === undefined) return { captcha, has_solved: false }
  return hasSolved(desk, captcha, request, responses).then((has_solved) => ({ captcha, has_solved }))
}

/** The command, behind the gate. A repetition of what was answered before passes as it did then. */
export function gated<T>({ captcha, has_solved }: CaptchaGate, wish: SeatWish, command: Command<T>): Command<T> {
  const { requests_before_reverify, verification_ttl: verification_ttl_ms } = captcha
  return (book, ids, env) => {
    if (book.hasSeat(wish.seat_key, env.now_ms)) return command(book, ids, env)
    const rules = { requests_before_reverify, verification_ttl_ms }
    const admission = decide.admit(book, wish.client, rules, has_solved, env.now_ms)
    if ('refused' in admission) return { ...admission, metadata: metadataOf(captcha) }
    const decision = command(book, ids, env)
    // A request counts, and a captcha is solved, also where there is no seat.
    if ('refused' in decision) return { ...decision, noted: admission.changes }
    return { changes: admission.changes.concat(decision.changes), result: decision.result }
  }
}

/** What a client needs to show the captcha; never a secret. Of two providers the first is named. */
function metadataOf({ hcaptcha, turnstile }: CaptchaConfig): ErrorMetadata {
  if (hcaptcha !== undefined) return { hcaptcha: { site_id: hcaptcha.site_key, site_key: hcaptcha.site_key } }
  if (turnstile === undefined) return {}
  const { site_key, action } = turnstile
  return { turnstile: { site_key, ...(action !== undefined && { action }) } }
}

async function hasSolved(
  desk: MatchmakerContext,
  captcha: CaptchaConfig,
  { namespace_id, address, seat_key }: Request,
  responses: CaptchaResponses,
): Promise<boolean> {
  const sent = CAPTCHA_PROVIDERS.filter((provider) => responses[provider] !== undefined)
  const provider = sent.find((name) => captcha[name] !== undefined)
  if (provider === undefined) {
    if (sent.length > 0) throw new ApiError('CAPTCHA_CAPTCHA_INVALID', metadataOf(captcha))
    return false
  }
  // A repetition whose first answer was lost: its response is spent, and it needs none.
  if (desk.books.book(namespace_id)?.hasSeat(seat_key, desk.books.nowMs())) return false
  const { client_response } = responses[provider]!
  const keys = captcha[provider]!
  const { site_key, secret_key } = keys
  const question = { site_key, secret_key, namespace_id, response: client_response, address }
  // Responses of published test keys share one text, and were solved nowhere.
  if (CAPTCHA_TEST_SECRETS.has(secret_key)) {
    if ((await desk.askProvider(provider, question)) !== null) return true
    throw failed(captcha, 'response')
  }
  const request = seat_key === null ? null : `${namespace_id} ${seat_key}`
  const solve = () => spendResponse(desk, provider, request, question)
  const solved = await (request === null ? solve() : shared(desk.solving, `${request} ${client_response}`, solve))
  if (solved === null) throw failed(captcha, 'response')
  const { hostname, action } = solved
  if (hostname === null || !(await isOwnHost(desk.ctx, namespace_id, hostname))) throw failed(captcha, 'hostname')
  const wanted_action = provider === 'turnstile' ? captcha.turnstile?.action : undefined
  if (wanted_action !== undefined && action !== wanted_action) throw failed(captcha, 'action')
  return true
}

/** `reason`: what was wrong; the response itself, or the page or the action that it was solved for. */
function failed(captcha: CaptchaConfig, reason: 'response' | 'hostname' | 'action'): ApiError {
  return new ApiError('CAPTCHA_CAPTCHA_FAILED', { ...metadataOf(captcha), reason })
}

/** A request that is repeated while it is under way is one request. */
function shared(solving: Solving, key: string, solve: () => Promise<Solved | null>): Promise<Solved | null> {
  const under_way = solving.get(key)
  if (under_way !== undefined) return under_way
  const solved = solve().finally(() => solving.delete(key))
  solving.set(key, solved)
  return solved
}
