// Moves a claim to a custom domain between its states. It looks up the two DNS proofs (proofs.ts), and decides under the
// lock of all domains who has the domain: the first claim that is proven, unless the domain is in quarantine
// (ownership.ts). An active claim stays active for a while without a proof, so a broken name server costs nobody a domain.
import type { Transaction } from 'kysely'
import type { Context } from '../../context.ts'
import type { Schema } from '../../database/schema.ts'
import { CHANNELS } from '../../wire/channels.ts'
import { addDomainCheck } from '../jobs.ts'
import { hasRelativeOfOthers, lockDomains, quarantineEnd, quarantineLine } from './ownership.ts'
import { isApex, type ProofKind, type Proofs, readProofs } from './proofs.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** After the nth failure in a row; the last holds for all that follow. */
export const CHECK_BACK_OFF_MS = [10 * SECOND_MS, 30 * SECOND_MS, MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS]
/** Failed checks before an unverified claim is marked failed. */
export const PENDING_FAILURES_MAX = 16
/** Failed checks after which a claim is no longer checked. */
const FAILURES_MAX = 200
/** An active domain is checked this often, and stays active as long as its last proof is not older than this. */
export const ACTIVE_CHECK_MS = 12 * HOUR_MS
/** An active domain without its record stays active for this time. */
export const ACTIVE_WITHOUT_PROOF_MS_MAX = 72 * HOUR_MS

type Trx = Transaction<Schema>

/** Checks the claim, writes the outcome, and plans the next check. Does nothing when the claim is gone. */
export async function checkDomain(ctx: Context, domain_id: string): Promise<void> {
  const asked = await ctx.db
    .selectFrom('domains')
    .select(['domain', 'cname_label', 'txt_value'])
    .where('domain_id', '=', domain_id)
    .executeTakeFirst()
  if (asked === undefined) return
  const proofs = await readProofs(ctx, asked)
  const changed_namespaces = await ctx.db.transaction().execute(async (trx) => {
    await lockDomains(trx)
    const claim = await readClaim(trx, domain_id)
    return claim === undefined ? [] : writeOutcome(ctx, trx, claim, await decide(ctx, trx, claim, proofs))
  })
  for (const namespace_id of changed_namespaces) await ctx.listener.notify(CHANNELS.namespaces, namespace_id)
}

type Claim = NonNullable<Awaited<ReturnType<typeof readClaim>>>

function readClaim(trx: Trx, domain_id: string) {
  return trx
    .selectFrom('domains')
    .innerJoin('namespaces', 'namespaces.namespace_id', 'domains.namespace_id')
    .innerJoin('games', 'games.game_id', 'namespaces.game_id')
    .selectAll('domains')
    .select('games.developer_group_id as group_id')
    .where('domain_id', '=', domain_id)
    .forUpdate('domains')
    .executeTakeFirst()
}

type Outcome =
  | { kind: 'proven'; proof: ProofKind; replaced: { domain_id: string; namespace_id: string } | null }
  | { kind: 'quarantined'; end: Date }
  | { kind: 'taken' }
  | { kind: 'unproven'; lines: string[] }

/** For who has locked the domains. */
async function decide(ctx: Context, trx: Trx, claim: Claim, proofs: Proofs): Promise<Outcome> {
  const owner = await trx
    .selectFrom('domains')
    .select(['domain_id', 'namespace_id', 'proof'])
    .where('domain', '=', claim.domain)
    .where('verification_status', '=', 'active')
    .where('domain_id', '<>', claim.domain_id)
    .executeTakeFirst()
  if (owner !== undefined && owner.proof !== 'http') return { kind: 'taken' }
  const txt_only = claim.verification_status !== 'active' && (await hasRelativeOfOthers(trx, claim))
  const proof = proofs.txt === null ? 'txt' : proofs.cname === null && !txt_only ? 'cname' : null
  if (proof === null) return { kind: 'unproven', lines: linesOf(claim.domain, proofs, txt_only) }
  const end = await quarantineEnd(ctx, trx, claim)
  return end === null ? { kind: 'proven', proof, replaced: owner ?? null } : { kind: 'quarantined', end }
}

/** A line for each record that would prove the claim. */
function linesOf(domain: string, { cname, txt }: Proofs, txt_only: boolean): string[] {
  const lines = [cname, txt].filter((line) => line !== null)
  if (isApex(domain)) return lines.slice(1)
  if (!txt_only) return lines
  return [
    `Another group has a domain above or below ${domain}, so only the TXT record proves this claim.`,
    ...lines.slice(-1),
  ]
}

/** Returns the namespaces that have won or lost the domain. */
async function writeOutcome(ctx: Context, trx: Trx, claim: Claim, outcome: Outcome): Promise<string[]> {
  switch (outcome.kind) {
    case 'proven':
      return activate(ctx, trx, claim, outcome)
    case 'quarantined':
      await setLines(trx, claim.domain_id, [quarantineLine(claim.domain, outcome.end)])
      await addDomainCheck(trx, claim.domain_id, outcome.end.getTime())
      return []
    case 'taken':
      return fail(ctx, trx, claim, [`Another namespace has proven that ${claim.domain} is its own.`], 'failed')
    case 'unproven':
      if (claim.verification_status === 'active' && claim.proof === 'http') {
        await setLines(trx, claim.domain_id, outcome.lines)
        await addDomainCheck(trx, claim.domain_id, ctx.now() + ACTIVE_CHECK_MS)
        return []
      }
      return fail(ctx, trx, claim, outcome.lines, statusAfterFailure(claim, ctx.now()))
  }
}

/** A domain whose owner never proved it by DNS goes to the claim that does. */
async function activate(
  ctx: Context,
  trx: Trx,
  claim: Claim,
  { proof, replaced }: Extract<Outcome, { kind: 'proven' }>,
): Promise<string[]> {
  const { domain, domain_id, namespace_id } = claim
  if (replaced !== null) {
    const lines = [`Another namespace has proven by DNS that ${domain} is its own.`]
    await trx
      .updateTable('domains')
      .set({ verification_status: 'failed', verification_errors: JSON.stringify(lines) })
      .where('domain_id', '=', replaced.domain_id)
      .execute()
  }
  const verify_ts = new Date(ctx.now())
  await trx
    .updateTable('domains')
    .set({ verification_status: 'active', verification_errors: '[]', failure_count: 0, verify_ts, proof })
    .where('domain_id', '=', domain_id)
    .execute()
  await trx.deleteFrom('released_domains').where('domain', '=', domain).execute()
  await addDomainCheck(trx, domain_id, ctx.now() + ACTIVE_CHECK_MS)
  if (claim.verification_status === 'active') return []
  return replaced === null ? [namespace_id] : [namespace_id, replaced.namespace_id]
}

async function fail(
  ctx: Context,
  trx: Trx,
  claim: Claim,
  lines: string[],
  verification_status: Claim['verification_status'],
): Promise<string[]> {
  const { domain_id, namespace_id } = claim
  const failure_count = claim.failure_count + 1
  await trx
    .updateTable('domains')
    .set({ verification_status, failure_count, verification_errors: JSON.stringify(lines) })
    .where('domain_id', '=', domain_id)
    .execute()
  const pause_ms = CHECK_BACK_OFF_MS[Math.min(failure_count, CHECK_BACK_OFF_MS.length) - 1]!
  if (failure_count < FAILURES_MAX) await addDomainCheck(trx, domain_id, ctx.now() + pause_ms)
  return verification_status === claim.verification_status ? [] : [namespace_id]
}

function statusAfterFailure({ verification_status, verify_ts, failure_count }: Claim, now_ms: number) {
  if (verification_status === 'active') {
    return now_ms - (verify_ts?.getTime() ?? 0) <= ACTIVE_WITHOUT_PROOF_MS_MAX ? 'active' : 'failed'
  }
  return failure_count + 1 >= PENDING_FAILURES_MAX ? 'failed' : verification_status
}

async function setLines(trx: Trx, domain_id: string, lines: string[]): Promise<void> {
  await trx
    .updateTable('domains')
    .set({ verification_errors: JSON.stringify(lines) })
    .where('domain_id', '=', domain_id)
    .execute()
}
