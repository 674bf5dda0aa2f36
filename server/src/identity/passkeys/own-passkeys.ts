// The passkeys of the person who calls: added, listed, renamed and removed. An administrator removes those of a person who has
// lost them.
import {
  ApiError,
  type addPasskey as addOperation,
  type BodyOf,
  PASSKEYS_MAX,
  type Passkey,
  type ResponseOf,
  type startPasskey as startOperation,
} from '@musterhost/contract'
import type { Transaction } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context, Database } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { newId } from '../../ids.ts'
import type { CallerOf } from '../../tokens/caller.ts'
import { CHALLENGE_MS_MAX, newChallenge, passkeyRefused, requireRelyingParty, spendChallenge } from './challenges.ts'
import { ALGORITHMS, checkRegistration, type NewKey } from './webauthn.ts'

type Person = CallerOf<'admin' | 'user'>

const PLATFORM_NAME = 'Muster'
const PASSKEY_COLUMNS = ['passkey_id', 'name', 'signs_in', 'create_ts', 'use_ts'] as const

export async function listPasskeys(ctx: Context, { user_id }: Person): Promise<{ passkeys: Passkey[] }> {
  if (user_id === null) return { passkeys: [] }
  const rows = await ctx.db
    .selectFrom('passkeys')
    .select(PASSKEY_COLUMNS)
    .where('user_id', '=', user_id)
    .orderBy('create_ts', 'desc')
    .orderBy('passkey_id', 'desc')
    .limit(PASSKEYS_MAX)
    .execute()
  return { passkeys: rows.map(passkeyOf) }
}

/** Throws PASSKEY_UNAVAILABLE, PASSKEY_LIMIT_REACHED, and API_FORBIDDEN for a caller without a session. */
export async function startPasskey(ctx: Context, caller: Person): Promise<ResponseOf<typeof startOperation>> {
  const party = requireRelyingParty(ctx.config)
  const { user_id, session_id } = requirePersonSession(caller)
  const known = await credentialsOf(ctx.db, user_id)
  if (known.length >= PASSKEYS_MAX) throw new ApiError('PASSKEY_LIMIT_REACHED')
  const { email, display_name } = await ctx.db
    .selectFrom('users')
    .select(['email', 'display_name'])
    .where('user_id', '=', user_id)
    .executeTakeFirstOrThrow()
  const { challenge, state } = newChallenge(ctx, { use: 'add', session_id })
  const options = {
    rp: { id: party.id, name: PLATFORM_NAME },
    user: { id: userHandle(user_id), name: email ?? display_name, displayName: display_name },
    challenge,
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key' as const, alg })),
    timeout: CHALLENGE_MS_MAX,
    excludeCredentials: known,
    authenticatorSelection: {
      residentKey: 'required' as const,
      requireResidentKey: true as const,
      userVerification: 'required' as const,
    },
    attestation: 'none' as const,
  }
  return { state, options }
}

/** Throws PASSKEY_UNAVAILABLE, PASSKEY_LIMIT_REACHED and PASSKEY_REFUSED. */
export async function addPasskey(
  ctx: ChangeContext,
  caller: Person,
  { state, name, credential }: BodyOf<typeof addOperation>,
): Promise<{ passkey: Passkey }> {
  const party = requireRelyingParty(ctx.config)
  const { user_id, session_id } = requirePersonSession(caller)
  const challenge = await spendChallenge(ctx, state, { use: 'add', session_id })
  const key = await checkRegistration(credential, { challenge, party })
  const transports = [...new Set(credential.response.transports ?? [])]
  return changes(ctx, {}, async (trx) => {
    const passkey = await insertPasskey(ctx, trx, { user_id, session_id, name, key, transports })
    return { before: {}, after: passkey, passkey }
  }).then(({ passkey }) => ({ passkey }))
}

async function insertPasskey(
  ctx: Context,
  trx: Transaction<Schema>,
  given: { user_id: string; session_id: string; name: string; key: NewKey; transports: string[] },
): Promise<Passkey> {
  const { user_id, session_id, name, key, transports } = given
  // Two calls at once would both find room.
  await trx.selectFrom('users').select('user_id').where('user_id', '=', user_id).forUpdate().executeTakeFirstOrThrow()
  const known = await credentialsOf(trx, user_id)
  if (known.length >= PASSKEYS_MAX) throw new ApiError('PASSKEY_LIMIT_REACHED')
  const { access_token_id, provider_id } = await trx
    .selectFrom('user_sessions')
    .select(['access_token_id', 'provider_id'])
    .where('session_id', '=', session_id)
    .executeTakeFirstOrThrow()
  const now = new Date(ctx.now())
  const row = await trx
    .insertInto('passkeys')
    .values({
      passkey_id: newId(ctx.now()),
      user_id,
      ...key,
      transports,
      name,
      access_token_id,
      // The provider decides whether a person may still sign in. A passkey would outlast its decision.
      signs_in: provider_id === null,
      create_ts: now,
    })
    .onConflict((conflict) => conflict.column('credential_id').doNothing())
    .returning(PASSKEY_COLUMNS)
    .executeTakeFirst()
  if (row === undefined) throw passkeyRefused('used', 'This passkey was added before. Use another authenticator.')
  return passkeyOf(row)
}

/** Throws PASSKEY_NOT_FOUND, also for a passkey of another person. */
export async function renamePasskey(
  ctx: ChangeContext,
  { user_id }: Person,
  passkey_id: string,
  name: string,
): Promise<void> {
  await changes(ctx, {}, async (trx) => {
    const before = await requireOwn(trx, user_id, passkey_id)
    await trx.updateTable('passkeys').set({ name }).where('passkey_id', '=', passkey_id).execute()
    return { before: { passkey_id, name: before.name }, after: { passkey_id, name } }
  })
}

/** Throws PASSKEY_NOT_FOUND, also for a passkey of another person. The calling session stays. */
export async function removePasskey(
  ctx: ChangeContext,
  { user_id, session_id }: Person,
  passkey_id: string,
): Promise<{ ended_count: number }> {
  const { ended_count } = await changes(ctx, {}, async (trx) => {
    const { name } = await requireOwn(trx, user_id, passkey_id)
    await trx.deleteFrom('passkeys').where('passkey_id', '=', passkey_id).execute()
    const ended_count = await endSessionsOf(ctx, trx, [passkey_id], session_id)
    return { before: { passkey_id, name }, after: { ended_count }, ended_count }
  })
  return { ended_count }
}

/** For an administrator: removes all passkeys of a person. A person without any is no error. */
export async function removePasskeysOf(
  ctx: ChangeContext,
  user_id: string,
): Promise<{ removed_count: number; ended_count: number }> {
  const { removed_count, ended_count } = await changes(ctx, {}, async (trx) => {
    const removed = await trx.deleteFrom('passkeys').where('user_id', '=', user_id).returning('passkey_id').execute()
    const ids = removed.map(({ passkey_id }) => passkey_id)
    const ended_count = await endSessionsOf(ctx, trx, ids, undefined)
    const after = { user_id, removed_count: removed.length, ended_count }
    return { before: {}, after, removed_count: removed.length, ended_count }
  })
  return { removed_count, ended_count }
}

/** The passkeys of a person as browsers take them. */
export async function credentialsOf(
  db: Database,
  user_id: string,
): Promise<{ id: string; type: 'public-key'; transports: string[] }[]> {
  const rows = await db
    .selectFrom('passkeys')
    .select(['credential_id', 'transports'])
    .where('user_id', '=', user_id)
    .limit(PASSKEYS_MAX)
    .execute()
  return rows.map(({ credential_id, transports }) => ({
    id: credential_id.toString('base64url'),
    type: 'public-key',
    transports,
  }))
}

/** Throws API_FORBIDDEN for a token that belongs to no session. */
export function requirePersonSession({ user_id, session_id }: Person): { user_id: string; session_id: string } {
  if (user_id !== null && session_id !== undefined) return { user_id, session_id }
  const message = 'Passkeys are for people who have logged in. Sign in at the hub.'
  throw new ApiError('API_FORBIDDEN', {}, { message })
}

/** Sixteen bytes, the same for all passkeys of the person. */
export function userHandle(user_id: string): string {
  return Buffer.from(user_id.replaceAll('-', ''), 'hex').toString('base64url')
}

async function requireOwn(
  trx: Transaction<Schema>,
  user_id: string | null,
  passkey_id: string,
): Promise<{ name: string }> {
  if (user_id === null) throw new ApiError('PASSKEY_NOT_FOUND')
  return trx
    .selectFrom('passkeys')
    .select('name')
    .where('passkey_id', '=', passkey_id)
    .where('user_id', '=', user_id)
    .forUpdate()
    .executeTakeFirstOrThrow(() => new ApiError('PASSKEY_NOT_FOUND'))
}

async function endSessionsOf(
  ctx: Context,
  trx: Transaction<Schema>,
  passkey_ids: readonly string[],
  kept: string | undefined,
): Promise<number> {
  if (passkey_ids.length === 0) return 0
  const ended = await trx
    .updateTable('user_sessions')
    .set({ end_ts: new Date(ctx.now()) })
    .where('passkey_id', 'in', passkey_ids)
    .where('end_ts', 'is', null)
    .$if(kept !== undefined, (query) => query.where('session_id', '<>', kept!))
    .returning('session_id')
    .execute()
  return ended.length
}

function passkeyOf(row: {
  passkey_id: string
  name: string
  signs_in: boolean
  create_ts: Date
  use_ts: Date | null
}): Passkey {
  const { passkey_id, name, signs_in, create_ts, use_ts } = row
  return {
    passkey_id,
    name,
    signs_in,
    create_ts: create_ts.toISOString(),
    ...(use_ts === null ? {} : { use_ts: use_ts.toISOString() }),
  }
}
