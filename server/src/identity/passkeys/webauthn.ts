// What the library of WebAuthn checks: that the response belongs to the challenge, to the page of the hub and to the person's
// authenticator, which has verified the person. The first check loads the library.
import type { PasskeyAssertion, PasskeyRegistration } from '@musterhost/contract'
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { passkeyRefused, type RelyingParty } from './challenges.ts'

/** COSE numbers of EdDSA, ES256 and RS256: every authenticator has one. */
export const ALGORITHMS: readonly number[] = [-8, -7, -257]

type Expected = { challenge: string; party: RelyingParty }
export type NewKey = { credential_id: Buffer; public_key: Buffer; sign_count: number }
type KnownKey = { credential_id: Buffer; public_key: Buffer; sign_count: number }

/** Throws PASSKEY_REFUSED. */
export async function checkRegistration(
  credential: PasskeyRegistration,
  { challenge, party }: Expected,
): Promise<NewKey> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  await refuseCertificates(credential)
  const { verified, registrationInfo } = await verifyRegistrationResponse({
    response: credential as RegistrationResponseJSON,
    expectedChallenge: challenge,
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    requireUserVerification: true,
    supportedAlgorithmIDs: [...ALGORITHMS],
  }).catch(refuse)
  if (!verified) throw passkeyRefused('response', 'The authenticator did not sign the new passkey. Begin again.')
  const { id, publicKey, counter } = registrationInfo.credential
  return { credential_id: Buffer.from(id, 'base64url'), public_key: Buffer.from(publicKey), sign_count: counter }
}

/** Returns the new counter of the authenticator. Throws PASSKEY_REFUSED. */
export async function checkAssertion(
  credential: PasskeyAssertion,
  { challenge, party }: Expected,
  { credential_id, public_key, sign_count }: KnownKey,
): Promise<number> {
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    response: credential as AuthenticationResponseJSON,
    expectedChallenge: challenge,
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    requireUserVerification: true,
    credential: {
      id: credential_id.toString('base64url'),
      publicKey: new Uint8Array(public_key),
      // The counter is compared by the caller, which names its remedy.
      counter: 0,
    },
  }).catch(refuse)
  if (!verified) throw passkeyRefused('response', 'The signature is not of this passkey. Begin again.')
  const { newCounter } = authenticationInfo
  if ((newCounter > 0 || sign_count > 0) && newCounter <= sign_count) {
    const message =
      'The counter of the authenticator went back, so there may be a copy of this passkey. Remove it, and add another.'
    throw passkeyRefused('counter', message)
  }
  return newCounter
}

/**
 * The platform asks for no attestation. The library would fetch the lists of revoked certificates that a certificate names, at
 * any address, so a response with a certificate is refused.
 */
async function refuseCertificates({ response }: PasskeyRegistration): Promise<void> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  let is_plain: boolean
  try {
    const attestation = decodeAttestationObject(new Uint8Array(Buffer.from(response.attestationObject, 'base64url')))
    const format = attestation.get('fmt')
    is_plain = format === 'none' || (format === 'packed' && attestation.get('attStmt').get('x5c') === undefined)
  } catch {
    is_plain = false
  }
  if (is_plain) return
  throw passkeyRefused('response', 'The response has an attestation, which was not asked for. Begin again.')
}

function refuse(error: unknown): never {
  const problem = error instanceof Error ? error.message : String(error)
  throw passkeyRefused('response', `The response of the authenticator is not valid: ${problem}. Begin again.`)
}
