// The providers of captchas, which verify a response. They fail closed: without a documented answer no client is admitted. A
// provider that keeps failing is not called for a while (open), then by one request at a time until it works again.
// Meanwhile clients receive an error that says when to try again.
import { ApiError, CAPTCHA_TEST_SECRETS, type CaptchaProvider } from '@muster/contract'
import type { Context } from '../context.ts'
import { CircuitBreaker } from '../outbound/circuit-breaker.ts'
import { createDns } from '../outbound/dns.ts'
import { parseNetworks } from '../outbound/public-address.ts'
import { FetchFailure, type FetchRules, safeFetch } from '../outbound/safe-fetch.ts'

/** For the whole call to a captcha provider. */
const ANSWER_MS_MAX = 5_000
/** Body of a provider's response. */
const ANSWER_BYTES_MAX = 64 * 1024
/** Questions to one provider that are under way. */
const QUESTIONS_MAX = 256
/** Failures in a row after which a provider is skipped for OPEN_MS. */
const FAILURES_MAX = 5
const OPEN_MS = 10_000
const RETRY_AFTER_S = 2
/** The game's developer must mend it: players need not hurry. */
const MISCONFIGURED_RETRY_AFTER_S = 60

export type Question = {
  /** Null: a login to the platform. */
  namespace_id: string | null
  site_key: string
  secret_key: string
  response: string
  address: string
}

/** What the provider says of a good response: on which page it was solved, for which action. */
export type Solved = { hostname: string | null; action: string | null }

/** Null when the response is not good. Throws CAPTCHA_PROVIDER_FAILED when that cannot be found out. */
export type AskProvider = (provider: CaptchaProvider, question: Question) => Promise<Solved | null>

export function createAskProvider(ctx: Context): AskProvider {
  const newBreaker = () => new CircuitBreaker({ failures_max: FAILURES_MAX, open_ms: OPEN_MS }, ctx.elapsed)
  const breakers: Record<CaptchaProvider, CircuitBreaker> = { hcaptcha: newBreaker(), turnstile: newBreaker() }
  const question_counts: Record<CaptchaProvider, number> = { hcaptcha: 0, turnstile: 0 }
  const rules: FetchRules = {
    schemes: ['http', 'https'],
    names: createDns(ctx.config.dns_servers),
    // Where providers are is the operator's own word.
    private_networks: parseNetworks(['0.0.0.0/0', '::/0']),
    own_ports: [],
    trust: ctx.trust,
  }

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
      if (answer.blames_us) throw misconfigured(ctx, provider, question, answer.error_codes)
      return answer.solved
    } catch (error) {
      if (error instanceof ApiError) throw error
      call.failed()
      ctx.log.warn({ provider, is_open: breaker.isOpen(), reason: sentenceOf(error) }, 'a captcha provider failed')
      throw failed(breaker.isOpen() ? OPEN_MS / 1000 : RETRY_AFTER_S)
    } finally {
      question_counts[provider]--
    }
  }
}

type Answer = { solved: Solved | null; blames_us: boolean; error_codes: string }

/** Both providers speak the same form, and answer JSON of which `success` decides. */
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
    blames_us: !success && error_codes.some(isAboutSecret),
    error_codes: error_codes.join(' '),
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** The secret is missing, wrong or of another site: no player can do anything about that. */
function isAboutSecret(code: string): boolean {
  return code.includes('secret')
}

function misconfigured(ctx: Context, provider: CaptchaProvider, { namespace_id }: Question, why: string): ApiError {
  ctx.log.error({ provider, namespace_id, why }, 'a captcha cannot work: the provider does not accept its secret key')
  return failed(MISCONFIGURED_RETRY_AFTER_S)
}

function failed(retry_after_s: number): ApiError {
  return new ApiError('CAPTCHA_PROVIDER_FAILED', {}, { retry_after_s })
}

function sentenceOf(error: unknown): string {
  return error instanceof FetchFailure ? error.message : String(error)
}
