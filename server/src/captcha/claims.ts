// The captcha responses that were sent to this platform. Each is valid once, for the first request with it, in any
// namespace. A response is claimed before its provider is asked, so the provider is asked once for a hundred simultaneous
// requests. A claim is answered once the provider has returned its result; until then the same request may repeat it. Only
// the hash is kept, for longer than any provider accepts a response.
import { createHash, randomBytes } from 'node:crypto'
import type { CaptchaProvider } from '@musterhost/contract'
import { sql } from 'kysely'
import type { Context } from '../context.ts'

const CLAIM_MS = 24 * 3_600_000
const SWEEP_EVERY_MS = 10 * 60_000
/** Rows that one sweep removes from each table. Bounds its time. */
const SWEPT_MAX = 10_000

type Claim = { response_hash: Buffer; claimed_by: Buffer }

/** Null: the response was used, or another request is using it. `request`: identifies a request that may be repeated. */
export async function claimResponse(
  ctx: Context,
  provider: CaptchaProvider,
  response: string,
  request: string | null,
): Promise<Claim | null> {
  const claimed_by = request === null ? randomBytes(32) : sha256(request)
  const claim = { response_hash: sha256(`${provider}\n${response}`), claimed_by }
  const { rows } = await sql`
    insert into captcha_claims (response_hash, claimed_by, expire_ts)
    values (${claim.response_hash}, ${claimed_by}, ${new Date(ctx.now() + CLAIM_MS)})
    on conflict (response_hash) do update set expire_ts = excluded.expire_ts
      where captcha_claims.claimed_by = excluded.claimed_by and not captcha_claims.is_answered
    returning 1`.execute(ctx.db)
  return rows.length === 1 ? claim : null
}

/** False: a repetition of the same request was answered before. */
export async function answerClaim(ctx: Context, claim: Claim): Promise<boolean> {
  const { rows } = await sql`
    update captcha_claims set is_answered = true
    where response_hash = ${claim.response_hash} and claimed_by = ${claim.claimed_by} and not is_answered
    returning 1`.execute(ctx.db)
  return rows.length === 1
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Removes expired claims and solved captchas periodically where `isFirst` says so, until it is stopped. */
export function startCaptchaSweep(ctx: Context, isFirst: () => boolean): { stop: () => Promise<void> } {
  let sweeping: Promise<void> | null = null
  const timer = setInterval(() => {
    if (!isFirst()) return
    sweeping ??= sweepCaptchas(ctx)
      .catch((error: unknown) => ctx.log.warn({ err: error }, 'expired captchas could not be removed; retrying'))
      .finally(() => {
        sweeping = null
      })
  }, SWEEP_EVERY_MS)
  return {
    async stop() {
      clearInterval(timer)
      await sweeping
    },
  }
}

export async function sweepCaptchas(ctx: Context): Promise<void> {
  const now = new Date(ctx.now())
  await sql`
    delete from captcha_claims where response_hash in (
      select response_hash from captcha_claims where expire_ts <= ${now} limit ${SWEPT_MAX}
    )`.execute(ctx.db)
  await sql`
    delete from captcha_clients where (namespace_id, client) in (
      select namespace_id, client from captcha_clients where expire_ts <= ${now} limit ${SWEPT_MAX}
    )`.execute(ctx.db)
}
