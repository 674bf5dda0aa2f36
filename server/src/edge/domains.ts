// Custom domains: names under which a namespace's site is served once the claim to them is verified. A domain that is found is
// cached until its namespace changes (channel `namespaces`), and for SITE_HOST_AGE_MS_MAX at most. A domain that is not found
// is not cached; its look-ups are limited by client (lookups.ts).
import type { Context } from '../context.ts'
import { SITE_HOST_AGE_MS_MAX, SITE_HOSTS_MAX } from './limits.ts'
import type { Lookups } from './lookups.ts'

type Site = { game: string; namespace: string }

export type Domains = {
  /** Returns the site of an active domain, or null. Throws the refusals of lookups.ts. */
  find: (domain: string, client_key: string) => Site | null | Promise<Site | null>
  close: () => void
}

export function createDomains(ctx: Context, lookups: Lookups): Domains {
  const cache = new Map<string, { site: Site; until_ms: number }>()
  let changes = 0
  const close = ctx.listener.on('namespaces', () => {
    changes++
    for (const entry of cache.values()) entry.until_ms = 0
  })

  async function lookUp(domain: string, client_key: string): Promise<Site | null> {
    const before = changes
    const site = await lookups.run(client_key, () => readSite(ctx, domain))
    cache.delete(domain)
    if (site === null) return null
    if (cache.size >= SITE_HOSTS_MAX) cache.delete(cache.keys().next().value!)
    cache.set(domain, { site, until_ms: before === changes ? ctx.elapsed() + SITE_HOST_AGE_MS_MAX : 0 })
    return site
  }

  return {
    find(domain, client_key) {
      const entry = cache.get(domain)
      if (entry !== undefined && ctx.elapsed() < entry.until_ms) return entry.site
      return lookUp(domain, client_key).catch((error: unknown) => {
        // While the database is down, a known site is served as before.
        if (entry !== undefined) return entry.site
        throw error
      })
    },
    close,
  }
}

async function readSite(ctx: Context, domain: string): Promise<Site | null> {
  const row = await ctx.db
    .selectFrom('domains')
    .innerJoin('namespaces', 'namespaces.namespace_id', 'domains.namespace_id')
    .innerJoin('games', 'games.game_id', 'namespaces.game_id')
    .select(['games.name_id as game', 'namespaces.name_id as namespace'])
    .where('domains.domain', '=', domain)
    .where('domains.verification_status', '=', 'active')
    .executeTakeFirst()
  return row ?? null
}
