// Who may have a domain, beside what DNS says. A domain that its owner gives up is in quarantine: for a while nobody but
// that owner's group may have it, for records of the old owner may still lead here. A domain above or below an active one
// of another group needs the stronger proof. Owners are groups: a domain may move between namespaces of one group.
import { type Kysely, sql, type Transaction } from 'kysely'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'

type Trx = Transaction<Schema>

/** Until the transaction ends no other claim becomes active, and no active one is given up. Taken before any row. */
export async function lockDomains(trx: Trx): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('domains', 0))`.execute(trx)
}

/** For who has locked the domains: the active ones of a namespace, or of all of a game's, are about to be deleted. */
export async function releaseDomains(
  ctx: Context,
  trx: Trx,
  of: { game_id: string } | { namespace_id: string; domain?: string },
): Promise<void> {
  const released = trx
    .selectFrom('domains')
    .innerJoin('namespaces', 'namespaces.namespace_id', 'domains.namespace_id')
    .innerJoin('games', 'games.game_id', 'namespaces.game_id')
    .where('domains.verification_status', '=', 'active')
    .$if('game_id' in of, (query) => query.where('games.game_id', '=', (of as { game_id: string }).game_id))
    .$if('namespace_id' in of, (query) =>
      query.where('domains.namespace_id', '=', (of as { namespace_id: string }).namespace_id),
    )
    .$if('domain' in of, (query) => query.where('domains.domain', '=', (of as { domain: string }).domain))
    .select((query) => [
      'domains.domain',
      'games.developer_group_id as group_id',
      query.val(new Date(ctx.now())).$castTo<Date>().as('release_ts'),
    ])
  await trx
    .insertInto('released_domains')
    .columns(['domain', 'group_id', 'release_ts'])
    .expression(released)
    .onConflict((conflict) =>
      conflict.column('domain').doUpdateSet((query) => ({
        group_id: query.ref('excluded.group_id'),
        release_ts: query.ref('excluded.release_ts'),
      })),
    )
    .execute()
}

/** When the quarantine of the domain ends; null when there is none for this group. */
export async function quarantineEnd(
  ctx: Context,
  db: Kysely<Schema>,
  { domain, group_id }: { domain: string; group_id: string },
): Promise<Date | null> {
  const row = await db
    .selectFrom('released_domains')
    .select('release_ts')
    .where('domain', '=', domain)
    .where('group_id', '<>', group_id)
    .executeTakeFirst()
  if (row === undefined) return null
  const end_ms = row.release_ts.getTime() + ctx.config.domain_quarantine_ms
  return end_ms > ctx.now() ? new Date(end_ms) : null
}

/** What the developer reads while the domain is in quarantine. */
export function quarantineLine(domain: string, end: Date): string {
  return `Another group has given up ${domain}, which is reserved for it until ${end.toISOString()}.`
}

/** Whether another group has an active domain above or below this one. */
export async function hasRelativeOfOthers(
  db: Kysely<Schema>,
  { domain, group_id }: { domain: string; group_id: string },
): Promise<boolean> {
  const labels = domain.split('.')
  const above = labels.map((_, first) => labels.slice(first).join('.')).slice(1)
  const row = await db
    .selectFrom('domains')
    .innerJoin('namespaces', 'namespaces.namespace_id', 'domains.namespace_id')
    .innerJoin('games', 'games.game_id', 'namespaces.game_id')
    .select('domain_id')
    .where('verification_status', '=', 'active')
    .where('games.developer_group_id', '<>', group_id)
    .where((query) =>
      // A canonical domain has no character that a pattern would read as something else.
      query.or([query('domain', 'in', above), sql<boolean>`reverse(domain) like reverse(${`.${domain}`}) || '%'`]),
    )
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}
