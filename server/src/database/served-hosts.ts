// The hosts for which a certificate may be ordered: those that serve something. The edge checks before it notes a request,
// so that strangers do not fill the table. The api checks again before it orders, because much may have changed since.
import { type Kysely, sql } from 'kysely'
import type { Schema } from './schema.ts'

/** The namespace that also answers on the game's own host. */
const NAMESPACE_WITHOUT_NAME = 'prod'

/** `host` is canonical. Hosts of the platform's `own`, the host of one edge, a site that is deployed, and a custom domain that is proven. */
export async function isServed(
  db: Kysely<Schema>,
  { own, cdn }: { own: readonly string[]; cdn: string },
  host: string,
): Promise<boolean> {
  if (own.includes(host) || (await isEdgeHost(db, host))) return true
  const suffix = `.${cdn}`
  if (!host.endsWith(suffix)) return isActiveDomain(db, host)
  const [game = '', namespace = NAMESPACE_WITHOUT_NAME, ...more] = host.slice(0, -suffix.length).split('--')
  if (more.length > 0) return false
  const row = await db
    .selectFrom('namespaces')
    .innerJoin('games', 'games.game_id', 'namespaces.game_id')
    .innerJoin('versions', 'versions.version_id', 'namespaces.version_id')
    .where('games.name_id', '=', game)
    .where('namespaces.name_id', '=', namespace)
    .where(sql<boolean>`versions.config->'cdn'->>'site_id' is not null`)
    .select('namespace_id')
    .executeTakeFirst()
  return row !== undefined
}

/** Whether this is the host of an edge that players reach at a host of its own. */
async function isEdgeHost(db: Kysely<Schema>, host: string): Promise<boolean> {
  const row = await db.selectFrom('edges').where('public_host', '=', host).select('edge_id').executeTakeFirst()
  return row !== undefined
}

async function isActiveDomain(db: Kysely<Schema>, domain: string): Promise<boolean> {
  const row = await db
    .selectFrom('domains')
    .where('domain', '=', domain)
    .where('verification_status', '=', 'active')
    .select('domain_id')
    .executeTakeFirst()
  return row !== undefined
}
