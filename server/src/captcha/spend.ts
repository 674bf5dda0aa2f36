// Spends one captcha response: it is claimed, then checked by its provider. A response is valid once.
import type { CaptchaProvider } from '@musterhost/contract'
import type { Context } from '../context.ts'
import { answerClaim, claimResponse } from './claims.ts'
import type { AskProvider, Question, Solved } from './provider.ts'

const LOOPBACK = /^(?:(?:[a-z0-9-]+\.)*localhost|127\.0\.0\.1|\[::1\])$/

/**
 * Returns null unless the response is valid and this request is the first with it. `request`: identifies a request that may
 * be repeated. Throws CAPTCHA_PROVIDER_FAILED.
 */
export async function spendResponse(
  { ctx, askProvider }: { ctx: Context; askProvider: AskProvider },
  provider: CaptchaProvider,
  request: string | null,
  question: Question,
): Promise<Solved | null> {
  const claim = await claimResponse(ctx, provider, question.response, request)
  if (claim === null) return null
  const solved = await askProvider(provider, question)
  return (await answerClaim(ctx, claim)) ? solved : null
}

/** In development a captcha may be solved on a page of this machine. `host`: in lower case. */
export function isDevelopmentHost({ config }: Context, host: string): boolean {
  return config.mode === 'development' && LOOPBACK.test(host)
}
