// The check of an issuer, for the form of an administrator: what people would meet who sign in there.
import { ApiError, type checkSignInIssuer, type ResponseOf } from '@musterhost/contract'
import { explainFailure } from './failures.ts'
import { type Issuers, webUrl } from './issuers.ts'

type Found = ResponseOf<typeof checkSignInIssuer>
const TITLE = 'The issuer'

export async function check(issuers: Issuers, issuer: string): Promise<Found> {
  issuers.forget(issuer)
  try {
    const { as, keys } = await issuers.open(issuer)
    await keys.reload()
    const problem = problemOf(as)
    return {
      is_ok: problem === null,
      ...(problem === null ? {} : { problem }),
      authorization_endpoint: as.authorization_endpoint ?? '',
      key_count: keys.jwks()?.keys.length ?? 0,
      has_sign_out: webUrl(as.end_session_endpoint) !== null,
      has_backchannel_logout: as.backchannel_logout_supported === true,
    }
  } catch (error) {
    const explained = explainFailure(error, TITLE)
    if (!(explained instanceof ApiError)) throw explained
    return { is_ok: false, problem: explained.message }
  }
}

/** What the configuration lacks; null: nothing. */
function problemOf(as: {
  response_types_supported?: string[]
  code_challenge_methods_supported?: string[]
  id_token_signing_alg_values_supported?: string[]
  authorization_endpoint?: string
}): string | null {
  const { response_types_supported: types, code_challenge_methods_supported: methods } = as
  const algorithms = as.id_token_signing_alg_values_supported
  if (webUrl(as.authorization_endpoint) === null) return 'Its address to sign in at is not one of the web.'
  if (types !== undefined && !types.includes('code')) return 'It does not offer the authorization code flow.'
  if (methods !== undefined && !methods.includes('S256')) return 'It offers PKCE, but not with S256.'
  if (algorithms?.every((one) => one.startsWith('HS') || one === 'none')) {
    return 'It signs ID tokens only with the client secret. Choose RS256 or ES256 for the client there.'
  }
  return null
}
