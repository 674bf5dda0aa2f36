// Logging in by e-mail. A code is sent to an address, and a client that sends the code back is logged in as the user of that
// address. Both steps do the same work for known and unknown addresses. A new user is created with the right code, not
// before. A verification is: open -> complete, or out of attempts, or expired.
//
// Codes are counted by client key, and by client key and address together, so a client cannot use up the codes of another
// user. Guesses count against the verification, whose id only the requesting client knows.
import { timingSafeEqual } from 'node:crypto'
import { ApiError, type completeEmailVerification, type ResponseOf } from '@musterhost/contract'
import { sql, type Transaction } from 'kysely'
import { type ClientNetwork, clientNetworks } from '../addresses/client-networks.ts'
import { type ChangeContext, changes, recordFailure } from '../audit/changes.ts'
import { hasEmailLogin, mainUrl } from '../config/addresses.ts'
import type { Context } from '../context.ts'
import type { Schema } from '../database/schema.ts'
import { newId } from '../ids.ts'
import { newCode, readCode } from '../tokens/codes.ts'
import { type Device, openSession, type UserSession } from './sessions.ts'

const CODE_LENGTH = 8
const CODE_LIFETIME_MS = 15 * 60_000
/** Guesses of one login code. */
const ATTEMPTS_MAX = 4
/** The window in which codes are counted. */
const WINDOW_MS = 15 * 60_000
/** Codes to one address for one client key in the window. With four guesses each: twenty guesses out of 34^8. */
const CODES_PER_EMAIL_AND_CLIENT_MAX = 5
/** Codes to one address for all clients in the window. Beyond it each client key gets one code, to bound the mails. */
const CODES_PER_EMAIL_MAX = 20
/** Characters of a display name. */
const NAME_LENGTH_MAX = 24
const BUSY_RETRY_AFTER_S = 5

type Status = ResponseOf<typeof completeEmailVerification>['status']

/** Throws API_FORBIDDEN where codes cannot be sent. */
export function requireEmailLogin(ctx: Context): void {
  if (hasEmailLogin(ctx.config)) return
  const message =
    ctx.config.email_login === 'off'
      ? 'Log-in by e-mail is off on this platform (MUSTER_LOGIN_EMAIL). Sign in with one of its providers.'
      : 'This platform sends no e-mail (MUSTER_SMTP_URL is not set). Log in with an access token.'
  throw new ApiError('API_FORBIDDEN', {}, { message })
}

/** Throws API_RATE_LIMIT, or API_NOT_AVAILABLE when the mail cannot be sent. `client_key`: from addresses/client-ip.ts. */
export async function startEmailLogin(
  ctx: ChangeContext,
  client_key: string,
  given_email: string,
): Promise<{ verification_id: string }> {
  const email = given_email.toLowerCase()
  const now = ctx.now()
  const verification_id = newId(now)
  const code = newCode(CODE_LENGTH)
  const networks = clientNetworks(client_key)
  await changes(ctx, {}, async (trx) => {
    await requireRate(ctx, trx, networks, email)
    await trx
      .insertInto('email_verifications')
      .values({
        verification_id,
        email,
        client: client_key,
        networks: networks.map(({ key }) => key),
        code_hash: hashOf(ctx, verification_id, code),
        create_ts: new Date(now),
        expire_ts: new Date(now + CODE_LIFETIME_MS),
      })
      .execute()
    return { before: {}, after: { email } }
  })
  await deliver(ctx, client_key, email, code)
  return { verification_id }
}

/** `session`: null unless the status is `switch_identity`. */
export async function completeEmailLogin(
  ctx: ChangeContext,
  verification_id: string,
  typed_code: string,
  device: Device,
): Promise<{ status: Status; session: UserSession | null }> {
  const now = new Date(ctx.now())
  const attempt = await ctx.db
    .updateTable('email_verifications')
    .set((of) => ({ attempt_count: of('attempt_count', '+', 1) }))
    .where('verification_id', '=', verification_id)
    .where('complete_ts', 'is', null)
    .where('expire_ts', '>', now)
    .where('attempt_count', '<', ATTEMPTS_MAX)
    .returning(['email', 'code_hash'])
    .executeTakeFirst()
  if (attempt === undefined) return { status: await closedStatusOf(ctx, verification_id), session: null }
  if (!timingSafeEqual(attempt.code_hash, hashOf(ctx, verification_id, readCode(typed_code)))) {
    await recordFailure(ctx, 'incorrect', { email: attempt.email })
    return { status: 'incorrect', session: null }
  }
  const { session } = await changes(ctx, {}, async (trx) => {
    const { numUpdatedRows } = await trx
      .updateTable('email_verifications')
      .set({ complete_ts: now })
      .where('verification_id', '=', verification_id)
      .where('complete_ts', 'is', null)
      .executeTakeFirst()
    if (numUpdatedRows === 0n) return { before: {}, after: {}, session: null }
    const user = await userIdOf(ctx, trx, attempt.email)
    const session = await openSession(ctx, trx, { user_id: user, access_token_id: null, device })
    const { session_id, user_id } = session
    const actor = { actor_kind: 'user', user_id, token_id: session_id }
    return { before: {}, after: { email: attempt.email, session_id }, actor, session }
  })
  return session === null ? { status: 'already_complete', session } : { status: 'switch_identity', session }
}

/** An unknown or removed verification has expired. */
async function closedStatusOf(ctx: Context, verification_id: string): Promise<Status> {
  const row = await ctx.db
    .selectFrom('email_verifications')
    .select(['complete_ts', 'expire_ts'])
    .where('verification_id', '=', verification_id)
    .executeTakeFirst()
  if (row === undefined) return 'expired'
  if (row.complete_ts !== null) return 'already_complete'
  return row.expire_ts.getTime() <= ctx.now() ? 'expired' : 'too_many_attempts'
}

/** The user of the address, created if there is none. */
async function userIdOf(ctx: Context, trx: Transaction<Schema>, email: string): Promise<string> {
  const now = ctx.now()
  const display_name = email.slice(0, email.indexOf('@')).slice(0, NAME_LENGTH_MAX)
  await trx
    .insertInto('users')
    .values({ user_id: newId(now), email, display_name, create_ts: new Date(now) })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .execute()
  const { user_id } = await trx
    .selectFrom('users')
    .select('user_id')
    .where('email', '=', email)
    .executeTakeFirstOrThrow()
  return user_id
}

/** Throws API_RATE_LIMIT when the client key, or one of its networks, has requested too many codes. */
async function requireRate(
  ctx: Context,
  trx: Transaction<Schema>,
  networks: readonly ClientNetwork[],
  email: string,
): Promise<void> {
  const { logins_per_quarter_hour } = ctx.config.rate_limits
  // Counted in the database, exactly and for all processes: requests of one key run one after the other. Keys are locked
  // from the smallest network to the largest, and the address last, so no deadlock is possible.
  for (const key of [...networks.map((network) => network.key), email]) {
    await sql`select pg_advisory_xact_lock(hashtextextended(${`login ${key}`}, 0))`.execute(trx)
  }
  const is_flooded = (await nthCode(ctx, trx, { email }, CODES_PER_EMAIL_MAX)) !== null
  const per_email_max = is_flooded ? 1 : CODES_PER_EMAIL_AND_CLIENT_MAX
  for (const { key, factor } of networks) {
    if (logins_per_quarter_hour > 0) {
      throwIfFull(ctx, await nthCode(ctx, trx, { key }, logins_per_quarter_hour * factor))
    }
    throwIfFull(ctx, await nthCode(ctx, trx, { key, email }, per_email_max * factor))
  }
}

/** When the n-th latest code was requested; null when the window has fewer. */
async function nthCode(
  ctx: Context,
  trx: Transaction<Schema>,
  { key, email }: { key?: string; email?: string },
  n: number,
): Promise<Date | null> {
  const row = await trx
    .selectFrom('email_verifications')
    .select('create_ts')
    .$if(key !== undefined, (query) => query.where('networks', '@>', sql<string[]>`array[${key}]::text[]`))
    .$if(email !== undefined, (query) => query.where('email', '=', email!))
    .where('create_ts', '>', new Date(ctx.now() - WINDOW_MS))
    .orderBy('create_ts', 'desc')
    .offset(n - 1)
    .limit(1)
    .executeTakeFirst()
  return row?.create_ts ?? null
}

/** Throws API_RATE_LIMIT unless `nth_ts` is null. */
function throwIfFull(ctx: Context, nth_ts: Date | null): void {
  if (nth_ts === null) return
  const retry_after_s = Math.max(1, Math.ceil((nth_ts.getTime() + WINDOW_MS - ctx.now()) / 1000))
  throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s })
}

function hashOf(ctx: Context, verification_id: string, code: string): Buffer {
  return ctx.keys.mac('email-code', `${verification_id} ${code}`)
}

/** In development without a mail server the code is logged as a warning, which the supervisor shows on the terminal. */
async function deliver(ctx: Context, client_key: string, email: string, code: string): Promise<void> {
  if (ctx.mailer === null) {
    ctx.log.warn(`The login code for ${email} is ${code}. It is shown here because MUSTER_SMTP_URL is not set.`)
    return
  }
  let outcome: 'sent' | 'busy'
  try {
    const mail = {
      to: email,
      subject: `${code} is your login code`,
      text:
        `Your code for ${mainUrl(ctx.config)} is\n\n    ${code}\n\nIt is valid for 15 minutes. ` +
        'If you did not request it, another person entered your address; you need not do anything.\n',
    }
    outcome = await ctx.mailer.send(mail, client_key)
  } catch (error) {
    ctx.log.warn({ err: error }, 'login code could not be sent by e-mail')
    throw new ApiError('API_NOT_AVAILABLE', {}, { message: 'The code could not be sent; try again later.' })
  }
  if (outcome === 'busy') throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: BUSY_RETRY_AFTER_S })
}
