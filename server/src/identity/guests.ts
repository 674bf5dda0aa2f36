// Identities of players: guests, each of one namespace. The player's device keeps the guest's token. A game creates a guest,
// within the limits of guest-quota.ts, and every later use of the token is recorded. A guest is removed when no token of it
// can be valid any more, or after a day when it was never used again and never played (matchmaker/retention.ts).
import { randomInt } from 'node:crypto'
import { ApiError, type BodyOf, type ResponseOf, type setupIdentity, type updateProfile } from '@musterhost/contract'
import type { Context } from '../context.ts'
import { newId } from '../ids.ts'
import type { CallerOf } from '../tokens/caller.ts'
import { constantMembers, type Profile } from './constant-members.ts'
import type { GuestQuota } from './guest-quota.ts'

const DAY_MS = 24 * 60 * 60_000
const IDENTITY_TOKEN_LIFETIME_MS = 180 * DAY_MS
/** An older token is replaced by a new one. */
const IDENTITY_TOKEN_FRESH_MS = 30 * DAY_MS
/** Precision of the time of the last visit: the row is not written at every visit. */
const SEEN_MS = DAY_MS
/** A guest that returns after this time counts as used, and is kept. */
const CAME_BACK_MS = 60 * 60_000
const DISPLAY_NAME = 'Guest'
/** Largest number that is shown beside a display name. */
const ACCOUNT_NUMBER_MAX = 9_999

type Guest = ResponseOf<typeof setupIdentity>
type KnownToken = { text: string; identity_id: string; expire_ms: number; is_fresh: boolean }

/**
 * Returns the guest of the device's token, the calling identity, or a new guest. Throws NAMESPACE_NOT_FOUND when the
 * namespace is gone, and API_RATE_LIMIT or QUOTA_REACHED when no guest may be made.
 */
export async function setUpGuest(
  ctx: Context,
  quota: GuestQuota,
  { namespace_id, identity_id, client_key }: { namespace_id: string; identity_id: string | null; client_key: string },
  existing_token: string | undefined,
): Promise<Guest> {
  const { game_id } =
    (await ctx.db
      .selectFrom('namespaces')
      .select('game_id')
      .where('namespace_id', '=', namespace_id)
      .executeTakeFirst()) ?? throwNotFound('NAMESPACE_NOT_FOUND')
  const known = existing_token === undefined ? null : readToken(ctx, namespace_id, existing_token)
  const claimed_id = known?.identity_id ?? identity_id
  const seen = claimed_id === null ? null : await recordVisit(ctx, claimed_id)
  if (seen === null) await quota.take(namespace_id, client_key)
  const identity = seen ?? (await makeGuest(ctx, namespace_id))
  if (known !== null && seen !== null && known.is_fresh) return guestOf(known.text, known.expire_ms, identity, game_id)
  const now_ms = ctx.now()
  const token = ctx.keys.issue(
    { kind: 'game_user', identity_id: identity.identity_id, namespace_id },
    { now_ms, lifetime_ms: IDENTITY_TOKEN_LIFETIME_MS },
  )
  return guestOf(token, now_ms + IDENTITY_TOKEN_LIFETIME_MS, identity, game_id)
}

/** Throws IDENTITY_NOT_FOUND when the guest has been removed. */
export async function findGuest(ctx: Context, { identity_id }: CallerOf<'identity'>): Promise<Profile> {
  const row = await ctx.db
    .selectFrom('identities')
    .select(['identity_id', 'display_name', 'account_number', 'create_ts'])
    .where('identity_id', '=', identity_id)
    .executeTakeFirst()
  return row === undefined ? throwNotFound('IDENTITY_NOT_FOUND') : profileOf(ctx, row)
}

/** Throws IDENTITY_NOT_FOUND when the guest has been removed. */
export async function renameGuest(
  ctx: Context,
  { identity_id }: CallerOf<'identity'>,
  { display_name }: BodyOf<typeof updateProfile>,
): Promise<void> {
  const { numUpdatedRows } = await ctx.db
    .updateTable('identities')
    .set({ display_name })
    .where('identity_id', '=', identity_id)
    .executeTakeFirst()
  if (numUpdatedRows === 0n) throwNotFound('IDENTITY_NOT_FOUND')
}

function guestOf(identity_token: string, expire_ms: number, identity: Profile, game_id: string): Guest {
  return { identity_token, identity_token_expire_ts: new Date(expire_ms).toISOString(), identity, game_id }
}

/** Null for a token that is invalid in this namespace: a page with an old token gets a new guest instead of an error. */
function readToken(ctx: Context, namespace_id: string, text: string): KnownToken | null {
  try {
    const now_ms = ctx.now()
    const token = ctx.keys.verify(text, now_ms)
    if (token.kind !== 'game_user' || token.namespace_id !== namespace_id || token.expire_ms === null) return null
    if (ctx.revoked.has(token.token_id)) return null
    const is_fresh = now_ms - token.issue_ms < IDENTITY_TOKEN_FRESH_MS
    return { text, identity_id: token.identity_id, expire_ms: token.expire_ms, is_fresh }
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}

/** Returns the profile; null when the guest has been removed. */
async function recordVisit(ctx: Context, identity_id: string): Promise<Profile | null> {
  const now_ms = ctx.now()
  const row = await ctx.db
    .selectFrom('identities')
    .select(['identity_id', 'display_name', 'account_number', 'create_ts', 'seen_ts'])
    .where('identity_id', '=', identity_id)
    .executeTakeFirst()
  if (row === undefined) return null
  const is_first = row.seen_ts.getTime() === row.create_ts.getTime()
  if (now_ms - row.seen_ts.getTime() >= (is_first ? CAME_BACK_MS : SEEN_MS)) {
    await ctx.db
      .updateTable('identities')
      .set({ seen_ts: new Date(now_ms) })
      .where('identity_id', '=', identity_id)
      .execute()
  }
  return profileOf(ctx, row)
}

async function makeGuest(ctx: Context, namespace_id: string): Promise<Profile> {
  const now = new Date(ctx.now())
  const row = {
    identity_id: newId(now.getTime()),
    namespace_id,
    display_name: DISPLAY_NAME,
    account_number: randomInt(1, ACCOUNT_NUMBER_MAX + 1),
    create_ts: now,
    seen_ts: now,
  }
  await ctx.db.insertInto('identities').values(row).execute()
  return profileOf(ctx, row)
}

type Row = { identity_id: string; display_name: string; account_number: number; create_ts: Date }

function profileOf(ctx: Context, { identity_id, display_name, account_number, create_ts }: Row): Profile {
  return {
    ...constantMembers(ctx),
    identity_id,
    display_name,
    account_number,
    is_registered: false,
    is_admin: false,
    join_ts: create_ts.toISOString(),
    linked_accounts: [],
  }
}

function throwNotFound(code: 'NAMESPACE_NOT_FOUND' | 'IDENTITY_NOT_FOUND'): never {
  throw new ApiError(code)
}
