// Ratings as rooms read them: those of a few identities in one game mode, in one query.
import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'

/** `ordinal`: one number to sort by. */
export type RatingValue = { mu: number; sigma: number; ordinal: number }

const MU_NEW = 25
const SIGMA_NEW = 25 / 3
/** Deviations that an ordinal is below the estimate. The index `ratings_ordinal` has the same number. */
const ORDINAL_DEVIATIONS = 3

export function ordinalOf({ mu, sigma }: { mu: number; sigma: number }): number {
  return mu - ORDINAL_DEVIATIONS * sigma
}

/** The rating of an identity without a rated match. */
export const NEW_RATING: Readonly<RatingValue & { matches: number }> = {
  mu: MU_NEW,
  sigma: SIGMA_NEW,
  ordinal: 0,
  matches: 0,
}

/** An identity without a rated match is not in the result: it has NEW_RATING. */
export async function ratingsOf(
  db: Kysely<Schema>,
  namespace_id: string,
  game_mode: string,
  identity_ids: readonly string[],
): Promise<Map<string, RatingValue & { matches: number }>> {
  if (identity_ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('ratings')
    .select(['identity_id', 'mu', 'sigma', 'matches'])
    .where('namespace_id', '=', namespace_id)
    .where('game_mode', '=', game_mode)
    .where('identity_id', 'in', identity_ids)
    .execute()
  return new Map(rows.map(({ identity_id, ...row }) => [identity_id, { ...row, ordinal: ordinalOf(row) }]))
}
