// Challenges that a certificate authority fetches over HTTP (RFC 8555, 8.3). The api writes them into the database while an
// order is under way, and every edge serves them.
import type { Context } from '../../context.ts'
import type { Lookups } from '../routes/lookups.ts'

/** Returns the token in the path of a challenge; null for every other path. */
export function challengeToken(path: string): string | null {
  return /^\/\.well-known\/acme-challenge\/([A-Za-z0-9_-]{1,128})$/.exec(path)?.[1] ?? null
}

/** Returns the challenge's response for this host; null: there is none. Throws the refusals of lookups.ts. */
export function findChallenge(
  ctx: Context,
  lookups: Lookups,
  challenge: { host: string; token: string; client_key: string },
): Promise<string | null> {
  const { host, token, client_key } = challenge
  return lookups.run(client_key, async () => {
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
