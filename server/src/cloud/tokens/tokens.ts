// Tokens that the management side gives out. What one may do is in what it says, so it is not kept: a row remembers
// that it was issued, by its id, and another that it was revoked, which every process hears of within a second.
import { ApiError, CLOUD_TOKEN_TTL_MS_MAX, type TokenSummary } from '@musterhost/contract'
import { sql } from 'kysely'
import type { Static } from 'typebox'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Scope } from '../../audit/events.ts'
import type { Context, Database } from '../../context.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import type { Subject } from '../../tokens/keys.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame, requireNamespace } from '../access.ts'
import { creatorColumns, creatorOf } from '../creators.ts'
import { cut, isAfter, LIST_MAX } from '../lists.ts'
import { timestamp } from '../times.ts'

export const CLOUD_TOKEN_LIFETIME_MS = CLOUD_TOKEN_TTL_MS_MAX
/** Lifetime of a public token: 15 years, as developers are used to. It is built into games that players have installed. */
const PUBLIC_TOKEN_LIFETIME_MS = 15 * 365 * 24 * 60 * 60_000

/** Owner of the listed tokens: a game as a whole, or one of its namespaces. */
export type TokenList =
  | { kind: 'cloud'; game_id: string }
  | { kind: 'public' | 'development'; game_id: string; namespace_id: string }

/** Creates a token for CI, which acts for this game only. Throws GAME_NOT_FOUND. */
export async function createCloudToken(
  ctx: ChangeContext,
  caller: Caller,
  options: { game_id: string; lifetime_ms: number | undefined; name?: string | undefined },
): Promise<{ token: string }> {
  const { game_id, lifetime_ms = CLOUD_TOKEN_LIFETIME_MS, name } = options
  await requireGame(ctx, caller, game_id)
  return issueToken(ctx, caller, { kind: 'cloud', game_id }, { kind: 'cloud', game_id }, { lifetime_ms, name })
}

/** For game clients. Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND. */
export async function createPublicToken(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  namespace_id: string,
): Promise<{ token: string }> {
  await requireGame(ctx, caller, game_id)
  const { name_id } = await requireNamespace(ctx, game_id, namespace_id)
  const list = { kind: 'public', game_id, namespace_id } as const
  const options = { lifetime_ms: PUBLIC_TOKEN_LIFETIME_MS, label: name_id }
  return issueToken(ctx, caller, list, { kind: 'public', namespace_id }, options)
}

/**
 * A new token that can be listed and revoked: its row is written before the token is returned. `label`: part of the token, for
 * those that people see in programs. `name`: what its creator calls it.
 */
export async function issueToken(
  ctx: ChangeContext,
  caller: Caller,
  list: TokenList,
  subject: Subject,
  { lifetime_ms, label, name }: { lifetime_ms: number; label?: string; name?: string | undefined },
): Promise<{ token: string }> {
  const now_ms = ctx.now()
  const token_id = newId(now_ms)
  const options = { now_ms, lifetime_ms, token_id, ...(label === undefined ? {} : { name: label }) }
  const token = ctx.keys.issue(subject, options)
  const hostname = subject.kind === 'development' ? subject.hostname.toLowerCase() : null
  const { kind, ...scope } = list
  await changes(ctx, scope, async (trx) => {
    await recordToken(trx, caller, list, { token_id, now_ms, lifetime_ms, hostname, name })
    return {
      before: {},
      after: {
        token_id,
        kind,
        ...(name === undefined ? {} : { name }),
        expire_ts: new Date(now_ms + lifetime_ms),
        hostname,
      },
    }
  })
  return { token }
}

/** So that it can be listed and revoked. */
export async function recordToken(
  db: Database,
  caller: Caller,
  list: TokenList,
  token: {
    token_id: string
    now_ms: number
    lifetime_ms: number
    hostname?: string | null
    name?: string | undefined
  },
): Promise<void> {
  const { token_id, now_ms, lifetime_ms, hostname = null, name = null } = token
  const creator = creatorColumns(caller)
  const times = { create_ts: new Date(now_ms), expire_ts: new Date(now_ms + lifetime_ms) }
  await db
    .insertInto('tokens')
    .values({ token_id, ...rowOf(list), ...times, hostname, name, ...creator })
    .execute()
}

/** The newest first, expired and revoked ones too. Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND. */
export async function listTokens(
  ctx: Context,
  caller: Caller,
  list: TokenList,
  { before_token_id, limit = LIST_MAX }: { before_token_id?: string; limit?: number } = {},
): Promise<{ tokens: Static<typeof TokenSummary>[]; is_cut: boolean }> {
  await requireShelf(ctx, caller, list)
  const found = await tokensOf(ctx, list)
    .leftJoin('revoked_tokens', 'revoked_tokens.token_id', 'tokens.token_id')
    .leftJoin('users', 'users.user_id', 'tokens.creator_user_id')
    .select([
      'tokens.token_id',
      'tokens.create_ts',
      'tokens.expire_ts',
      'revoke_ts',
      'use_ts',
      'creator_kind',
      'hostname',
    ])
    .select('tokens.name')
    .select(({ fn }) => fn.coalesce('creator_name', 'users.display_name').as('creator_name'))
    .$if(before_token_id !== undefined, (query) => query.where(isAfter('tokens', 'token_id', before_token_id!)))
    .orderBy('tokens.create_ts', 'desc')
    .orderBy('tokens.token_id', 'desc')
    .limit(limit + 1)
    .execute()
  const { rows, is_cut } = cut(found, limit)
  const tokens = rows.map(({ token_id, create_ts, expire_ts, revoke_ts, use_ts, ...row }) => ({
    token_id,
    ...nameOf(row),
    ...createdBy(row),
    ...(use_ts === null ? {} : { use_ts: timestamp(use_ts) }),
    create_ts: timestamp(create_ts),
    ...(expire_ts === null ? {} : { expire_ts: timestamp(expire_ts) }),
    ...(revoke_ts === null ? {} : { revoke_ts: timestamp(revoke_ts) }),
  }))
  return { tokens, is_cut }
}

/** A development token is called by the host that it names. */
function nameOf({ name, hostname }: { name: string | null; hostname: string | null }): { name?: string } {
  const shown = name ?? hostname
  return shown === null ? {} : { name: shown }
}

function createdBy(row: Parameters<typeof creatorOf>[0]): Pick<Static<typeof TokenSummary>, 'created_by'> {
  const created_by = creatorOf(row)
  return created_by === undefined ? {} : { created_by }
}

/** Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND or TOKEN_NOT_FOUND, also for a token of another kind or namespace. */
export async function revokeToken(
  ctx: ChangeContext,
  caller: Caller,
  list: TokenList,
  token_id: string,
): Promise<void> {
  await requireShelf(ctx, caller, list)
  await tokensOf(ctx, list)
    .select('tokens.token_id')
    .where('tokens.token_id', '=', token_id)
    .executeTakeFirstOrThrow(() => new ApiError('TOKEN_NOT_FOUND'))
  await revokeById(ctx, token_id)
}

/**
 * Whatever token has this id, if any. A second time it changes nothing. `expire_ms`: when a token that was not recorded
 * expires, so that its revocation is forgotten afterwards.
 */
export async function revokeById(ctx: ChangeContext, token_id: string, expire_ms?: number): Promise<void> {
  const unrecorded = expire_ms === undefined ? null : new Date(expire_ms)
  const of_token = sql<Date | null>`coalesce((select expire_ts from tokens where token_id = ${token_id}), ${unrecorded})`
  await changes(ctx, {}, async (trx) => {
    const token = await trx
      .selectFrom('tokens')
      .select(['kind', 'game_id', 'namespace_id'])
      .where('token_id', '=', token_id)
      .executeTakeFirst()
    await trx
      .insertInto('revoked_tokens')
      .values({ token_id, expire_ts: of_token })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    return { before: { token_id, kind: token?.kind }, after: {}, scope: scopeOf(token) }
  })
  await ctx.revoked.refresh()
  await ctx.listener.notify(CHANNELS.revoked_tokens)
}

/** For the audit log, where the group of a revoked token finds it. */
function scopeOf(token: { game_id: string; namespace_id: string | null } | undefined): Scope {
  if (token === undefined) return {}
  const { game_id, namespace_id } = token
  return namespace_id === null ? { game_id } : { game_id, namespace_id }
}

async function requireShelf(ctx: Context, caller: Caller, list: TokenList): Promise<void> {
  await requireGame(ctx, caller, list.game_id)
  if (list.kind !== 'cloud') await requireNamespace(ctx, list.game_id, list.namespace_id)
}

function tokensOf(ctx: Context, list: TokenList) {
  const { kind, game_id, namespace_id } = rowOf(list)
  return ctx.db
    .selectFrom('tokens')
    .where('kind', '=', kind)
    .where('game_id', '=', game_id)
    .where('namespace_id', namespace_id === null ? 'is' : '=', namespace_id)
}

function rowOf(list: TokenList) {
  const namespace_id = list.kind === 'cloud' ? null : list.namespace_id
  return { kind: list.kind, game_id: list.game_id, namespace_id }
}
