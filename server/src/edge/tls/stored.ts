// Certificates that the api orders by ACME, from the database, so that all edges share them. A look-up is cached until it changes
// (channel `certificates`), and for STORED_CERTIFICATE_MS_MAX at most. The first request for a host of the platform without a
// certificate orders one, and does not wait for it.
import { certifiedHosts } from '../../config/addresses.ts'
import type { Context } from '../../context.ts'
import { Cached } from '../../database/cached.ts'
import { isServed } from '../../database/served-hosts.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { STORED_CERTIFICATE_MS_MAX, STORED_CERTIFICATES_MAX } from '../limits.ts'
import type { Lookups } from '../routes/lookups.ts'
import { type Certificate, readCertificate } from './certificate.ts'

export type StoredCertificates = {
  /** Returns the cached certificate. If there is none or it is old, a look-up begins in the background. */
  peek: (host: string, client_key: string) => Certificate | null
  /** Throws the refusals of lookups.ts. */
  find: (host: string, client_key: string) => Certificate | null | Promise<Certificate | null>
  close: () => void
}

/** `certificate`: null where it is ordered. */
type Stored = { certificate: Certificate | null }

export function createStoredCertificates(ctx: Context, lookups: Lookups): StoredCertificates {
  const logFailure = (error: unknown, host: string): void =>
    ctx.log.debug({ err: error, host }, 'look-up of a certificate failed')
  const cache = new Cached<Stored | null>({
    entries_max: STORED_CERTIFICATES_MAX,
    elapsed: ctx.elapsed,
    ageOf: (stored) => (stored === null ? null : STORED_CERTIFICATE_MS_MAX),
    onStale: logFailure,
  })
  const close = ctx.listener.on(CHANNELS.certificates, (host) => {
    if (host === '') cache.expireAll()
    else cache.expire(host)
  })

  /** A host that is not the platform's counts as a failed look-up of the client. */
  const lookUp = (host: string, client_key: string): Stored | null | Promise<Stored | null> =>
    cache.get(host, () => lookups.run(client_key, () => readOrOrder(ctx, host)))

  return {
    peek(host, client_key) {
      const found = lookUp(host, client_key)
      if (found instanceof Promise) found.catch((error: unknown) => logFailure(error, host))
      return cache.peek(host)?.certificate ?? null
    },
    find(host, client_key) {
      const found = lookUp(host, client_key)
      if (found instanceof Promise) return found.then((stored) => stored?.certificate ?? null)
      return found?.certificate ?? null
    },
    close,
  }
}

/** Reads a host's certificate, or orders one. Returns null for a host that is not the platform's. */
async function readOrOrder(ctx: Context, host: string): Promise<Stored | null> {
  const row = await ctx.db
    .selectFrom('certificates')
    .select(['chain', 'private_key'])
    .where('host', '=', host)
    .executeTakeFirst()
  if (row !== undefined) {
    if (row.chain === null || row.private_key === null) return { certificate: null }
    const key = await ctx.certificate_keys.open(host, row.private_key)
    return { certificate: readCertificate(row.chain, key) }
  }
  if (!(await isServed(ctx.db, certifiedHosts(ctx.config), host))) return null
  const now = new Date(ctx.now())
  const order = await ctx.db
    .insertInto('certificates')
    .values({ host, wish_ts: now, next_ts: now })
    .onConflict((conflict) => conflict.column('host').doNothing())
    .executeTakeFirst()
  if (order.numInsertedOrUpdatedRows === 1n) await ctx.listener.notify(CHANNELS.certificate_wishes, host)
  return { certificate: null }
}
