// The two uses of a passkey: to sign in, and to confirm a session before an operation that destroys.
import {
  ApiError,
  type BodyOf,
  type completePasskeySignIn,
  type PasskeyAssertion,
  type ResponseOf,
  type startPasskeySignIn,
} from '@musterhost/contract'
import type { Selectable, Transaction } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import { type Device, openSession, type UserSession } from '../sessions.ts'
import {
  CHALLENGE_MS_MAX,
  newChallenge,
  passkeyRefused,
  type RelyingParty,
  requireRelyingParty,
  spendChallenge,
} from './challenges.ts'
import { CONFIRMATION_MS } from './confirmation.ts'
import { credentialsOf, requirePersonSession, userHandle } from './own-passkeys.ts'
import { checkAssertion } from './webauthn.ts'

type Request = ResponseOf<typeof startPasskeySignIn>
type Response = BodyOf<typeof completePasskeySignIn>
type StoredPasskey = Selectable<Schema['passkeys']>

/** Throws PASSKEY_UNAVAILABLE. */
export function startSignIn(ctx: Context): Request {
  const party = requireRelyingParty(ctx.config)
  const { challenge, state } = newChallenge(ctx, { use: 'sign_in', session_id: null })
  return { state, options: optionsOf(party, challenge, []) }
}

/** Throws PASSKEY_UNAVAILABLE and PASSKEY_REFUSED. */
export async function completeSignIn(
  ctx: ChangeContext,
  { state, credential }: Response,
  device: Device,
): Promise<UserSession> {
  const party = requireRelyingParty(ctx.config)
  const challenge = await spendChallenge(ctx, state, { use: 'sign_in', session_id: null })
  const passkey = await requireStored(ctx, credential)
  // An authenticator that finds a passkey without a list always says of which person.
  if (credential.response.userHandle !== userHandle(passkey.user_id)) {
    throw passkeyRefused('unknown', 'The passkey is of another person than the response says. Begin again.')
  }
  if (!passkey.signs_in) {
    const message =
      'This passkey was added in a session of a provider of sign-ins, which decides who signs in. Sign in with the provider. The passkey confirms afterwards.'
    throw passkeyRefused('not_for_sign_in', message)
  }
  const { access_token_id } = passkey
  if (access_token_id !== null && ctx.revoked.has(access_token_id)) {
    const message = 'The access token with which this passkey was added was revoked. Sign in another way.'
    throw passkeyRefused('not_for_sign_in', message)
  }
  const sign_count = await checkAssertion(credential, { challenge, party }, passkey)
  const { session } = await changes(ctx, {}, async (trx) => {
    await noteUse(ctx, trx, passkey, sign_count)
    const { user_id, passkey_id, name } = passkey
    const session = await openSession(ctx, trx, { user_id, access_token_id, device, passkey_id })
    const { access_name } = await trx
      .selectFrom('users')
      .select('access_name')
      .where('user_id', '=', user_id)
      .executeTakeFirstOrThrow()
    const { session_id } = session
    const actor = {
      actor_kind: access_name === null ? 'user' : 'admin',
      user_id,
      ...(access_name === null ? {} : { actor_name: access_name }),
      token_id: session_id,
    }
    return { before: {}, after: { passkey_id, name, session_id }, actor, session }
  })
  return session
}

/** Throws PASSKEY_UNAVAILABLE, PASSKEY_NOT_FOUND when the person has none, and API_FORBIDDEN without a session. */
export async function startConfirmation(ctx: Context, caller: CallerOf<'admin' | 'user'>): Promise<Request> {
  const party = requireRelyingParty(ctx.config)
  const { user_id, session_id } = requirePersonSession(caller)
  const known = await credentialsOf(ctx.db, user_id)
  if (known.length === 0) throw new ApiError('PASSKEY_NOT_FOUND')
  const { challenge, state } = newChallenge(ctx, { use: 'confirm', session_id })
  return { state, options: optionsOf(party, challenge, known) }
}

/** Throws PASSKEY_UNAVAILABLE and PASSKEY_REFUSED. `until_ts`: when the confirmation ends. */
export async function completeConfirmation(
  ctx: ChangeContext,
  caller: CallerOf<'admin' | 'user'>,
  { state, credential }: Response,
): Promise<{ until_ts: string }> {
  const party = requireRelyingParty(ctx.config)
  const { user_id, session_id } = requirePersonSession(caller)
  const challenge = await spendChallenge(ctx, state, { use: 'confirm', session_id })
  const passkey = await requireStored(ctx, credential)
  if (passkey.user_id !== user_id) throw passkeyRefused('unknown', 'This passkey is not yours. Use one of your own.')
  const sign_count = await checkAssertion(credential, { challenge, party }, passkey)
  const now = ctx.now()
  const until_ts = new Date(now + CONFIRMATION_MS).toISOString()
  await changes(ctx, {}, async (trx) => {
    await noteUse(ctx, trx, passkey, sign_count)
    await trx
      .updateTable('user_sessions')
      .set({ confirm_ts: new Date(now) })
      .where('session_id', '=', session_id)
      .execute()
    return { before: {}, after: { passkey_id: passkey.passkey_id, name: passkey.name, until_ts } }
  })
  return { until_ts }
}

function optionsOf({ id }: RelyingParty, challenge: string, known: Request['options']['allowCredentials']) {
  return {
    rpId: id,
    challenge,
    timeout: CHALLENGE_MS_MAX,
    allowCredentials: known,
    userVerification: 'required' as const,
  }
}

async function requireStored(ctx: Context, { id }: PasskeyAssertion): Promise<StoredPasskey> {
  return ctx.db
    .selectFrom('passkeys')
    .selectAll()
    .where('credential_id', '=', Buffer.from(id, 'base64url'))
    .executeTakeFirstOrThrow(() =>
      passkeyRefused('unknown', 'This platform does not know the passkey, or it was removed. Sign in another way.'),
    )
}

/** Throws PASSKEY_REFUSED when another use has moved the counter, or the passkey is gone. */
async function noteUse(
  ctx: Context,
  trx: Transaction<Schema>,
  passkey: StoredPasskey,
  sign_count: number,
): Promise<void> {
  const { numUpdatedRows } = await trx
    .updateTable('passkeys')
    .set({ sign_count, use_ts: new Date(ctx.now()) })
    .where('passkey_id', '=', passkey.passkey_id)
    .where('sign_count', '=', passkey.sign_count)
    .executeTakeFirst()
  if (numUpdatedRows === 1n) return
  throw passkeyRefused('counter', 'The passkey was used or removed at the same moment. Begin again.')
}
