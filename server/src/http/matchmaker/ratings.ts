import {
  ApiError,
  exportRatings,
  getIdentityRatings,
  getOwnRatings,
  getPlayerRatings,
  listRatings,
  reportLobbyResult,
  resetRatings,
  validationError,
} from '@musterhost/contract'
import { requireGame } from '../../cloud/access.ts'
import type { Context } from '../../context.ts'
import {
  listByIdentity,
  listByOrdinal,
  ratingsOfIdentity,
  ratingsOfPlayers,
  requireIdentity,
} from '../../ratings/reads.ts'
import * as ratings from '../../ratings/reset.ts'
import { createResults } from '../../ratings/results.ts'
import type { Caller } from '../../tokens/caller.ts'
import { type Implementation, implement } from '../implement.ts'

/** Operations that pages of games call, and those of lobby servers. */
export function playerRatings(): Implementation[] {
  const reportResult = createResults()
  return [
    implement(reportLobbyResult, {
      lobby: ({ ctx, caller, body }) => reportResult(ctx, caller, body),
      // No lobby runs: nothing is rated.
      development: () => ({ ratings: [], unrated_players: [] }),
    }),
    implement(getOwnRatings, {
      identity: ({ ctx, caller }) => ratingsOfIdentity(ctx, caller.namespace_id, caller.identity_id),
    }),
    implement(getPlayerRatings, { lobby: ({ ctx, caller, query }) => ratingsOfPlayers(ctx, caller, query) }),
    implement(listRatings, async ({ ctx, caller, query }) =>
      listByOrdinal(ctx, await namespaceOf(ctx, caller, query.namespace_id), query),
    ),
  ]
}

export const ratingsOfGames: Implementation[] = [
  implement(getIdentityRatings, async ({ ctx, caller, params: { identity_id }, query: { namespace_id } }) => {
    await namespaceOf(ctx, caller, namespace_id)
    await requireIdentity(ctx, namespace_id, identity_id)
    return ratingsOfIdentity(ctx, namespace_id, identity_id)
  }),
  implement(exportRatings, async ({ ctx, caller, query }) => {
    await namespaceOf(ctx, caller, query.namespace_id)
    return listByIdentity(ctx, query)
  }),
  implement(resetRatings, async ({ ctx, caller, body }) => {
    await namespaceOf(ctx, caller, body.namespace_id)
    return ratings.resetRatings(ctx, body)
  }),
]

/** The namespace of the token, or the one that is named. Throws VALIDATION_ERROR or NAMESPACE_NOT_FOUND. */
async function namespaceOf(ctx: Context, caller: Caller, named_id: string | undefined): Promise<string> {
  if ('namespace_id' in caller) {
    if (named_id === undefined || named_id === caller.namespace_id) return caller.namespace_id
    throw new ApiError('NAMESPACE_NOT_FOUND')
  }
  if (named_id === undefined) {
    const message = 'namespace_id is missing: this token does not stand for a namespace.'
    throw validationError([{ path: ['namespace_id'], reason: 'required', message }])
  }
  const { game_id } = await ctx.db
    .selectFrom('namespaces')
    .select('game_id')
    .where('namespace_id', '=', named_id)
    .executeTakeFirstOrThrow(() => new ApiError('NAMESPACE_NOT_FOUND'))
  await requireGame(ctx, caller, game_id, 'NAMESPACE_NOT_FOUND')
  return named_id
}
