// The providers that an administrator sets. The client secret is sealed before it is stored, and only a sign-in opens it.
import {
  ApiError,
  type BodyOf,
  type listOpenSignInProviders,
  type listSignInProviders,
  type putSignInProvider as putOperation,
  type ResponseOf,
  SIGN_IN_PROVIDERS_MAX,
  SIGN_IN_SCOPES,
  SIGN_IN_SESSION_HOURS,
  type SignInProvider,
  validationError,
} from '@musterhost/contract'
import { sql } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import { type Members, SECRET } from '../../audit/members.ts'
import type { Context, Database } from '../../context.ts'
import type { SignInSettings } from '../../database/schema.ts'
import { newId } from '../../ids.ts'
import { FetchFailure, parseTarget } from '../../outbound/safe-fetch.ts'
import { webhookRules } from '../../outbound/webhook-rules.ts'
import { SIGN_IN_SECRETS } from '../../tokens/sealed-columns.ts'
import { backchannelLogoutUrl, type Provider, redirectUrl, requireProvider, signOutUrl } from './rows.ts'

type Body = BodyOf<typeof putOperation>

/** For people who are not signed in. */
export async function listOpenProviders(ctx: Context): Promise<ResponseOf<typeof listOpenSignInProviders>> {
  const providers = await ctx.db
    .selectFrom('sign_in_providers')
    .select(['name', 'title'])
    .orderBy('title')
    .orderBy('name')
    .limit(SIGN_IN_PROVIDERS_MAX)
    .execute()
  return { providers }
}

export async function listProviders(ctx: Context): Promise<ResponseOf<typeof listSignInProviders>> {
  const rows = await ctx.db
    .selectFrom('sign_in_providers')
    .selectAll()
    .select(accountCount)
    .orderBy('name')
    .limit(SIGN_IN_PROVIDERS_MAX)
    .execute()
  return { providers: rows.map((row) => shownOf(ctx, row, Number(row.account_count))) }
}

const accountCount = sql<string>`
  (select count(*) from provider_accounts a where a.issuer = sign_in_providers.issuer)`.as('account_count')

/** Throws VALIDATION_ERROR. */
export async function putProvider(
  ctx: ChangeContext,
  name: string,
  body: Body,
): Promise<ResponseOf<typeof putOperation>> {
  const settings = settingsOf(body)
  checkIssuer(ctx, body.issuer)
  checkClaim(settings)
  await checkGroups(ctx.db, settings)
  const now = new Date(ctx.now())
  const own_session_id = ctx.audit !== null && ctx.audit.caller !== 'platform' ? sessionOf(ctx.audit.caller) : null
  const { provider } = await changes(ctx, {}, async (trx) => {
    // Two puts at once would both find room for one more.
    await sql`select pg_advisory_xact_lock(hashtextextended('sign_in_providers', 0))`.execute(trx)
    const former = await trx.selectFrom('sign_in_providers').selectAll().where('name', '=', name).executeTakeFirst()
    if (former === undefined) await checkRoom(trx)
    const provider_id = former?.provider_id ?? newId(ctx.now())
    const is_same_client = former?.issuer === body.issuer && former.client_id === body.client_id
    // A secret is not sent to another server than it was given for.
    const kept = is_same_client ? former.client_secret : null
    const client_secret =
      body.client_secret === undefined
        ? kept
        : ctx.seals.seal(SIGN_IN_SECRETS.purposeOf(provider_id), body.client_secret, ctx.now())
    const { title, issuer, client_id } = body
    const row: Provider = {
      provider_id,
      name,
      title,
      issuer,
      client_id,
      client_secret,
      settings,
      create_ts: former?.create_ts ?? now,
    }
    const values = { title, issuer, client_id, client_secret, settings: JSON.stringify(settings) }
    await trx
      .insertInto('sign_in_providers')
      .values({ provider_id, name, create_ts: row.create_ts, ...values })
      .onConflict((conflict) => conflict.column('provider_id').doUpdateSet(values))
      .execute()
    if (former !== undefined && (!is_same_client || !hasSameAdmins(former.settings, settings))) {
      await endSessions(ctx, trx, provider_id, { only_admins: is_same_client, but: own_session_id })
    }
    const secret = body.client_secret === undefined ? {} : { client_secret: SECRET }
    return {
      before: former === undefined ? {} : membersOf(former),
      after: { ...membersOf(row), ...secret },
      provider: row,
    }
  })
  return { provider: shownOf(ctx, provider, await countAccounts(ctx.db, provider.issuer)) }
}

/** Throws SIGN_IN_PROVIDER_NOT_FOUND. Memberships that it made stay, as if a person had made them. */
export async function deleteProvider(ctx: ChangeContext, name: string): Promise<{ ended_count: number }> {
  const { ended_count } = await changes(ctx, {}, async (trx) => {
    const provider = await requireProvider(trx, name)
    const { provider_id } = provider
    await trx
      .deleteFrom('sign_in_providers')
      .where('provider_id', '=', provider_id)
      .returning('provider_id')
      .executeTakeFirstOrThrow(() => new ApiError('SIGN_IN_PROVIDER_NOT_FOUND'))
    const ended_count = await endSessions(ctx, trx, provider_id, { only_admins: false, but: null })
    await trx.updateTable('group_members').set({ provider_id: null }).where('provider_id', '=', provider_id).execute()
    return { before: membersOf(provider), after: { ended_count }, ended_count }
  })
  return { ended_count }
}

/** `but`: a session that stays. Returns how many were ended. */
async function endSessions(
  ctx: Context,
  trx: Database,
  provider_id: string,
  { only_admins, but }: { only_admins: boolean; but: string | null },
): Promise<number> {
  const { numUpdatedRows } = await trx
    .updateTable('user_sessions')
    .set({ end_ts: new Date(ctx.now()) })
    .where('provider_id', '=', provider_id)
    .where('end_ts', 'is', null)
    .$if(only_admins, (query) => query.where('is_admin', '=', true))
    .$if(but !== null, (query) => query.where('session_id', '<>', but!))
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

function sessionOf(caller: object): string | null {
  return 'session_id' in caller && typeof caller.session_id === 'string' ? caller.session_id : null
}

function hasSameAdmins(former: SignInSettings, { groups_claim, admin_values }: SignInSettings): boolean {
  return former.groups_claim === groups_claim && former.admin_values.every((value) => admin_values.includes(value))
}

function settingsOf(body: Body): SignInSettings {
  return {
    scopes: body.scopes ?? SIGN_IN_SCOPES,
    groups_claim: body.groups_claim ?? null,
    rules: body.rules ?? [],
    admin_values: [...new Set(body.admin_values ?? [])],
    requires_value: body.requires_value ?? false,
    links_by_email: body.links_by_email ?? false,
    session_hours: body.session_hours ?? SIGN_IN_SESSION_HOURS,
  }
}

/** Throws VALIDATION_ERROR for an address that the platform would not call. */
function checkIssuer(ctx: Context, issuer: string): void {
  try {
    parseTarget(issuer, webhookRules(ctx.config))
    if (new URL(issuer).search !== '') throw new FetchFailure('url', 'The address must not have a query.')
  } catch (error) {
    if (!(error instanceof FetchFailure)) throw error
    const remedy =
      error.reason === 'address_not_public' ? ' The operator allows its network in MUSTER_FETCH_PRIVATE_NETWORKS.' : ''
    throw validationError([{ path: ['issuer'], reason: 'invalid', message: `${error.message}${remedy}` }])
  }
}

function checkClaim({ groups_claim, rules, admin_values, requires_value }: SignInSettings): void {
  const needs_claim = rules.length > 0 || admin_values.length > 0 || requires_value
  if (groups_claim === null && needs_claim) {
    const message = 'rules, admin_values and requires_value need a claim. Set groups_claim, for example to groups.'
    throw validationError([{ path: ['groups_claim'], reason: 'required', message }])
  }
  if (requires_value && rules.length === 0 && admin_values.length === 0) {
    const message = 'No person could sign in: there is no value in rules or admin_values. Add one.'
    throw validationError([{ path: ['requires_value'], reason: 'invalid', message }])
  }
}

async function checkGroups(db: Database, { rules }: SignInSettings): Promise<void> {
  if (rules.length === 0) return
  const ids = [...new Set(rules.map(({ group_id }) => group_id))]
  const rows = await db.selectFrom('groups').select('group_id').where('group_id', 'in', ids).execute()
  const known = new Set(rows.map(({ group_id }) => group_id))
  const at = rules.findIndex(({ group_id }) => !known.has(group_id))
  if (at === -1) return
  const message = `There is no group ${rules[at]!.group_id}. Use an id of the list of groups.`
  throw validationError([{ path: ['rules', String(at), 'group_id'], reason: 'not_found', message }])
}

async function checkRoom(trx: Database): Promise<void> {
  const { count } = await trx
    .selectFrom('sign_in_providers')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow()
  if (Number(count) < SIGN_IN_PROVIDERS_MAX) return
  const message = `There are ${SIGN_IN_PROVIDERS_MAX} providers, which is the maximum. Remove one first.`
  throw validationError([{ path: ['name'], reason: 'too_many', message }])
}

async function countAccounts(db: Database, issuer: string): Promise<number> {
  const { count } = await db
    .selectFrom('provider_accounts')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('issuer', '=', issuer)
    .executeTakeFirstOrThrow()
  return Number(count)
}

function shownOf({ config }: Context, provider: Provider, account_count: number): SignInProvider {
  const { provider_id, name, title, issuer, client_id, client_secret, settings, create_ts } = provider
  const { groups_claim, scopes, rules, admin_values, ...rest } = settings
  return {
    ...{ provider_id, name, title, issuer, client_id },
    ...rest,
    ...{ scopes: [...scopes], rules: [...rules], admin_values: [...admin_values] },
    ...(groups_claim === null ? {} : { groups_claim }),
    has_secret: client_secret !== null,
    redirect_url: redirectUrl(config, name),
    sign_out_url: signOutUrl(config),
    backchannel_logout_url: backchannelLogoutUrl(config, name),
    account_count,
    create_ts: create_ts.toISOString(),
  }
}

/** What the audit log records. */
function membersOf({ name, title, issuer, client_id, settings }: Provider): Members {
  return { name, title, issuer, client_id, ...settings }
}
