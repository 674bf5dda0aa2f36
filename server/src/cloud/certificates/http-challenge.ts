// The proof of a host over HTTP (RFC 8555, 8.3): a row in the database, which every edge serves under that host.
import type { Context } from '../../context.ts'
import type { Challenge } from './challenge.ts'

/** How long a proof over HTTP is served. */
const CHALLENGE_MS_MAX = 60 * 60_000

export function httpChallenge(ctx: Context, host: string): Challenge {
  return {
    type: 'http-01',
    async publish(token, key_authorization) {
      const now = ctx.now()
      await ctx.db.deleteFrom('acme_challenges').where('expire_ts', '<', new Date(now)).execute()
      const expire_ts = new Date(now + CHALLENGE_MS_MAX)
      await ctx.db
        .insertInto('acme_challenges')
        .values({ token, host, key_authorization, expire_ts })
        .onConflict((conflict) => conflict.column('token').doUpdateSet({ host, key_authorization, expire_ts }))
        .execute()
    },
    async remove(token) {
      await ctx.db.deleteFrom('acme_challenges').where('token', '=', token).execute()
    },
  }
}
