// Why a sign-in with a provider failed, in plain words with the remedy. The page of the sign-in shows the message to the
// person, so it has no secret: no code, no token, and no response of the provider beyond its error code.
import { ApiError, shownName } from '@musterhost/contract'
import { FetchFailure } from '../../outbound/safe-fetch.ts'

/**
 * - `browser`: the sign-in did not begin in this browser, or too long ago.
 * - `state`: what came back does not belong to the sign-in, or was used before.
 * - `denied`: the person or the provider said no.
 * - `provider`: the provider cannot be reached, or its configuration is wrong.
 * - `token`: what the provider signed is not valid.
 * - `clock`: the clocks differ too much.
 * - `not_allowed`: the person has none of the values that this platform asks for.
 */
type SignInReason = 'browser' | 'state' | 'denied' | 'provider' | 'token' | 'clock' | 'not_allowed'

export function signInFailure(reason: SignInReason, message: string): ApiError {
  return new ApiError('SIGN_IN_FAILED', { reason }, { message })
}

/** Errors of both libraries have a code, and the reason in the message or in the cause. */
type LibraryError = Error & {
  code?: string
  error?: string
  claim?: string
  status?: number
  cause?: { claim?: string; error?: string } | URLSearchParams
}

/** Errors of the token endpoint and of the authorization endpoint, with what an administrator does about them. */
const REMEDIES: Readonly<Record<string, string>> = {
  invalid_client: 'The client id or the client secret is wrong. An administrator sets them again.',
  unauthorized_client: 'The provider does not allow this client the authorization code flow. Allow it there.',
  invalid_grant: 'The code was used before or has expired, or the redirect URI differs. Sign in again.',
  invalid_scope: 'The provider does not know one of the scopes. An administrator changes them.',
  invalid_request: 'The redirect URI may be missing at the provider. Register the one that the provider page shows.',
  access_denied: 'The sign-in was cancelled, or the provider does not let this person in.',
  login_required: 'Sign in again.',
  temporarily_unavailable: 'The provider is busy. Try again in a minute.',
  server_error: 'The provider has a fault. Try again later.',
}
const CLOCKS = 'Set the clocks of the platform and of the provider by NTP.'

/** `title`: the name of the provider. An ApiError stays as it is. */
export function explainFailure(failure: unknown, title: string): unknown {
  if (failure instanceof ApiError) return failure
  if (failure instanceof FetchFailure) return fetchFailure(failure, title)
  if (!(failure instanceof Error)) return failure
  const error = failure as LibraryError
  const code = error.code ?? ''
  if (code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR') return refusal('denied', title, error.error)
  if (code === 'OAUTH_RESPONSE_BODY_ERROR' || code === 'OAUTH_WWW_AUTHENTICATE_CHALLENGE') {
    return refusal('provider', title, error.error ?? 'invalid_client')
  }
  if (code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED' || code === 'ERR_JWT_EXPIRED') {
    return signInFailure(
      'clock',
      `${title} sent a token that has expired, or is not valid yet. ${CLOCKS} Then sign in again.`,
    )
  }
  const claim = error.claim ?? (error.cause instanceof URLSearchParams ? undefined : error.cause?.claim)
  if (code === 'ERR_JWT_CLAIM_VALIDATION_FAILED' && (claim === 'iat' || claim === 'nbf' || claim === 'exp')) {
    return signInFailure('clock', `${title} sent a token of another time. ${CLOCKS} Then sign in again.`)
  }
  if (code === 'OAUTH_JWT_CLAIM_COMPARISON_FAILED' || code === 'ERR_JWT_CLAIM_VALIDATION_FAILED') {
    return signInFailure(
      'token',
      `${title} sent a token that is not for this sign-in (${shownName(claim ?? 'claim')}). ${AGAIN}`,
    )
  }
  if (code === 'ERR_JWKS_NO_MATCHING_KEY' || code === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS') {
    return signInFailure('token', `${title} signed with a key that it does not publish. Try again in a minute.`)
  }
  if (code === 'ERR_JWKS_TIMEOUT')
    return fetchFailure(new FetchFailure('timeout', 'Its keys did not arrive in time.'), title)
  if (code.startsWith('ERR_J')) {
    return signInFailure('token', `${title} sent a token with an invalid signature, or none that is accepted. ${AGAIN}`)
  }
  if (code.startsWith('OAUTH_')) {
    return signInFailure(
      'provider',
      `${title} sent a response that is not as OpenID Connect says: ${oneLine(error.message)}. ${CHECK}`,
    )
  }
  return failure
}

const AGAIN = 'Sign in again. If this stays, an administrator checks the provider.'
const CHECK = 'An administrator checks the issuer of the provider.'

function refusal(reason: SignInReason, title: string, error: string | undefined): ApiError {
  const code = error ?? 'unknown'
  const remedy = REMEDIES[code] ?? AGAIN
  return signInFailure(reason, `${title} refused the sign-in (${shownName(code)}). ${remedy}`)
}

function fetchFailure({ reason, message }: FetchFailure, title: string): ApiError {
  const remedy =
    reason === 'address_not_public'
      ? 'The operator allows its network in MUSTER_FETCH_PRIVATE_NETWORKS.'
      : reason === 'url'
        ? CHECK
        : 'Try again; if this stays, an administrator checks the provider.'
  return signInFailure('provider', `${title} cannot be used: ${message} ${remedy}`)
}

/** Characters of a library's message that are shown. */
const MESSAGE_LENGTH_MAX = 200

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').slice(0, MESSAGE_LENGTH_MAX)
}
