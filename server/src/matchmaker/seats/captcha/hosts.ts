// Whether a captcha was solved on a page of the namespace. A provider's widget works on every page that its site key
// allows, and site keys are public. So a response counts only from the namespace's own hosts: its site, its active custom
// domains, and the hosts of its valid development tokens. In development mode loopback names count as well.
import { type Kysely, sql } from 'kysely'
import { isDevelopmentHost } from '../../../captcha/spend.ts'
import type { Context } from '../../../context.ts'
import type { Schema } from '../../../database/schema.ts'

/** The namespace that is also served under the game's own host. */
const NAMESPACE_WITHOUT_NAME = 'prod'

/** `hostname`: from the provider's response, in upper or lower case. */
export async function isOwnHost(ctx: Context, namespace_id: string, hostname: string): Promise<boolean> {
  const host = hostname.toLowerCase()
  if (isDevelopmentHost(ctx, host)) return true
  return (await siteHostsOf(ctx, namespace_id)).includes(host) || isNamed(ctx.db, namespace_id, host, ctx.now())
}

async function siteHostsOf({ db, config }: Context, namespace_id: string): Promise<string[]> {
  const row = await db
    .selectFrom('namespaces')
    .innerJoin('games', 'games.game_id', 'namespaces.game_id')
    .select(['games.name_id as game', 'namespaces.name_id as namespace'])
    .where('namespace_id', '=', namespace_id)
    .executeTakeFirst()
  if (row === undefined) return []
  const named = `${row.game}--${row.namespace}.${config.domains.cdn}`
  return row.namespace === NAMESPACE_WITHOUT_NAME ? [`${row.game}.${config.domains.cdn}`, named] : [named]
}

/** By an active custom domain, or by a development token that is neither expired nor revoked. */
async function isNamed(db: Kysely<Schema>, namespace_id: string, host: string, now_ms: number): Promise<boolean> {
  const { rows } = await sql<{ is_named: boolean }>`
    select exists (
      select from domains
      where namespace_id = ${namespace_id} and domain = ${host} and verification_status = 'active'
    ) or exists (
      select from tokens left join revoked_tokens using (token_id)
      where namespace_id = ${namespace_id} and kind = 'development' and hostname = ${host}
        and tokens.expire_ts > ${new Date(now_ms)} and revoke_ts is null
    ) as is_named`.execute(db)
  return rows[0]!.is_named
}
