// The proof of a wildcard by DNS (RFC 8555, 8.4): a TXT record of `_acme-challenge.DOMAIN`, or of the name that this one is
// an alias of. The record is made by a signed update or by the operator's program, and the authority is asked once all name
// servers of the zone serve it. Each record is noted in the database before it is made, so that after a crash the next
// order of the same name removes it.
import type { AcmeDns } from '../../config/acme.ts'
import type { Context } from '../../context.ts'
import { createDns, type Dns, DnsFailure } from '../../outbound/dns.ts'
import { updateText } from '../../outbound/dns-update.ts'
import type { Challenge } from './challenge.ts'
import { runHook } from './dns-hook.ts'
import { waitUntilServed } from './dns-served.ts'

/** Aliases of one name that are followed. */
const ALIASES_MAX = 8
/** How long a record that could not be removed is tried again, with each order of the name. */
const NOTED_MS = 7 * 24 * 60 * 60_000
/** Records that one order removes for those before it. */
const LEFT_MAX = 20

type Acme = NonNullable<Context['config']['acme']>
type TextRecord = { name: string; value: string }

/** `wildcard`: `*.` and a domain. `signal` ends the waiting of `publish`; the record is still removed. */
export async function dnsChallenge(
  ctx: Context,
  { dns }: Acme,
  wildcard: string,
  signal?: AbortSignal,
): Promise<Challenge> {
  if (dns === null) throw new Error('Without DNS-01 no wildcard can be proven.')
  const names = createDns(ctx.config.dns_servers)
  await removeLeft(ctx, dns, wildcard)
  return {
    type: 'dns-01',
    async publish(token, value) {
      const name = await resolveAlias(names, `_acme-challenge.${wildcard.slice(2)}`)
      await note(ctx, wildcard, token, { name, value })
      await change(ctx, dns, 'present', { name, value }, signal)
      await waitUntilServed(names, dns.check_servers, { name, value }, { signal })
    },
    async remove(token) {
      const noted = await ctx.db
        .selectFrom('acme_challenges')
        .select(['token', 'key_authorization'])
        .where('token', '=', token)
        .executeTakeFirst()
      if (noted !== undefined) await remove(ctx, dns, noted)
    },
  }
}

/** The name that has the record: of an alias the last target, in whosever zone it is. */
export async function resolveAlias(names: Dns, name: string): Promise<string> {
  let owner = name
  for (let count = 0; count < ALIASES_MAX; count++) {
    try {
      owner = await names.alias(owner)
    } catch (error) {
      if (error instanceof DnsFailure && error.reason === 'not_found') return owner
      throw error
    }
  }
  throw new Error(`${name} is an alias of an alias, more than ${ALIASES_MAX} times.`)
}

async function change(
  ctx: Context,
  { publisher }: AcmeDns,
  action: 'present' | 'cleanup',
  record: TextRecord,
  signal?: AbortSignal,
): Promise<void> {
  if (publisher.kind === 'hook') return runHook(ctx, publisher.path, [action, record.name, record.value], { signal })
  const { server, key } = publisher
  if (key === null) throw new Error('This process orders no certificates: it has no key.')
  await updateText({ server, key, now: ctx.now }, action === 'present' ? 'add' : 'remove', record)
}

/** The columns are those of a proof over HTTP; no edge is asked for a wildcard's. */
async function note(ctx: Context, host: string, token: string, { name, value }: TextRecord): Promise<void> {
  const key_authorization = `${name} ${value}`
  const expire_ts = new Date(ctx.now() + NOTED_MS)
  await ctx.db
    .insertInto('acme_challenges')
    .values({ token, host, key_authorization, expire_ts })
    .onConflict((conflict) => conflict.column('token').doUpdateSet({ host, key_authorization, expire_ts }))
    .execute()
}

async function removeLeft(ctx: Context, dns: AcmeDns, wildcard: string): Promise<void> {
  const left = await ctx.db
    .selectFrom('acme_challenges')
    .select(['token', 'key_authorization'])
    .where('host', '=', wildcard)
    .orderBy('expire_ts')
    .limit(LEFT_MAX)
    .execute()
  for (const noted of left) await remove(ctx, dns, noted)
}

/** A failure does not fail the order: the record proves nothing any more. */
async function remove(ctx: Context, dns: AcmeDns, noted: { token: string; key_authorization: string }): Promise<void> {
  const { token, key_authorization } = noted
  const [name = '', value = ''] = key_authorization.split(' ')
  try {
    await change(ctx, dns, 'cleanup', { name, value })
    await ctx.db.deleteFrom('acme_challenges').where('token', '=', token).execute()
  } catch (error) {
    ctx.log.warn({ err: error, name, value }, 'a TXT record could not be removed; the next order tries again')
  }
}
