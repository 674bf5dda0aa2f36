// Certificates that the api orders by ACME, as they are in the database: all edges, and all lives of one, share them. What
// is found is remembered until it changes (channel certificates) and for STORED_CERTIFICATE_MS_MAX at most. A host of ours
// that has none is noted as a wish, by whoever visits it first; the visit does not wait for it.
import { certifiedHosts } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import { isServed } from '../../database/served-hosts.ts'
import { CERTIFICATE_KEYS } from '../../tokens/sealed-columns.ts'
import { STORED_CERTIFICATE_MS_MAX, STORED_CERTIFICATES_MAX } from '../limits.ts'
import type { Lookups } from '../lookups.ts'
import { type Certificate, readCertificate } from './certificate.ts'

export type StoredCertificates = {
  /** What is known now; what is not, or not any more, is looked up meanwhile, on behalf of `source`. */
  peek: (host: string, source: string) => Certificate | null
  /** Throws as lookups.ts does. */
  find: (host: string, source: string) => Certificate | null | Promise<Certificate | null>
  close: () => void
}

type Known = { certificate: Certificate | null; until_ms: number }

export function createStoredCertificates(ctx: Context, lookups: Lookups): StoredCertificates {
  const known = new Map<string, Known>()
  const asking = new Map<string, Promise<Certificate | null>>()
  const close = ctx.listener.on('certificates', (host) => {
    // An answer that is under way may be from before the change: it is given, but not remembered.
    if (host === '') {
      for (const entry of known.values()) entry.until_ms = 0
      asking.clear()
      return
    }
    const entry = known.get(host)
    if (entry !== undefined) entry.until_ms = 0
    asking.delete(host)
  })

  const isFresh = (entry: Known): boolean => ctx.elapsed() < entry.until_ms

  function ask(host: string, source: string): Promise<Certificate | null> {
    const before = asking.get(host)
    if (before !== undefined) return before
    // A host that is none of ours counts as a failure of whoever asks for it.
    const under_way: Promise<Certificate | null> = lookups
      .run(source, () => readOrWish(ctx, host))
      .then((found) => {
        const certificate = found?.certificate ?? null
        if (found === null || asking.get(host) !== under_way) return certificate
        known.delete(host)
        if (known.size >= STORED_CERTIFICATES_MAX) known.delete(known.keys().next().value!)
        known.set(host, { certificate, until_ms: ctx.elapsed() + STORED_CERTIFICATE_MS_MAX })
        return certificate
      })
      .finally(() => {
        if (asking.get(host) === under_way) asking.delete(host)
      })
    asking.set(host, under_way)
    return under_way
  }

  return {
    peek(host, source) {
      const entry = known.get(host)
      if (entry === undefined || !isFresh(entry)) {
        ask(host, source).catch((error: unknown) =>
          ctx.log.debug({ err: error, host }, 'a certificate was not looked up'),
        )
      }
      return entry?.certificate ?? null
    },
    find(host, source) {
      const entry = known.get(host)
      if (entry !== undefined && isFresh(entry)) return entry.certificate
      return ask(host, source).catch((error: unknown) => {
        // Without the database a host goes on as it was.
        if (entry !== undefined) return entry.certificate
        throw error
      })
    },
    close,
  }
}

/** Null: not a host of ours. */
async function readOrWish(ctx: Context, host: string): Promise<{ certificate: Certificate | null } | null> {
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
  const noted = await ctx.db
    .insertInto('certificates')
    .values({ host, wish_ts: now, next_ts: now })
    .onConflict((conflict) => conflict.column('host').doNothing())
    .executeTakeFirst()
  if (noted.numInsertedOrUpdatedRows === 1n) await ctx.listener.notify('certificate_wishes', host)
  return { certificate: null }
}
