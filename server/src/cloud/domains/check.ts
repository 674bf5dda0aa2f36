// Whether a domain leads to the namespace that claims it. Two proofs: its CNAME record is the claim's own random name, or
// an HTTP fetch through it comes to our edge and brings back the claim's nonce (names at the top of a zone have address
// records only). A CNAME record that is another claim's proves nothing for this one, whatever the edge answers.
import { sql } from 'kysely'
import type { Context } from '../../context.ts'
import { parseNetworks } from '../../net/public-address.ts'
import { createNames, DnsFailure } from '../../net/resolve.ts'
import { FetchFailure, safeFetch } from '../../net/safe-fetch.ts'
import { addDomainCheck } from '../jobs.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** After the nth failure in a row; the last holds for all that follow. */
export const CHECK_BACK_OFF_MS = [10 * SECOND_MS, 30 * SECOND_MS, MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS]
/** A claim that was never proven is failed after so many, and looked at for the last time after so many. */
export const PENDING_FAILURES_MAX = 16
const FAILURES_MAX = 200
/** An active domain is looked at this often, and stays active as long as its last proof is not older than this. */
export const ACTIVE_CHECK_MS = 12 * HOUR_MS
export const ACTIVE_WITHOUT_PROOF_MS_MAX = 72 * HOUR_MS

const FETCH_MS_MAX = 5_000
const PROOF_BYTES_MAX = 256
const OTHER_CLAIM = /^claim-[0-9a-f]+$/

type Claim = { domain: string; domain_id: string; nonce: string; cname_label: string }

/** Looks at the claim, writes what came of it, and plans the next look. Nothing happens when the claim is gone. */
export async function checkDomain(ctx: Context, domain_id: string): Promise<void> {
  const claim = await ctx.db.selectFrom('domains').selectAll().where('domain_id', '=', domain_id).executeTakeFirst()
  if (claim === undefined) return
  const error = await findError(ctx, claim)
  const now = ctx.now()
  const has_changed = await ctx.db.transaction().execute(async (trx) => {
    // Of two claims that are proven at the same moment, the second sees the first.
    await sql`select pg_advisory_xact_lock(hashtextextended(${claim.domain}, 0))`.execute(trx)
    const current = await trx
      .selectFrom('domains')
      .select(['verification_status', 'verify_ts', 'failure_count'])
      .where('domain_id', '=', domain_id)
      .forUpdate()
      .executeTakeFirst()
    if (current === undefined) return false
    const owner = await trx
      .selectFrom('domains')
      .select('domain_id')
      .where('domain', '=', claim.domain)
      .where('verification_status', '=', 'active')
      .where('domain_id', '<>', domain_id)
      .executeTakeFirst()
    const line = owner === undefined ? error : `Another namespace has proven that ${claim.domain} is its own.`
    if (line === null) {
      await trx
        .updateTable('domains')
        .set({ verification_status: 'active', verification_errors: '[]', failure_count: 0, verify_ts: new Date(now) })
        .where('domain_id', '=', domain_id)
        .execute()
      await addDomainCheck(trx, domain_id, now + ACTIVE_CHECK_MS)
      return current.verification_status !== 'active'
    }
    const failure_count = current.failure_count + 1
    const verification_status = statusAfter(current, failure_count, now, owner !== undefined)
    await trx
      .updateTable('domains')
      .set({ verification_status, failure_count, verification_errors: JSON.stringify([line]) })
      .where('domain_id', '=', domain_id)
      .execute()
    const pause_ms = CHECK_BACK_OFF_MS[Math.min(failure_count, CHECK_BACK_OFF_MS.length) - 1]!
    if (failure_count < FAILURES_MAX) await addDomainCheck(trx, domain_id, now + pause_ms)
    return verification_status !== current.verification_status
  })
  if (has_changed) await ctx.listener.notify('namespaces', claim.namespace_id)
}

type Current = { verification_status: 'active' | 'pending' | 'failed'; verify_ts: Date | null }

function statusAfter(
  { verification_status, verify_ts }: Current,
  failure_count: number,
  now: number,
  is_taken: boolean,
) {
  if (is_taken) return 'failed'
  if (verification_status === 'active') {
    return now - (verify_ts?.getTime() ?? 0) <= ACTIVE_WITHOUT_PROOF_MS_MAX ? 'active' : 'failed'
  }
  return failure_count >= PENDING_FAILURES_MAX ? 'failed' : verification_status
}

/** Null: it is proven. Else what is wrong, in one line. */
async function findError(ctx: Context, claim: Claim): Promise<string | null> {
  const { domain, domain_id, nonce, cname_label } = claim
  const { config } = ctx
  const names = createNames(config.dns_servers)
  try {
    const suffix = `.${config.domains.cdn}`
    for (const alias of await names.aliases(domain)) {
      if (!alias.endsWith(suffix)) continue
      const label = alias.slice(0, -suffix.length)
      if (label === cname_label) return null
      if (OTHER_CLAIM.test(label)) return `The CNAME record of ${domain} is ${alias}, which is of another claim.`
    }
    const port = config.advertised_http_port
    const url = `http://${domain}${port === 80 ? '' : `:${port}`}/.well-known/muster-domain/${domain_id}`
    const answer = await safeFetch(
      { url, timeout_ms: FETCH_MS_MAX, body_bytes_max: PROOF_BYTES_MAX },
      {
        schemes: ['http'],
        names,
        private_networks: parseNetworks(config.fetch_private_networks),
        own_ports: [config.api_port, config.matchmaker_port].filter((own) => own !== port),
      },
    )
    if (answer.status !== 200) return `${domain} answered with status ${answer.status} where the proof should be.`
    return answer.body.toString() === nonce ? null : `${domain} answers, but not from this platform.`
  } catch (error) {
    if (error instanceof FetchFailure || error instanceof DnsFailure) return error.message
    throw error
  }
}
