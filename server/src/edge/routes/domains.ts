// Custom domains: names under which a namespace's site is served once the claim to them is verified. A domain that is found is
// cached until its namespace changes (channel `namespaces`), and for SITE_HOST_AGE_MS_MAX at most. A domain that is not found
// is not cached; its look-ups are limited by client (lookups.ts).
import type { Context } from '../../context.ts'
import { Cached } from '../../database/cached.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { SITE_HOST_AGE_MS_MAX, SITE_HOSTS_MAX } from '../limits.ts'
import type { Lookups } from './lookups.ts'

type Site = { game: string; namespace: string }

export type Domains = {
  /** Returns the site of an active domain, or null. Throws the refusals of lookups.ts. */
  find: (domain: string, client_key: string) => Site | null | Promise<Site | null>
  close: () => void
}

export function createDomains(ctx: Context, lookups: Lookups): Domains {
  const sites = new Cached<Site | null>({
    entries_max: SITE_HOSTS_MAX,
    elapsed: ctx.elapsed,
    ageOf: (site) => (site === null ? null : SITE_HOST_AGE_MS_MAX),
  })
  const close = ctx.listener.on(CHANNELS.namespaces, () => sites.expireAll())
  return {
    find: (domain, client_key) => sites.get(domain, () => lookups.run(client_key, () => readSite(ctx, domain))),
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
