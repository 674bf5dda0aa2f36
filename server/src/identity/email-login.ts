// Logging in by e-mail: a code is sent to an address, and whoever shows it is the person of that address. Both steps do
// the same work for an address that is known and for one that is not; who has not been here before becomes a person
// with the code, not before. A verification: open -> complete, or out of attempts, or expired.
import { timingSafeEqual } from 'node:crypto'
import { ApiError, type completeEmailVerification, type ResponseOf } from '@muster/contract'
import { sql, type Transaction } from 'kysely'
import { mainUrl } from '../config.ts'
import type { Context } from '../context.ts'
import type { Schema } from '../database/schema.ts'
import { newId } from '../ids.ts'
import { newCode, readCode } from '../tokens/codes.ts'
import { openSession, type Session } from './sessions.ts'

const CODE_LENGTH = 8
const CODE_LIFETIME_MS = 15 * 60_000
const ATTEMPTS_MAX = 4
/** In which codes to one address, and codes for one client, are counted. */
const WINDOW_MS = 15 * 60_000
/** Four guesses each: twenty of 34^8 in a quarter of an hour. */
const CODES_PER_EMAIL_MAX = 5
const NAME_LENGTH_MAX = 24
const BUSY_RETRY_AFTER_S = 5

type Status = ResponseOf<typeof completeEmailVerification>['status']

/** Throws API_RATE_LIMIT, or API_NOT_AVAILABLE when the mail cannot be sent. `client`: who asks (net/client-ip.ts). */
export async function startEmailLogin(
  ctx: Context,
  client: string,
  given_email: string,
): Promise<{ verification_id: string }> {
  const email = given_email.toLowerCase()
  const now = ctx.now()
  const verification_id = newId(now)
  const code = newCode(CODE_LENGTH)
  await ctx.db.transaction().execute(async (trx) => {
    await requireRate(ctx, trx, 'client', client, ctx.config.rate_limits.logins_per_quarter_hour)
    await requireRate(ctx, trx, 'email', email, CODES_PER_EMAIL_MAX)
    await trx
      .insertInto('email_verifications')
      .values({
        verification_id,
        email,
        client,
        code_hash: hashOf(ctx, verification_id, code),
        create_ts: new Date(now),
        expire_ts: new Date(now + CODE_LIFETIME_MS),
      })
      .execute()
  })
  await deliver(ctx, email, code)
  return { verification_id }
}

/** With the session when the status is switch_identity, and none otherwise. */
export async function completeEmailLogin(
  ctx: Context,
  verification_id: string,
  typed_code: string,
): Promise<{ status: Status; session: Session | null }> {
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
  if (attempt === undefined) return { status: await whyClosed(ctx, verification_id), session: null }
  if (!timingSafeEqual(attempt.code_hash, hashOf(ctx, verification_id, readCode(typed_code)))) {
    return { status: 'incorrect', session: null }
  }
  const session = await ctx.db.transaction().execute(async (trx) => {
    const { numUpdatedRows } = await trx
      .updateTable('email_verifications')
      .set({ complete_ts: now })
      .where('verification_id', '=', verification_id)
      .where('complete_ts', 'is', null)
      .executeTakeFirst()
    if (numUpdatedRows === 0n) return null
    return openSession(ctx, trx, await personOf(ctx, trx, attempt.email))
  })
  return session === null ? { status: 'already_complete', session } : { status: 'switch_identity', session }
}

/** One that has been forgotten, or never was, has expired. */
async function whyClosed(ctx: Context, verification_id: string): Promise<Status> {
  const row = await ctx.db
    .selectFrom('email_verifications')
    .select(['complete_ts', 'expire_ts'])
    .where('verification_id', '=', verification_id)
    .executeTakeFirst()
  if (row === undefined) return 'expired'
  if (row.complete_ts !== null) return 'already_complete'
  return row.expire_ts.getTime() <= ctx.now() ? 'expired' : 'too_many_attempts'
}

async function personOf(ctx: Context, trx: Transaction<Schema>, email: string): Promise<string> {
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

/**
 * Counted where every process sees it, and exactly: those of one key come one after the other. The key of the client is
 * always taken before that of the address, so nobody waits in a circle. 0 is no limit.
 */
async function requireRate(
  ctx: Context,
  trx: Transaction<Schema>,
  column: 'client' | 'email',
  key: string,
  count_max: number,
): Promise<void> {
  if (count_max === 0) return
  await sql`select pg_advisory_xact_lock(hashtextextended(${`login ${column} ${key}`}, 0))`.execute(trx)
  const now = ctx.now()
  const last = await trx
    .selectFrom('email_verifications')
    .select('create_ts')
    .where(column, '=', key)
    .where('create_ts', '>', new Date(now - WINDOW_MS))
    .orderBy('create_ts', 'desc')
    .offset(count_max - 1)
    .limit(1)
    .executeTakeFirst()
  if (last === undefined) return
  const retry_after_s = Math.max(1, Math.ceil((last.create_ts.getTime() + WINDOW_MS - now) / 1000))
  throw new ApiError('API_RATE_LIMIT', {}, { retry_after_s })
}

function hashOf(ctx: Context, verification_id: string, code: string): Buffer {
  return ctx.keys.mac('email-code', `${verification_id} ${code}`)
}

/** Without a mail server the operator reads the code to whoever asked; the supervisor shows warnings on the terminal. */
async function deliver(ctx: Context, email: string, code: string): Promise<void> {
  if (ctx.mailer === null) {
    ctx.log.warn(`The login code for ${email} is ${code}. It is shown here because MUSTER_SMTP_URL is not set.`)
    return
  }
  let outcome: 'sent' | 'busy'
  try {
    outcome = await ctx.mailer.send({
      to: email,
      subject: `${code} is your login code`,
      text:
        `Your code for ${mainUrl(ctx.config)} is\n\n    ${code}\n\nIt is good for 15 minutes. ` +
        'If you did not ask for it, somebody typed your address; you need not do anything.\n',
    })
  } catch (error) {
    ctx.log.warn({ err: error }, 'A login code could not be sent by e-mail.')
    throw new ApiError('API_NOT_AVAILABLE', {}, { message: 'The code could not be sent; try again later.' })
  }
  if (outcome === 'busy') throw new ApiError('API_NOT_AVAILABLE', {}, { retry_after_s: BUSY_RETRY_AFTER_S })
}
