// Asks captcha providers whether a response is valid. It fails closed: without a documented answer of the provider, no
// request passes. After repeated failures a provider is not asked for a time (the circuit is open). Then one request at a
// time asks it until it answers again. Refused clients receive the time to retry after.
import { ApiError, CAPTCHA_TEST_SECRETS, type CaptchaProvider } from '@musterhost/contract'
import type { Context } from '../context.ts'
import { CircuitBreaker } from '../outbound/circuit-breaker.ts'
import { createDns } from '../outbound/dns.ts'
import { parseNetworks } from '../outbound/public-address.ts'
import { FetchFailure, type FetchRules, safeFetch } from '../outbound/safe-fetch.ts'

/** Time limit of the whole call to a captcha provider, for which a player waits. */
const ANSWER_MS_MAX = 5_000
/** Bytes of a provider's response, which has some hundred. */
const ANSWER_BYTES_MAX = 64 * 1024
/** Requests to one provider under way. Bounds memory and connections. */
const QUESTIONS_MAX = 256
/** Failures in a row after which a provider is skipped for OPEN_MS. */
const FAILURES_MAX = 5
const OPEN_MS = 10_000
const RETRY_AFTER_S = 2
/** Retry time for a wrong secret, which the game's developer must correct. */
const MISCONFIGURED_RETRY_AFTER_S = 60

export type Question = {
  /** Null: a login to the platform. */
  namespace_id: string | null
  site_key: string
  secret_key: string
  response: string
  address: string
}

/** A valid response: the page on which it was solved, and its action. */
export type Solved = { hostname: string | null; action: string | null }

/** Returns null when the response is not valid. Throws CAPTCHA_PROVIDER_FAILED when the provider does not answer. */
export type AskProvider = (provider: CaptchaProvider, question: Question) => Promise<Solved | null>

export function createAskProvider(ctx: Context): AskProvider {
  const newBreaker = () => new CircuitBreaker({ failures_max: FAILURES_MAX, open_ms: OPEN_MS }, ctx.elapsed)
  const breakers: Record<CaptchaProvider, CircuitBreaker> = { hcaptcha: newBreaker(), turnstile: newBreaker() }
  const question_counts: Record<CaptchaProvider, number> = { hcaptcha: 0, turnstile: 0 }
  const rules = rulesOf(ctx)

  return async (provider, question) => {
    if (ctx.config.mode === 'production' && CAPTCHA_TEST_SECRETS.has(question.secret_key)) {
      throw misconfigured(ctx, provider, question, 'a published test secret')
    }
    const breaker = breakers[provider]
    if (question_counts[provider] >= QUESTIONS_MAX) throw failed(RETRY_AFTER_S)
    const call = breaker.enter()
    if (call === null) throw failed(Math.ceil(breaker.waitMs() / 1000))
    question_counts[provider]++
    try {
      const answer = await ask(ctx.config.captcha_urls[provider], question, rules)
      call.succeeded()
      if (answer.is_misconfigured) throw misconfigured(ctx, provider, question, answer.error_codes)
      return answer.solved
    } catch (error) {
      if (error instanceof ApiError) throw error
      call.failed()
      ctx.log.warn({ provider, is_open: breaker.isOpen(), reason: sentenceOf(error) }, 'captcha provider failed')
      throw failed(breaker.isOpen() ? OPEN_MS / 1000 : RETRY_AFTER_S)
    } finally {
      question_counts[provider]--
    }
  }
}

/** Asks about a response that no captcha has, so only the secret key decides. Throws a FetchFailure. */
export async function isSecretAccepted(
  ctx: Pick<Context, 'config' | 'trust'>,
  provider: CaptchaProvider,
  keys: Pick<Question, 'site_key' | 'secret_key'>,
): Promise<boolean> {
  const question: Question = { ...keys, namespace_id: null, response: 'muster-doctor', address: '127.0.0.1' }
  const { is_misconfigured } = await ask(ctx.config.captcha_urls[provider], question, rulesOf(ctx))
  return !is_misconfigured
}

function rulesOf({ config, trust }: Pick<Context, 'config' | 'trust'>): FetchRules {
  return {
    schemes: ['http', 'https'],
    names: createDns(config.dns_servers),
    // The addresses of providers come from the operator's settings.
    private_networks: parseNetworks(['0.0.0.0/0', '::/0']),
    own_ports: [],
    trust,
  }
}

type Answer = { solved: Solved | null; is_misconfigured: boolean; error_codes: string }

/** Both providers accept the same form, and return JSON with `success`. */
async function ask(url: string, question: Question, rules: FetchRules): Promise<Answer> {
  const form = new URLSearchParams({
    secret: question.secret_key,
    response: question.response,
    remoteip: question.address,
    sitekey: question.site_key,
  })
  const { status, body } = await safeFetch(
    {
      url,
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: form.toString(),
      timeout_ms: ANSWER_MS_MAX,
      body_bytes_max: ANSWER_BYTES_MAX,
    },
    rules,
  )
  if (status !== 200) throw new FetchFailure('protocol', `It answered with status ${status}.`)
  return answerOf(body.toString())
}

function answerOf(text: string): Answer {
  let answer: unknown
  try {
    answer = JSON.parse(text)
  } catch {
    throw new FetchFailure('protocol', 'It did not answer in JSON.')
  }
  const { success, hostname, action, 'error-codes': codes } = (answer ?? {}) as Record<string, unknown>
  if (typeof success !== 'boolean') throw new FetchFailure('protocol', 'Its answer does not say whether it is good.')
  const error_codes = Array.isArray(codes) ? codes.filter((code) => typeof code === 'string') : []
  if (error_codes.includes('internal-error')) throw new FetchFailure('protocol', 'It has an error of its own.')
  return {
    solved: success ? { hostname: textOf(hostname), action: textOf(action) } : null,
    is_misconfigured: !success && error_codes.some(isAboutSecret),
    error_codes: error_codes.join(' '),
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** The secret is missing, wrong or of another site, which no player can change. */
function isAboutSecret(code: string): boolean {
  return code.includes('secret')
}

function misconfigured(ctx: Context, provider: CaptchaProvider, { namespace_id }: Question, reason: string): ApiError {
  ctx.log.error({ provider, namespace_id, reason }, 'captcha provider does not accept the secret key of a captcha')
  return failed(MISCONFIGURED_RETRY_AFTER_S)
}

function failed(retry_after_s: number): ApiError {
  return new ApiError('CAPTCHA_PROVIDER_FAILED', {}, { retry_after_s })
}

function sentenceOf(error: unknown): string {
  return error instanceof FetchFailure ? error.message : String(error)
}
