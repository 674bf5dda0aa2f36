// The proofs that an authority asks for over HTTP (RFC 8555, 8.3): the api writes them into the database while an order is
// under way, and whichever edge is asked answers.
import type { Context } from '../../context.ts'
import type { Lookups } from '../lookups.ts'

/** The token of a path that asks for a proof; null: it does not. Nothing else of a path is looked at. */
export function challengeToken(path: string): string | null {
  return /^\/\.well-known\/acme-challenge\/([A-Za-z0-9_-]{1,128})$/.exec(path)?.[1] ?? null
}

/** The proof for this host; null: there is none. Throws as lookups.ts does. */
export function findChallenge(
  ctx: Context,
  lookups: Lookups,
  asked: { host: string; token: string; source: string },
): Promise<string | null> {
  const { host, token, source } = asked
  return lookups.run(source, async () => {
    const row = await ctx.db
      .selectFrom('acme_challenges')
      .select('key_authorization')
      .where('token', '=', token)
      .where('host', '=', host)
      .where('expire_ts', '>', new Date(ctx.now()))
      .executeTakeFirst()
    return row?.key_authorization ?? null
  })
}
