// Targets of notices: of a group, a game or the platform. Their addresses, tokens and keys are sealed before they are stored,
// and only the code that sends a notice opens them.
import {
  ApiError,
  type BodyOf,
  type listNoticeTargets as listOperation,
  NOTICE_TARGETS_MAX,
  type NoticeTarget,
  PLATFORM_NOTICE_EVENTS,
  type putNoticeTarget as putOperation,
  type QueryOf,
  type ResponseOf,
} from '@musterhost/contract'
import { sql } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import { type Members, SECRET } from '../../audit/members.ts'
import type { Context, Database } from '../../context.ts'
import type { NoticeSettings } from '../../database/schema.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { NOTICE_SECRETS } from '../../tokens/sealed-columns.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame, requireGroup } from '../access.ts'
import { throwErrors } from '../field-errors.ts'
import { timestamp } from '../times.ts'
import type { TargetSecrets } from './messages.ts'
import { allowedAddresses } from './send.ts'
import { newSigningKey } from './signature.ts'
import { checkTarget, hintOf, secretsOf } from './target-members.ts'

type Body = BodyOf<typeof putOperation>
/** Both null: the platform. */
export type TargetScope = { group_id: string | null; game_id: string | null }

/** Throws GROUP_NOT_FOUND, GAME_NOT_FOUND, VALIDATION_ERROR, or API_FORBIDDEN for the platform. */
async function requireTargetScope(
  ctx: Context,
  caller: Caller,
  { group_id, game_id }: { group_id?: string | undefined; game_id?: string | undefined },
): Promise<TargetScope> {
  if (group_id !== undefined && game_id !== undefined) {
    const message = 'A target belongs to a group or to a game. Leave one of group_id and game_id out.'
    throwErrors([{ path: ['group_id'], reason: 'ambiguous', message }])
  }
  if (group_id !== undefined) await requireGroup(ctx, caller, group_id)
  else if (game_id !== undefined) await requireGame(ctx, caller, game_id)
  else if (caller.kind !== 'admin') {
    const message = 'Targets of the platform are for administrators. Name a group_id or a game_id.'
    throw new ApiError('API_FORBIDDEN', {}, { message })
  }
  return { group_id: group_id ?? null, game_id: game_id ?? null }
}

/** The target, if the caller may reach it. Throws NOTICE_TARGET_NOT_FOUND or GROUP_INSUFFICIENT_PERMISSIONS. */
export async function requireTarget(ctx: Context, caller: Caller, target_id: string): Promise<TargetScope> {
  const unknown = () => new ApiError('NOTICE_TARGET_NOT_FOUND')
  const scope = await ctx.db
    .selectFrom('notice_targets')
    .select(['group_id', 'game_id'])
    .where('target_id', '=', target_id)
    .executeTakeFirstOrThrow(unknown)
  if (scope.game_id !== null) await requireGame(ctx, caller, scope.game_id, 'NOTICE_TARGET_NOT_FOUND')
  else if (scope.group_id !== null) {
    await requireGroup(ctx, caller, scope.group_id).catch((error: unknown) => {
      throw error instanceof ApiError && error.code === 'GROUP_NOT_FOUND' ? unknown() : error
    })
  } else if (caller.kind !== 'admin') throw unknown()
  return scope
}

/** Throws as requireTargetScope does. */
export async function listTargets(
  ctx: Context,
  caller: Caller,
  query: QueryOf<typeof listOperation>,
): Promise<ResponseOf<typeof listOperation>> {
  const scope = await requireTargetScope(ctx, caller, query)
  const rows = await ofScope(ctx.db, scope)
    .selectAll()
    .select((of) =>
      of
        .selectFrom('notices')
        .whereRef('notices.target_id', '=', 'notice_targets.target_id')
        .where('state', '=', 'waiting')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .as('waiting_count'),
    )
    .orderBy('name')
    .limit(NOTICE_TARGETS_MAX)
    .execute()
  return { targets: rows.map(targetOf) }
}

type Row = {
  target_id: string
  group_id: string | null
  game_id: string | null
  name: string
  kind: NoticeTarget['kind']
  hint: string | null
  settings: NoticeSettings
  paused_ts: Date | null
  pause_reason: string | null
  waiting_count: number | null
  dropped_count: number
  create_ts: Date
  delivery_ts: Date | null
}

function targetOf(row: Row): NoticeTarget {
  const { group_id, game_id, hint, pause_reason, delivery_ts } = row
  const { by_admin: _, ...settings } = row.settings
  return {
    target_id: row.target_id,
    ...(group_id === null ? {} : { group_id }),
    ...(game_id === null ? {} : { game_id }),
    name: row.name,
    kind: row.kind,
    ...(hint === null ? {} : { hint }),
    ...settings,
    is_paused: row.paused_ts !== null,
    ...(row.paused_ts === null || pause_reason === null ? {} : { pause_reason }),
    waiting_count: Number(row.waiting_count ?? 0),
    dropped_count: row.dropped_count,
    create_ts: timestamp(row.create_ts),
    ...(delivery_ts === null ? {} : { delivery_ts: timestamp(delivery_ts) }),
  }
}

/** Throws as requireTargetScope does, and VALIDATION_ERROR for what the kind lacks or does not take. */
export async function putTarget(
  ctx: ChangeContext,
  caller: Caller,
  body: Body,
): Promise<ResponseOf<typeof putOperation>> {
  const scope = await requireTargetScope(ctx, caller, body)
  const settings = settingsOf(body, caller)
  await checkAddresses(ctx, scope, settings)
  let target_id = newId(ctx.now())
  let signing_key: string | undefined
  await changes(ctx, auditScope(scope), async (trx) => {
    await lockTargets(trx, scope)
    const targets = await ofScope(trx, scope).selectAll().execute()
    const former = targets.find(({ name }) => name === body.name)
    if (former === undefined) checkRoom(targets.length)
    else target_id = former.target_id
    const kept = former?.kind === body.kind ? keptSecrets(openSecrets(ctx, former), body) : {}
    const secrets: TargetSecrets = { ...kept, ...secretsOf(body) }
    throwErrors(checkTarget(ctx.config, body, secrets))
    if (body.kind === 'webhook' && (secrets.signing_key === undefined || body.new_signing_key === true)) {
      signing_key = newSigningKey()
      secrets.signing_key = signing_key
    }
    const values = {
      ...{ name: body.name, kind: body.kind, hint: hintOf(body.kind, secrets) },
      settings: JSON.stringify(settings),
      secrets: ctx.seals.seal(NOTICE_SECRETS.purposeOf(target_id), JSON.stringify(secrets), ctx.now()),
      ...{ paused_ts: body.is_paused === true ? new Date(ctx.now()) : null, pause_reason: null, next_ts: null },
    }
    await trx
      .insertInto('notice_targets')
      .values({ target_id, ...scope, ...values, create_ts: new Date(ctx.now()) })
      .onConflict((conflict) => conflict.column('target_id').doUpdateSet(values))
      .execute()
    await trx
      .insertInto('notice_reader')
      .values({ reader: 1, audit_ts: new Date(ctx.now()), states_ts: null, begin_ts: new Date(ctx.now()) })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    if (values.paused_ts === null) await endFailures(trx, target_id)
    const before: Members = former === undefined ? {} : membersOf(former)
    return { before, after: membersOf({ ...former, ...values, target_id, settings }, secretsOf(body)) }
  })
  await ctx.listener.notify(CHANNELS.notices)
  return { target_id, ...(signing_key === undefined ? {} : { signing_key }) }
}

/** Throws NOTICE_TARGET_NOT_FOUND. */
export async function deleteTarget(ctx: ChangeContext, caller: Caller, target_id: string): Promise<void> {
  const scope = await requireTarget(ctx, caller, target_id)
  await changes(ctx, auditScope(scope), async (trx) => {
    const row = await trx
      .deleteFrom('notice_targets')
      .where('target_id', '=', target_id)
      .returningAll()
      .executeTakeFirstOrThrow(() => new ApiError('NOTICE_TARGET_NOT_FOUND'))
    return { before: membersOf(row), after: {} }
  })
  await ctx.listener.notify(CHANNELS.notices)
}

/** A token is not sent to another server than it was given for: a caller could read it there. */
function keptSecrets(secrets: TargetSecrets, { url }: Body): TargetSecrets {
  if (url === undefined || url === secrets.url) return secrets
  return secrets.signing_key === undefined ? {} : { signing_key: secrets.signing_key }
}

export function openSecrets(
  ctx: Pick<Context, 'seals'>,
  { target_id, secrets }: { target_id: string; secrets: string },
): TargetSecrets {
  return JSON.parse(ctx.seals.open(NOTICE_SECRETS.purposeOf(target_id), secrets)) as TargetSecrets
}

export function auditScope({ group_id, game_id }: TargetScope): { group_id?: string; game_id?: string } {
  return { ...(group_id === null ? {} : { group_id }), ...(game_id === null ? {} : { game_id }) }
}

/** A target that a person puts is tried again: its first notice has all its attempts. */
async function endFailures(trx: Database, target_id: string): Promise<void> {
  await trx
    .updateTable('notices')
    .set({ attempt_count: 0 })
    .where('target_id', '=', target_id)
    .where('state', '=', 'waiting')
    .where('attempt_count', '>', 0)
    .execute()
}

function ofScope(db: Database, { group_id, game_id }: TargetScope) {
  return db
    .selectFrom('notice_targets')
    .where('group_id', 'is not distinct from', group_id)
    .where('game_id', 'is not distinct from', game_id)
}

/** Two puts in one scope at once would both find the name free, or room for one more. */
async function lockTargets(trx: Database, { group_id, game_id }: TargetScope): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`notices ${group_id} ${game_id}`}, 0))`.execute(trx)
}

function checkRoom(count: number): void {
  if (count < NOTICE_TARGETS_MAX) return
  const message = `There are ${NOTICE_TARGETS_MAX} targets, which is the maximum. Delete one, or add events to one.`
  throwErrors([{ path: ['name'], reason: 'too_many', message }])
}

function settingsOf(
  { events, game_ids, namespace_ids, chat_id, addresses, kind }: Body,
  caller: Caller,
): NoticeSettings {
  return {
    events: [...new Set(events)],
    ...(game_ids === undefined || game_ids.length === 0 ? {} : { game_ids }),
    ...(namespace_ids === undefined || namespace_ids.length === 0 ? {} : { namespace_ids }),
    ...(kind === 'telegram' && chat_id !== undefined ? { chat_id } : {}),
    ...(kind === 'email' && addresses !== undefined ? { addresses: addresses.map((one) => one.toLowerCase()) } : {}),
    by_admin: caller.kind === 'admin',
  }
}

/** Otherwise anyone with a group could have the platform send mails to strangers. */
async function checkAddresses(ctx: Context, scope: TargetScope, settings: NoticeSettings): Promise<void> {
  const { addresses = [], events } = settings
  if (scope.group_id !== null || scope.game_id !== null) {
    const at = events.findIndex((event) => PLATFORM_NOTICE_EVENTS.includes(event))
    const message = `Only targets of the platform get ${events[at]}. Leave it out.`
    if (at !== -1) throwErrors([{ path: ['events', String(at)], reason: 'not_allowed', message }])
  }
  if (addresses.length === 0) return
  const owner_group_id = await ownerGroupOf(ctx.db, scope)
  const allowed = await allowedAddresses(ctx, { settings, owner_group_id })
  const at = addresses.findIndex((address) => !allowed.includes(address))
  if (at === -1) return
  const message = `${addresses[at]} is the address of no member of the group. Invite the person first, or ask the operator.`
  throwErrors([{ path: ['addresses', String(at)], reason: 'not_allowed', message }])
}

/** The group that a target belongs to, directly or by its game. */
export async function ownerGroupOf(db: Database, { group_id, game_id }: TargetScope): Promise<string | null> {
  if (game_id === null) return group_id
  const row = await db
    .selectFrom('games')
    .select('developer_group_id')
    .where('game_id', '=', game_id)
    .executeTakeFirst()
  return row?.developer_group_id ?? null
}

/** What the audit log records. `set`: the secrets that a call has set. */
function membersOf(
  { target_id, name, kind, settings, paused_ts }: Pick<Row, 'target_id' | 'name' | 'kind' | 'settings' | 'paused_ts'>,
  set: TargetSecrets = {},
): Members {
  const { by_admin: _, ...shown } = settings
  const secrets = Object.keys(set).map((member) => [member, SECRET] as const)
  return { target_id, name, kind, ...shown, is_paused: paused_ts !== null, ...Object.fromEntries(secrets) }
}
