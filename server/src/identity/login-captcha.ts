// The captcha that a login by e-mail requires, where the operator has configured Turnstile. It counts only when it was
// solved on the main domain, where people log in.
import { ApiError, CAPTCHA_TEST_SECRETS } from '@musterhost/contract'
import type { AskProvider } from '../captcha/provider.ts'
import { isDevelopmentHost, spendResponse } from '../captcha/spend.ts'
import type { Context } from '../context.ts'

/**
 * `response`: of the captcha's widget; null when the client sent none. Throws CAPTCHA_CAPTCHA_INVALID,
 * CAPTCHA_CAPTCHA_FAILED or CAPTCHA_PROVIDER_FAILED.
 */
export async function requireLoginCaptcha(
  ctx: Context,
  askProvider: AskProvider,
  client_ip: string,
  response: string | null,
): Promise<void> {
  const keys = ctx.config.login_turnstile
  if (keys === null) return
  const turnstile = { site_key: keys.site_key }
  if (response === null) {
    const message = 'A login by e-mail requires the response of a Turnstile captcha.'
    throw new ApiError('CAPTCHA_CAPTCHA_INVALID', { turnstile }, { message })
  }
  const failed = (reason: 'response' | 'hostname') => new ApiError('CAPTCHA_CAPTCHA_FAILED', { turnstile, reason })
  const question = { ...keys, namespace_id: null, response, address: client_ip }
  // Responses of published test keys share one text and belong to no page.
  if (CAPTCHA_TEST_SECRETS.has(keys.secret_key)) {
    if ((await askProvider('turnstile', question)) === null) throw failed('response')
    return
  }
  const solved = await spendResponse({ ctx, askProvider }, 'turnstile', null, question)
  if (solved === null) throw failed('response')
  const host = solved.hostname?.toLowerCase() ?? ''
  if (host !== ctx.config.domains.main && !isDevelopmentHost(ctx, host)) throw failed('hostname')
}
