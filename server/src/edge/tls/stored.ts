// Certificates that the api orders by ACME, from the database, so that all edges share them. A look-up is cached until it changes
// (channel `certificates`), and for STORED_CERTIFICATE_MS_MAX at most. The first request for a host of the platform without a
// certificate orders one, and does not wait for it.
import { certifiedHosts } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import { isServed } from '../../database/served-hosts.ts'
import { CERTIFICATE_KEYS } from '../../tokens/sealed-columns.ts'
import { STORED_CERTIFICATE_MS_MAX, STORED_CERTIFICATES_MAX } from '../limits.ts'
import type { Lookups } from '../lookups.ts'
import { type Certificate, readCertificate } from './certificate.ts'

export type StoredCertificates = {
  /** Returns the cached certificate. If there is none or it is old, a look-up begins in the background. */
  peek: (host: string, client_key: string) => Certificate | null
  /** Throws the refusals of lookups.ts. */
  find: (host: string, client_key: string) => Certificate | null | Promise<Certificate | null>
  close: () => void
}

type CachedCertificate = { certificate: Certificate | null; until_ms: number }

export function createStoredCertificates(ctx: Context, lookups: Lookups): StoredCertificates {
  const cache = new Map<string, CachedCertificate>()
  const lookups_under_way = new Map<string, Promise<Certificate | null>>()
  const close = ctx.listener.on('certificates', (host) => {
    // A look-up under way may have read the state before the change: its result is used, but not cached.
    if (host === '') {
      for (const entry of cache.values()) entry.until_ms = 0
      lookups_under_way.clear()
      return
    }
    const entry = cache.get(host)
    if (entry !== undefined) entry.until_ms = 0
    lookups_under_way.delete(host)
  })

  const isFresh = (entry: CachedCertificate): boolean => ctx.elapsed() < entry.until_ms

  function lookUp(host: string, client_key: string): Promise<Certificate | null> {
    const before = lookups_under_way.get(host)
    if (before !== undefined) return before
    // A host that is not the platform's counts as a failed look-up of the client.
    const under_way: Promise<Certificate | null> = lookups
      .run(client_key, () => readOrOrder(ctx, host))
      .then((found) => {
        const certificate = found?.certificate ?? null
        if (found === null || lookups_under_way.get(host) !== under_way) return certificate
        cache.delete(host)
        if (cache.size >= STORED_CERTIFICATES_MAX) cache.delete(cache.keys().next().value!)
        cache.set(host, { certificate, until_ms: ctx.elapsed() + STORED_CERTIFICATE_MS_MAX })
        return certificate
      })
      .finally(() => {
        if (lookups_under_way.get(host) === under_way) lookups_under_way.delete(host)
      })
    lookups_under_way.set(host, under_way)
    return under_way
  }

  return {
    peek(host, client_key) {
      const entry = cache.get(host)
      if (entry === undefined || !isFresh(entry)) {
        lookUp(host, client_key).catch((error: unknown) =>
          ctx.log.debug({ err: error, host }, 'look-up of a certificate failed'),
        )
      }
      return entry?.certificate ?? null
    },
    find(host, client_key) {
      const entry = cache.get(host)
      if (entry !== undefined && isFresh(entry)) return entry.certificate
      return lookUp(host, client_key).catch((error: unknown) => {
        // While the database is down, a known certificate is used as before.
        if (entry !== undefined) return entry.certificate
        throw error
      })
    },
    close,
  }
}

/** Reads a host's certificate, or orders one. Returns null for a host that is not the platform's. */
async function readOrOrder(ctx: Context, host: string): Promise<{ certificate: Certificate | null } | null> {
  const row = await ctx.db
    .selectFrom('certificates')
    .select(['chain', 'private_key'])
    .where('host', '=', host)
    .executeTakeFirst()
  if (row !== undefined) {
    if (row.chain === null || row.private_key === null) return { certificate: null }
    const key = ctx.seals.open(CERTIFICATE_KEYS.purposeOf(host), row.private_key)
    return { certificate: readCertificate(row.chain, key) }
  }
  if (!(await isServed(ctx.db, certifiedHosts(ctx.config), host))) return null
  const now = new Date(ctx.now())
  const order = await ctx.db
    .insertInto('certificates')
    .values({ host, wish_ts: now, next_ts: now })
    .onConflict((conflict) => conflict.column('host').doNothing())
    .executeTakeFirst()
  if (order.numInsertedOrUpdatedRows === 1n) await ctx.listener.notify('certificate_wishes', host)
  return { certificate: null }
}
