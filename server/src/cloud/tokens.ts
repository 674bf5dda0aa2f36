// Tokens that the management side gives out. They are issued, not kept: what they may do is in what they say.
import type { Caller } from '../caller.ts'
import type { Context } from '../context.ts'
import { requireGame } from './access.ts'
import { requireNamespace } from './namespaces.ts'

const CLOUD_TOKEN_LIFETIME_MS = 365 * 24 * 60 * 60_000
/** It is built into games that are out there: 15 years, as their developers are used to. */
const PUBLIC_TOKEN_LIFETIME_MS = 15 * 365 * 24 * 60 * 60_000

/** For CI: acts for this game only. Throws GAME_NOT_FOUND. */
export async function createCloudToken(ctx: Context, caller: Caller, game_id: string): Promise<{ token: string }> {
  await requireGame(ctx, caller, game_id)
  return {
    token: ctx.keys.issue({ kind: 'cloud', game_id }, { now_ms: ctx.now(), lifetime_ms: CLOUD_TOKEN_LIFETIME_MS }),
  }
}

/** For game clients. Throws GAME_NOT_FOUND or NAMESPACE_NOT_FOUND. */
export async function createPublicToken(
  ctx: Context,
  caller: Caller,
  game_id: string,
  namespace_id: string,
): Promise<{ token: string }> {
  await requireGame(ctx, caller, game_id)
  const { name_id } = await requireNamespace(ctx, game_id, namespace_id)
  const options = { now_ms: ctx.now(), lifetime_ms: PUBLIC_TOKEN_LIFETIME_MS, name: name_id }
  return { token: ctx.keys.issue({ kind: 'public', namespace_id }, options) }
}
