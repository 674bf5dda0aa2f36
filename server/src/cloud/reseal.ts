// After a rotation of the seals: the secrets of versions that an older key closed are closed with the current one, a few
// at a time. It may be broken off anywhere: what is left is found again by its key.
import type { Context } from '../context.ts'
import { resealConfig } from '../tokens/version-secrets.ts'

/** Versions of one sweep; the rest is for the next. */
const RESEALED_MAX = 500

/** Answers how many. One that cannot be opened is logged and stays as it is. */
export async function resealVersions(ctx: Context): Promise<number> {
  const now = ctx.now()
  const rows = await ctx.db
    .selectFrom('versions')
    .where('secrets', 'is not', null)
    .where('secrets', 'not like', `${ctx.seals.prefix(now)}%`)
    .select(['version_id', 'secrets'])
    .limit(RESEALED_MAX)
    .execute()
  let count = 0
  for (const { version_id, secrets } of rows) {
    if (secrets === null) continue
    try {
      const fresh = resealConfig(ctx.seals, { version_id, secrets }, now)
      await ctx.db
        .updateTable('versions')
        .set({ secrets: fresh })
        .where('version_id', '=', version_id)
        .where('secrets', '=', secrets)
        .execute()
      count++
    } catch (error) {
      ctx.log.error({ err: error, version_id }, 'the secrets of a version cannot be opened')
    }
  }
  return count
}
