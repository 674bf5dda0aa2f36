// Passkeys in the browser: made, and used to sign in or to confirm. The browser shows its own dialog and keeps the private key.
import type { addPasskey as add, BodyOf, completeConfirmation as complete } from '@musterhost/contract'
import { call, callAnonymously } from './call.ts'
import { CallError } from './call-error.ts'
import {
  addPasskey,
  completeConfirmation,
  completePasskeySignIn,
  startConfirmation,
  startPasskey,
  startPasskeySignIn,
} from './operations.gen.ts'

type NewCredential = BodyOf<typeof add>['credential']
type UsedCredential = BodyOf<typeof complete>['credential']

const CANCELLED = 'No passkey was used. Press the button to try again.'

/** Whether this browser has passkeys at this address: it needs HTTPS, or localhost. */
export function hasPasskeys(): boolean {
  return typeof PublicKeyCredential === 'function' && 'parseRequestOptionsFromJSON' in PublicKeyCredential
}

/** Throws a CallError, also when the person cancels. */
export async function makePasskey(name: string): Promise<void> {
  const { state, options } = await call(startPasskey, {})
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(
    options as unknown as PublicKeyCredentialCreationOptionsJSON,
  )
  const made = await navigator.credentials.create({ publicKey }).catch(explainAs(CANCELLED))
  await call(addPasskey, { body: { state, name, credential: jsonOf(made) as NewCredential } })
}

/** Sets the cookie of a new session. Throws a CallError, also when the person cancels. */
export async function signInByPasskey(): Promise<void> {
  const { state, options } = await callAnonymously(startPasskeySignIn, {})
  const credential = await use(options)
  await callAnonymously(completePasskeySignIn, { body: { state, credential } })
}

const UNCONFIRMED =
  'This must be confirmed with your passkey, and none was used. Nothing was changed. Press the button to try again.'

/** Confirms the session for five minutes. Throws a CallError, also when the person cancels. */
export async function confirmByPasskey(): Promise<void> {
  const { state, options } = await call(startConfirmation, {})
  const credential = await use(options, UNCONFIRMED)
  await call(completeConfirmation, { body: { state, credential } })
}

/** `cancelled`: what the person reads when no passkey was used. */
async function use(options: object, cancelled = CANCELLED): Promise<UsedCredential> {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as PublicKeyCredentialRequestOptionsJSON)
  return jsonOf(await navigator.credentials.get({ publicKey }).catch(explainAs(cancelled))) as UsedCredential
}

function jsonOf(credential: Credential | null): unknown {
  if (credential instanceof PublicKeyCredential) return credential.toJSON()
  throw new CallError('PASSKEY_NOT_USED', 'The browser returned no passkey. Try again.')
}

/** The browser does not say whether the person cancelled, waited too long, or has no passkey here. */
function explainAs(cancelled: string): (error: unknown) => never {
  return (error) => {
    const name = error instanceof DOMException ? error.name : ''
    if (name === 'NotAllowedError') throw new CallError('PASSKEY_NOT_USED', cancelled)
    if (name === 'InvalidStateError') {
      throw new CallError('PASSKEY_NOT_USED', 'This device has a passkey of yours already. Use another device or key.')
    }
    throw new CallError('PASSKEY_NOT_USED', `The browser could not use a passkey: ${String(error)}`)
  }
}
