// Custom domains: names of others under which a namespace's site is served once the claim to them is proven. A name that
// is found is remembered until its namespace changes (channel namespaces) and for SITE_HOST_AGE_MS_MAX at most; that there
// is none is not remembered, and is paid for by whoever asks (lookups.ts).
import type { Context } from '../context.ts'
import { SITE_HOST_AGE_MS_MAX, SITE_HOSTS_MAX } from './limits.ts'
import type { Lookups } from './lookups.ts'

type Site = { game: string; namespace: string }

export type Domains = {
  /** The site of an active domain, else null. Throws as lookups.ts does. */
  find: (domain: string, source: string) => Site | null | Promise<Site | null>
  close: () => void
}

export function createDomains(ctx: Context, lookups: Lookups): Domains {
  const known = new Map<string, { site: Site; until_ms: number }>()
  let changes = 0
  const close = ctx.listener.on('namespaces', () => {
    changes++
    for (const entry of known.values()) entry.until_ms = 0
  })

  async function ask(domain: string, source: string): Promise<Site | null> {
    const before = changes
    const site = await lookups.run(source, () => readSite(ctx, domain))
    known.delete(domain)
    if (site === null) return null
    if (known.size >= SITE_HOSTS_MAX) known.delete(known.keys().next().value!)
    known.set(domain, { site, until_ms: before === changes ? ctx.elapsed() + SITE_HOST_AGE_MS_MAX : 0 })
    return site
  }

  return {
    find(domain, source) {
      const entry = known.get(domain)
      if (entry !== undefined && ctx.elapsed() < entry.until_ms) return entry.site
      return ask(domain, source).catch((error: unknown) => {
        // Without the database a site goes on as it was.
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
