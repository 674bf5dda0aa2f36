// The responses of captchas that clients have sent to this platform. Each is valid once, for the request that sent it first,
// in any namespace. A response is claimed before its provider is asked: of a hundred at once only one is sent on. A claim is
// settled once the provider has decided; until then the same request may ask again. Only the hash is kept, and longer than
// any provider would accept the response.
import { createHash, randomBytes } from 'node:crypto'
import type { CaptchaProvider } from '@muster/contract'
import { sql } from 'kysely'
import type { Context } from '../context.ts'

const CLAIM_MS = 24 * 3_600_000
const SWEEP_EVERY_MS = 10 * 60_000
/** Rows of one sweep and table; the rest is for the next. */
const SWEPT_MAX = 10_000

export type Claim = { response_hash: Buffer; claimed_by: Buffer }

/** Null: it has been used, or somebody else is using it. `request` names the request when it may be repeated. */
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

/** False: the same request, repeated meanwhile, was answered before. */
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

/** Removes claims and solved captchas that are over, now and then, until it is stopped. */
export function startCaptchaSweep(ctx: Context): { stop: () => Promise<void> } {
  let sweeping: Promise<void> | null = null
  const timer = setInterval(() => {
    sweeping ??= sweepCaptchas(ctx)
      .catch((error: unknown) => ctx.log.warn({ err: error }, 'old captchas could not be removed; trying again'))
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
