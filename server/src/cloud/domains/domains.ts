// A namespace's claims to custom domains: pending -> active | failed, failed -> active, and active -> failed when the proof
// has been missing for long. check.ts moves them; here they are made, listed and given up.
import { randomBytes } from 'node:crypto'
import { ApiError, type CdnDomain } from '@musterhost/contract'
import type { Static } from 'typebox'
import { type ChangeContext, changes } from '../../audit/changes.ts'
import type { Context } from '../../context.ts'
import { newId } from '../../ids.ts'
import type { Caller } from '../../tokens/caller.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { requireGame, requireNamespace } from '../access.ts'
import { addDomainCheck } from '../jobs.ts'
import { lockGroupOf, requireQuota } from '../quotas.ts'
import { timestamp } from '../times.ts'
import { requireDomain } from './names.ts'
import { hasRelativeOfOthers, lockDomains, quarantineEnd, quarantineLine, releaseDomains } from './ownership.ts'
import { cnameTarget, recordsOf } from './proofs.ts'

/** Custom domains of a namespace. */
const DOMAINS_PER_NAMESPACE_MAX = 10
const TXT_VALUE_BYTES = 24
const CNAME_LABEL_BYTES = 15

/**
 * Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND, CDN_INVALID_DOMAIN, CDN_TOO_MANY_DOMAINS, QUOTA_REACHED, or
 * CLOUD_HOSTNAME_TAKEN when another namespace has proven the domain, when another group has given it up not long ago, or
 * when this namespace has claimed it already.
 */
export async function addDomain(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  namespace_id: string,
  text: string,
): Promise<void> {
  await requireGame(ctx, caller, game_id)
  await requireNamespace(ctx, game_id, namespace_id)
  const domain = requireDomain(ctx.config.domains, text)
  await changes(ctx, { game_id, namespace_id }, async (trx) => {
    const group_id = await lockGroupOf(trx, game_id)
    await requireNamespace(ctx, game_id, namespace_id, trx)
    const own = await trx.selectFrom('domains').select('domain').where('namespace_id', '=', namespace_id).execute()
    if (own.some((row) => row.domain === domain)) {
      throw new ApiError('CLOUD_HOSTNAME_TAKEN', {}, { message: 'The namespace has this domain already.' })
    }
    if (own.length >= DOMAINS_PER_NAMESPACE_MAX) {
      throw new ApiError('CDN_TOO_MANY_DOMAINS', { limit: DOMAINS_PER_NAMESPACE_MAX, used: own.length })
    }
    await requireQuota(ctx, trx, group_id, 'domains')
    const proven = await trx
      .selectFrom('domains')
      .select('domain_id')
      .where('domain', '=', domain)
      .where('verification_status', '=', 'active')
      .where((query) => query.or([query('proof', 'is', null), query('proof', '<>', 'http')]))
      .executeTakeFirst()
    if (proven !== undefined) throw new ApiError('CLOUD_HOSTNAME_TAKEN')
    const end = await quarantineEnd(ctx, trx, { domain, group_id })
    if (end !== null) {
      const metadata = { quarantine_end_ts: timestamp(end) }
      throw new ApiError('CLOUD_HOSTNAME_TAKEN', metadata, { message: quarantineLine(domain, end) })
    }
    const now = ctx.now()
    const domain_id = newId(now)
    await trx
      .insertInto('domains')
      .values({
        domain_id,
        namespace_id,
        domain,
        create_ts: new Date(now),
        verification_status: 'pending',
        txt_value: randomBytes(TXT_VALUE_BYTES).toString('base64url'),
        cname_label: `claim-${randomBytes(CNAME_LABEL_BYTES).toString('hex')}`,
        verification_errors: '[]',
      })
      .execute()
    await addDomainCheck(trx, domain_id, null)
    return { before: {}, after: { domain } }
  })
}

/** Throws GAME_NOT_FOUND, NAMESPACE_NOT_FOUND or CDN_DOMAIN_NOT_FOUND. */
export async function removeDomain(
  ctx: ChangeContext,
  caller: Caller,
  game_id: string,
  namespace_id: string,
  domain: string,
): Promise<void> {
  await requireGame(ctx, caller, game_id)
  await requireNamespace(ctx, game_id, namespace_id)
  await changes(ctx, { game_id, namespace_id }, async (trx) => {
    await lockDomains(trx)
    await releaseDomains(ctx, trx, { namespace_id, domain })
    const removed = await trx
      .deleteFrom('domains')
      .where('namespace_id', '=', namespace_id)
      .where('domain', '=', domain)
      .executeTakeFirst()
    if (removed.numDeletedRows === 0n) throw new ApiError('CDN_DOMAIN_NOT_FOUND')
    return { before: { domain }, after: {} }
  })
  await ctx.listener.notify(CHANNELS.namespaces, namespace_id)
}

export async function listDomains(ctx: Context, namespace_id: string): Promise<Static<typeof CdnDomain>[]> {
  const rows = await ctx.db
    .selectFrom('domains')
    .innerJoin('namespaces', 'namespaces.namespace_id', 'domains.namespace_id')
    .innerJoin('games', 'games.game_id', 'namespaces.game_id')
    .leftJoin('certificates', 'certificates.host', 'domains.domain')
    .selectAll('domains')
    .select(['games.developer_group_id as group_id', 'certificates.host'])
    .select(['certificates.error', 'certificates.expire_ts'])
    .where('domains.namespace_id', '=', namespace_id)
    .orderBy('domains.create_ts')
    .orderBy('domain')
    .limit(DOMAINS_PER_NAMESPACE_MAX)
    .execute()
  return Promise.all(
    rows.map(async (claim) => {
      const { domain, create_ts, verification_status, verification_errors, host } = claim
      const txt_only = verification_status !== 'active' && (await hasRelativeOfOthers(ctx.db, claim))
      return {
        domain,
        create_ts: timestamp(create_ts),
        verification_status,
        verification_method: { http: { cname_record: cnameTarget(ctx, claim) } },
        verification_records: recordsOf(ctx, claim, txt_only),
        verification_errors,
        ...(verification_status === 'active' && host !== null ? { certificate: certificateOf(claim) } : {}),
      }
    }),
  )
}

function certificateOf({ expire_ts, error }: { expire_ts: Date | null; error: string | null }) {
  return {
    ...(expire_ts === null ? {} : { expire_ts: timestamp(expire_ts) }),
    ...(error === null ? {} : { error }),
  }
}
