// Sessions of users. A session is opened by logging in. It ends by logging out, by a refresh token that is used twice, or by
// time. A refresh token is valid for one refresh: it consists of the session, its generation and a MAC over both, and each
// refresh moves the session to the next generation. So the database contains no secret. When a response is lost, or a second
// tab refreshes at the same moment, the request returns the same next token again.
import { timingSafeEqual } from 'node:crypto'
import { ApiError } from '@musterhost/contract'
import { sql, type Transaction } from 'kysely'
import { type ChangeContext, changes } from '../audit/changes.ts'
import type { Context } from '../context.ts'
import type { Schema } from '../database/schema.ts'
import { newId } from '../ids.ts'

export const SESSION_LIFETIME_MS = 90 * 24 * 60 * 60_000
const USER_TOKEN_LIFETIME_MS = 15 * 60_000
/** For this time after a refresh, the token before it returns the result of that refresh. */
const REFRESH_GRACE_MS = 30_000
/** Sessions of one user. Beyond it the least recently used ones end. */
const SESSIONS_MAX = 50

/** What a session was last used from. */
export type Device = { client_ip: string; user_agent: string | null }
/** Characters of a User-Agent header that are kept. */
const USER_AGENT_LENGTH_MAX = 256

export type UserSession = { session_id: string; user_id: string; refresh_token: string }

/** What the provider of a sign-in decides about a session. `lifetime_ms`: after it, the person must sign in again. */
type ProviderSession = {
  provider_id: string
  subject: string
  sid: string | null
  is_admin: boolean
  lifetime_ms: number
}

type NewSession = {
  user_id: string
  access_token_id: string | null
  device: Device
  provider?: ProviderSession
  passkey_id?: string
}

/**
 * `access_token_id`: the access token that opened it, or with which the passkey was added; null when a code or a provider opened
 * it. `device`: from where it is opened. A session that a passkey opens counts as confirmed.
 */
export async function openSession(
  ctx: Context,
  trx: Transaction<Schema>,
  { user_id, access_token_id, device, provider, passkey_id }: NewSession,
): Promise<UserSession> {
  const now = ctx.now()
  const session_id = newId(now)
  const lifetime_ms = Math.min(SESSION_LIFETIME_MS, provider?.lifetime_ms ?? SESSION_LIFETIME_MS)
  await trx
    .insertInto('user_sessions')
    .values({
      session_id,
      user_id,
      access_token_id,
      create_ts: new Date(now),
      refresh_ts: new Date(now),
      expire_ts: new Date(now + lifetime_ms),
      ...columnsOf(device),
      ...(provider === undefined ? {} : providerColumns(provider, now)),
      ...(passkey_id === undefined ? {} : { passkey_id, confirm_ts: new Date(now) }),
    })
    .execute()
  await trx
    .deleteFrom('user_sessions')
    .where('session_id', 'in', (of) =>
      of
        .selectFrom('user_sessions')
        .select('session_id')
        .where('user_id', '=', user_id)
        .orderBy('refresh_ts', 'desc')
        .orderBy('session_id', 'desc')
        .offset(SESSIONS_MAX),
    )
    .execute()
  return { session_id, user_id, refresh_token: refreshToken(ctx, session_id, 0) }
}

function providerColumns({ provider_id, subject, sid, is_admin, lifetime_ms }: ProviderSession, now: number) {
  return {
    provider_id,
    provider_subject: subject,
    provider_sid: sid,
    is_admin,
    end_by_ts: new Date(now + lifetime_ms),
  }
}

/** Throws TOKEN_REFRESH_NOT_FOUND. A token that has been used before ends the session: one of the two was stolen. */
export async function refreshSession(
  ctx: ChangeContext,
  refresh_token: string | undefined,
  device: Device,
): Promise<UserSession> {
  const shown = readRefreshToken(ctx, refresh_token)
  if (shown === null) throw new ApiError('TOKEN_REFRESH_NOT_FOUND')
  const { session_id, generation } = shown
  const now = ctx.now()
  const next = (user_id: string): UserSession => ({
    session_id,
    user_id,
    refresh_token: refreshToken(ctx, session_id, generation + 1),
  })
  const moved = await ctx.db
    .updateTable('user_sessions')
    .set({
      generation: generation + 1,
      refresh_ts: new Date(now),
      // least() ignores a null.
      expire_ts: sql<Date>`least(${new Date(now + SESSION_LIFETIME_MS)}::timestamptz, end_by_ts)`,
      ...columnsOf(device),
    })
    .where('session_id', '=', session_id)
    .where('generation', '=', generation)
    .where('end_ts', 'is', null)
    .where('expire_ts', '>', new Date(now))
    .returning(['user_id', 'access_token_id'])
    .executeTakeFirst()
  if (moved !== undefined && isRevoked(ctx, moved)) throw new ApiError('TOKEN_REFRESH_NOT_FOUND')
  if (moved !== undefined) return next(moved.user_id)

  const session = await ctx.db
    .selectFrom('user_sessions')
    .select(['user_id', 'generation', 'refresh_ts', 'access_token_id'])
    .where('session_id', '=', session_id)
    .where('end_ts', 'is', null)
    .where('expire_ts', '>', new Date(now))
    .executeTakeFirst()
  if (session === undefined || isRevoked(ctx, session)) throw new ApiError('TOKEN_REFRESH_NOT_FOUND')
  if (session.generation === generation + 1 && now - session.refresh_ts.getTime() < REFRESH_GRACE_MS) {
    return next(session.user_id)
  }
  await endSession(ctx, session_id, 'refresh_token_reused')
  const { user_id } = session
  ctx.log.warn({ user_id, session_id }, 'refresh token was used twice; its session was ended')
  throw new ApiError('TOKEN_REFRESH_NOT_FOUND')
}

function columnsOf({ client_ip, user_agent }: Device): Device {
  return { client_ip, user_agent: user_agent?.slice(0, USER_AGENT_LENGTH_MAX) ?? null }
}

/**
 * Ends the session of a browser's refresh token. An invalid token is ignored. Returns the provider that opened the session, or
 * null.
 */
export async function closeSession(ctx: ChangeContext, refresh_token: string | undefined): Promise<string | null> {
  const shown = readRefreshToken(ctx, refresh_token)
  return shown === null ? null : endSession(ctx, shown.session_id, 'logout')
}

async function endSession(
  ctx: ChangeContext,
  session_id: string,
  end_reason: 'logout' | 'refresh_token_reused',
): Promise<string | null> {
  const { provider_id } = await changes(ctx, {}, async (trx) => {
    const ended = await trx
      .updateTable('user_sessions')
      .set({ end_ts: new Date(ctx.now()) })
      .where('session_id', '=', session_id)
      .where('end_ts', 'is', null)
      .returning(['user_id', 'provider_id'])
      .executeTakeFirst()
    const person = ended === undefined ? {} : { user_id: ended.user_id }
    const actor = { actor_kind: 'user', ...person, token_id: session_id }
    return { before: { session_id }, after: { end_reason }, actor, provider_id: ended?.provider_id ?? null }
  })
  return provider_id
}

/** Issues a new user token of a session. */
export function issueUserToken(ctx: Context, session: UserSession): { token: string; expire_ms: number } {
  const now_ms = ctx.now()
  const { user_id, session_id } = session
  const token = ctx.keys.issue({ kind: 'user', user_id, session_id }, { now_ms, lifetime_ms: USER_TOKEN_LIFETIME_MS })
  return { token, expire_ms: now_ms + USER_TOKEN_LIFETIME_MS }
}

/**
 * The user of a session, and the name of the administrator, or null. Read at every call, so that an ended session is refused at
 * once. Throws TOKEN_REVOKED.
 */
export async function requireSession(
  ctx: Context,
  session_id: string,
): Promise<{ user_id: string; admin_name: string | null }> {
  const row = await ctx.db
    .selectFrom('user_sessions')
    .innerJoin('users', 'users.user_id', 'user_sessions.user_id')
    .select(['users.user_id', 'users.access_name', 'users.display_name', 'access_token_id', 'is_admin'])
    .where('session_id', '=', session_id)
    .where('end_ts', 'is', null)
    .where('expire_ts', '>', new Date(ctx.now()))
    .executeTakeFirst()
  if (row === undefined || isRevoked(ctx, row)) throw new ApiError('TOKEN_REVOKED')
  const { user_id, access_name, display_name, is_admin } = row
  return { user_id, admin_name: access_name ?? (is_admin ? display_name : null) }
}

/** A session ends when the access token that opened it is revoked. */
function isRevoked(ctx: Context, { access_token_id }: { access_token_id: string | null }): boolean {
  return access_token_id !== null && ctx.revoked.has(access_token_id)
}

const REFRESH_TOKEN = /^([0-9a-f-]{36})\.(\d{1,9})\.([A-Za-z0-9_-]{43})$/

function refreshToken(ctx: Context, session_id: string, generation: number): string {
  const text = `${session_id}.${generation}`
  return `${text}.${ctx.keys.mac('session', text).toString('base64url')}`
}

function readRefreshToken(ctx: Context, text: string | undefined): { session_id: string; generation: number } | null {
  const [, session_id = '', digits = ''] = REFRESH_TOKEN.exec(text ?? '') ?? []
  if (text === undefined || session_id === '') return null
  const generation = Number(digits)
  const own = Buffer.from(refreshToken(ctx, session_id, generation))
  const shown = Buffer.from(text)
  return own.length === shown.length && timingSafeEqual(own, shown) ? { session_id, generation } : null
}
