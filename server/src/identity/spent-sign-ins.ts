// States of sign-ins and challenges of passkeys that were used. Each is good once: its hash is stored until it would have
// expired.
import { hash } from 'node:crypto'
import type { Context } from '../context.ts'

/** Expired states that one use removes: more than it adds. */
const REMOVED_MAX = 100

/** Returns false when `state` was spent before. */
export async function spendState(
  ctx: Context,
  { state, expire_ms }: { state: string; expire_ms: number },
): Promise<boolean> {
  const state_hash = hash('sha256', state, 'buffer')
  const { numInsertedOrUpdatedRows } = await ctx.db
    .insertInto('spent_sign_ins')
    .values({ state_hash, expire_ts: new Date(expire_ms) })
    .onConflict((conflict) => conflict.column('state_hash').doNothing())
    .executeTakeFirst()
  if (numInsertedOrUpdatedRows === 0n) return false
  const expired = ctx.db
    .selectFrom('spent_sign_ins')
    .select('state_hash')
    .where('expire_ts', '<', new Date(ctx.now()))
    .orderBy('expire_ts')
    .limit(REMOVED_MAX)
    // Two sign-ins at once would wait for each other's rows.
    .forUpdate()
    .skipLocked()
  await ctx.db.deleteFrom('spent_sign_ins').where('state_hash', 'in', expired).execute()
  return true
}
