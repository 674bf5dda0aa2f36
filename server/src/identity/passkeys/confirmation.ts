// Whether a session may call an operation with `confirm` in the contract.
import { ApiError, CONFIRMATION_MINUTES } from '@musterhost/contract'
import type { Context } from '../../context.ts'

/** A confirmation is good for this time. */
export const CONFIRMATION_MS = CONFIRMATION_MINUTES * 60_000

/** Throws CONFIRMATION_REQUIRED when the person has a passkey and has not confirmed with one lately. */
export async function requireConfirmation(ctx: Context, session_id: string): Promise<void> {
  const row = await ctx.db
    .selectFrom('user_sessions')
    .innerJoin('passkeys', 'passkeys.user_id', 'user_sessions.user_id')
    .select('confirm_ts')
    .where('session_id', '=', session_id)
    .limit(1)
    .executeTakeFirst()
  if (row === undefined) return
  const confirm_ms = row.confirm_ts?.getTime() ?? Number.NEGATIVE_INFINITY
  if (ctx.now() - confirm_ms >= CONFIRMATION_MS) throw new ApiError('CONFIRMATION_REQUIRED')
}
