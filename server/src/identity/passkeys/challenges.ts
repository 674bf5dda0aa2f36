// Challenges of passkeys. A challenge leaves sealed, with what it is for, and comes back with the response of the browser. So
// nothing is stored for a person who does not respond. It is spent before its response is checked: no response is tried twice.
import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { ApiError } from '@musterhost/contract'
import { mainUrl } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import type { Context } from '../../context.ts'
import { spendState } from '../spent-sign-ins.ts'

/** From the challenge to its response. */
export const CHALLENGE_MS_MAX = 5 * 60_000
const CHALLENGE_BYTES = 32
const PURPOSE = 'passkey challenge'

/** `session_id`: the session that asked; null for a sign-in. */
type Purpose = { use: 'add' | 'confirm'; session_id: string } | { use: 'sign_in'; session_id: null }
type SealedChallenge = Purpose & { challenge: string; expire_ms: number }

/** The platform as browsers and authenticators know it. */
export type RelyingParty = { id: string; origin: string }

/** Throws PASSKEY_UNAVAILABLE where browsers allow no passkeys for the hub. */
export function requireRelyingParty(config: Config): RelyingParty {
  const { protocol, hostname, origin } = new URL(mainUrl(config))
  const is_local = hostname === 'localhost' || hostname.endsWith('.localhost')
  const is_address = isIP(hostname) !== 0 || hostname.startsWith('[')
  if (is_address || (protocol !== 'https:' && !is_local)) {
    const message = `Passkeys need HTTPS and a host name, or localhost. The hub of this platform is ${origin}. Set MUSTER_DOMAIN_MAIN and MUSTER_PUBLIC_SCHEME=https.`
    throw new ApiError('PASSKEY_UNAVAILABLE', {}, { message })
  }
  return { id: hostname, origin }
}

/** `challenge`: what the authenticator signs. `state`: what comes back with the response. */
export function newChallenge(ctx: Context, purpose: Purpose): { challenge: string; state: string } {
  const challenge = randomBytes(CHALLENGE_BYTES).toString('base64url')
  const sealed: SealedChallenge = { ...purpose, challenge, expire_ms: ctx.now() + CHALLENGE_MS_MAX }
  return { challenge, state: ctx.seals.seal(PURPOSE, JSON.stringify(sealed), ctx.now()) }
}

/** Returns the challenge of `state`, which is now spent. Throws PASSKEY_REFUSED. */
export async function spendChallenge(ctx: Context, state: string, { use, session_id }: Purpose): Promise<string> {
  let sealed: SealedChallenge
  try {
    sealed = JSON.parse(ctx.seals.open(PURPOSE, state)) as SealedChallenge
  } catch {
    throw passkeyRefused('challenge', 'The challenge was not made by this platform. Begin again.')
  }
  if (sealed.use !== use || sealed.session_id !== session_id) {
    throw passkeyRefused('challenge', 'The challenge belongs to another session, or to another use. Begin again.')
  }
  if (sealed.expire_ms <= ctx.now()) {
    throw passkeyRefused('expired', 'The challenge is older than five minutes. Begin again.')
  }
  const is_new = await spendState(ctx, { state: sealed.challenge, expire_ms: sealed.expire_ms })
  if (!is_new) throw passkeyRefused('used', 'The challenge was used before. It is good once. Begin again.')
  return sealed.challenge
}

type RefusalReason = 'challenge' | 'expired' | 'used' | 'unknown' | 'not_for_sign_in' | 'counter' | 'response'

export function passkeyRefused(reason: RefusalReason, message: string): ApiError {
  return new ApiError('PASSKEY_REFUSED', { reason }, { message })
}
