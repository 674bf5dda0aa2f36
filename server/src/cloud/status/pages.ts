// Settings of the status page of a game. The row is made by the first put, or stays absent: the page is off.
import {
  ApiError,
  type BodyOf,
  type putStatusPage as putOperation,
  STATUS_PAGES_MAX,
  type StatusPage,
} from '@musterhost/contract'
import { sql } from 'kysely'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Members } from '../../audit/members.ts'
import { publicUrl } from '../../config/addresses.ts'
import type { Context, Database } from '../../context.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import type { StatusView } from '../../wire/status-view.ts'
import { requireGame, requireNamespace } from '../access.ts'
import { throwErrors } from '../field-errors.ts'
import { writeView } from './view.ts'

type Body = BodyOf<typeof putOperation>
type Settings = {
  is_enabled: boolean
  namespace_id: string
  title: string | null
  text: string | null
  domain: string | null
}

const NAMESPACE_DEFAULT = 'prod'
const NO_VIEW: Pick<StatusView, 'state' | 'measured_ts'> = { state: 'unknown', measured_ts: null }

/** Throws GAME_NOT_FOUND, or NAMESPACE_NOT_FOUND for a game without a namespace. */
export async function getPage(ctx: Context, caller: Caller, game_id: string): Promise<{ status_page: StatusPage }> {
  await requireGame(ctx, caller, game_id)
  return { status_page: await readPage(ctx, game_id) }
}

/** The page of a game, off where it never was set. */
async function readPage(ctx: Context, game_id: string): Promise<StatusPage> {
  const row = await ctx.db
    .selectFrom('status_pages')
    .select(['is_enabled', 'namespace_id', 'title', 'text', 'domain', 'view'])
    .where('game_id', '=', game_id)
    .executeTakeFirst()
  const { view, ...settings } = row ?? { ...(await defaultsOf(ctx, game_id)), view: NO_VIEW }
  const { is_enabled, namespace_id, title, text, domain } = settings
  return {
    ...{ is_enabled, namespace_id },
    ...(title === null ? {} : { title }),
    ...(text === null ? {} : { text }),
    ...(domain === null ? {} : { domain }),
    url: await urlOf(ctx, settings),
    state: view.state,
    ...(view.measured_ts === null ? {} : { measured_ts: view.measured_ts }),
  }
}

async function defaultsOf(ctx: Context, game_id: string): Promise<Settings> {
  return {
    is_enabled: false,
    namespace_id: await defaultNamespace(ctx, game_id),
    ...{ title: null, text: null, domain: null },
  }
}

/** The id of `prod`, or of the oldest namespace of a game that has none of this name. */
async function defaultNamespace(ctx: Context, game_id: string): Promise<string> {
  const { namespace_id } = await ctx.db
    .selectFrom('namespaces')
    .select('namespace_id')
    .where('game_id', '=', game_id)
    .orderBy(sql`name_id <> ${NAMESPACE_DEFAULT}`)
    .orderBy('create_ts')
    .limit(1)
    .executeTakeFirstOrThrow(() => new ApiError('NAMESPACE_NOT_FOUND'))
  return namespace_id
}

async function urlOf({ db, config }: Context, { namespace_id, domain }: Settings): Promise<string> {
  if (domain !== null) return `${publicUrl(config, domain)}/`
  const { game, namespace } = await db
    .selectFrom('namespaces')
    .innerJoin('games', 'games.game_id', 'namespaces.game_id')
    .select(['games.name_id as game', 'namespaces.name_id as namespace'])
    .where('namespace_id', '=', namespace_id)
    .executeTakeFirstOrThrow()
  const label = namespace === NAMESPACE_DEFAULT ? game : `${game}--${namespace}`
  return `${publicUrl(config, `${label}.${config.domains.cdn}`)}/status`
}

/** Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND or VALIDATION_ERROR. */
export async function putPage(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  body: Body,
): Promise<{ status_page: StatusPage }> {
  await requireGame(ctx, caller, game_id)
  const namespace_id = body.namespace_id ?? (await defaultNamespace(ctx, game_id))
  const settings: Settings = {
    ...{ is_enabled: body.is_enabled, namespace_id },
    ...{ title: body.title || null, text: body.text || null, domain: body.domain ?? null },
  }
  await changes(ctx, { game_id, namespace_id }, async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('status pages', 0))`.execute(trx)
    await requireNamespace(ctx, game_id, namespace_id, trx)
    await checkDomain(trx, settings)
    const former = await trx
      .selectFrom('status_pages')
      .selectAll()
      .where('game_id', '=', game_id)
      .forUpdate()
      .executeTakeFirst()
    if (settings.is_enabled && former?.is_enabled !== true) await checkRoom(trx)
    // What was before is another namespace, or was not measured.
    const begins = former === undefined || !former.is_enabled || former.namespace_id !== namespace_id
    const row = { ...settings, ...(begins ? { measured_ts: null, recent: '{}' } : {}) }
    await trx
      .insertInto('status_pages')
      .values({ game_id, recent: '{}', view: JSON.stringify(NO_VIEW), ...row })
      .onConflict((conflict) => conflict.column('game_id').doUpdateSet(row))
      .execute()
    await writeView(ctx, trx, game_id)
    return { before: former === undefined ? {} : membersOf(former), after: membersOf(settings) }
  })
  await ctx.listener.notify(CHANNELS.status_pages)
  return { status_page: await readPage(ctx, game_id) }
}

function membersOf({ is_enabled, namespace_id, title, text, domain }: Settings): Members {
  return { is_enabled, namespace_id, title, text, domain }
}

/** A domain of the namespace may still wait for its proof: the page is served there once it is proven. */
async function checkDomain(trx: Database, { namespace_id, domain }: Settings): Promise<void> {
  if (domain === null) return
  const known = await trx
    .selectFrom('domains')
    .select('domain')
    .where('namespace_id', '=', namespace_id)
    .where('domain', '=', domain)
    .executeTakeFirst()
  if (known !== undefined) return
  const message = `The namespace has no domain ${domain}. Add it first: muster domains add ${domain}`
  throwErrors([{ path: ['domain'], reason: 'not_found', message }])
}

async function checkRoom(trx: Database): Promise<void> {
  const { count } = await trx
    .selectFrom('status_pages')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('is_enabled', '=', true)
    .executeTakeFirstOrThrow()
  if (Number(count) < STATUS_PAGES_MAX) return
  const message = `The platform has ${STATUS_PAGES_MAX} enabled status pages, which is the maximum. Disable one first.`
  throwErrors([{ path: ['is_enabled'], reason: 'too_many', message }])
}
