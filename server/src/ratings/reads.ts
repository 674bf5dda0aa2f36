// Reads of ratings: by players, lobby servers and developers. Lists are pages by an index, however many ratings there are.
import {
  ApiError,
  type exportRatings,
  type getOwnRatings,
  type getPlayerRatings,
  type listRatings,
  type QueryOf,
  RATING_PAGE_MAX,
  type ResponseOf,
  validationError,
} from '@musterhost/contract'
import { sql } from 'kysely'
import type { Context } from '../context.ts'
import { NEW_RATING, ordinalOf, ratingsOf } from '../database/ratings.ts'
import { ID_FORM } from '../ids.ts'
import type { CallerOf } from '../tokens/caller.ts'
import { requireRatedLobby } from './lobby.ts'
import { playerNamed, seatedPlayers } from './players.ts'

const LIST_DEFAULT = 100

type Own = ResponseOf<typeof getOwnRatings>
type Listed = ResponseOf<typeof listRatings>

export async function ratingsOfIdentity(ctx: Context, namespace_id: string, identity_id: string): Promise<Own> {
  const rows = await ctx.db
    .selectFrom('ratings')
    .select(['game_mode', 'mu', 'sigma', 'matches', 'update_ts'])
    .where('identity_id', '=', identity_id)
    .where('namespace_id', '=', namespace_id)
    .orderBy('game_mode')
    .limit(RATING_PAGE_MAX)
    .execute()
  return { ratings: rows.map(({ update_ts, ...row }) => ({ ...row, ordinal: ordinalOf(row), ...timeOf(update_ts) })) }
}

/** Throws IDENTITY_NOT_FOUND for an identity that is not of this namespace. */
export async function requireIdentity({ db }: Context, namespace_id: string, identity_id: string): Promise<void> {
  await db
    .selectFrom('identities')
    .select('identity_id')
    .where('identity_id', '=', identity_id)
    .where('namespace_id', '=', namespace_id)
    .executeTakeFirstOrThrow(() => new ApiError('IDENTITY_NOT_FOUND'))
}

/** Throws RATING_DISABLED, RATING_PLAYER_NOT_FOUND or PLAYER_TOKEN_INVALID. */
export async function ratingsOfPlayers(
  ctx: Context,
  caller: CallerOf<'lobby'>,
  { players }: QueryOf<typeof getPlayerRatings>,
): Promise<ResponseOf<typeof getPlayerRatings>> {
  const { namespace_id, game_mode } = await requireRatedLobby(ctx, caller)
  const named = players.map((text, i) => playerNamed(ctx, caller, text, ['query', 'players', String(i)]))
  const seated = await seatedPlayers(ctx, caller, named)
  const identity_ids = seated.flatMap(({ identity_id }) => identity_id ?? [])
  const ratings = await ratingsOf(ctx.db, namespace_id, game_mode, identity_ids)
  return {
    players: seated.map(({ player_id, identity_id }) => ({
      player_id,
      ...(ratings.get(identity_id ?? '') ?? NEW_RATING),
    })),
  }
}

/** The highest ordinal first. */
export async function listByOrdinal(
  ctx: Context,
  namespace_id: string,
  { game_mode, limit = LIST_DEFAULT, anchor }: QueryOf<typeof listRatings>,
): Promise<Listed> {
  const after = anchor === undefined ? null : readOrdinalAnchor(anchor)
  const ordinal = sql<number>`(ratings.mu - 3 * ratings.sigma)`
  const rows = await selectRatings(ctx, namespace_id)
    .where('game_mode', '=', game_mode)
    .$if(after !== null, (query) =>
      query.where(
        sql<boolean>`(${ordinal}, ratings.identity_id) < (${after?.ordinal}::double precision, ${after?.identity_id}::uuid)`,
      ),
    )
    .orderBy(ordinal, 'desc')
    .orderBy('ratings.identity_id', 'desc')
    .limit(limit + 1)
    .execute()
  return pageOf(rows, limit, (last) => `${last.ordinal}_${last.identity_id}`)
}

/** By game mode and identity: no change of a rating moves it to another page. */
export async function listByIdentity(
  ctx: Context,
  { namespace_id, game_mode, anchor }: QueryOf<typeof exportRatings>,
): Promise<Listed> {
  const after = anchor === undefined ? null : readIdentityAnchor(anchor)
  const rows = await selectRatings(ctx, namespace_id)
    .$if(game_mode !== undefined, (query) => query.where('game_mode', '=', game_mode!))
    .$if(after !== null, (query) =>
      query.where(sql<boolean>`(game_mode, ratings.identity_id) > (${after?.game_mode}, ${after?.identity_id}::uuid)`),
    )
    .orderBy('game_mode')
    .orderBy('ratings.identity_id')
    .limit(RATING_PAGE_MAX + 1)
    .execute()
  return pageOf(rows, RATING_PAGE_MAX, (last) => `${last.identity_id}_${last.game_mode}`)
}

function selectRatings({ db }: Context, namespace_id: string) {
  return db
    .selectFrom('ratings')
    .innerJoin('identities', 'identities.identity_id', 'ratings.identity_id')
    .select([
      'game_mode',
      'ratings.identity_id',
      'display_name',
      'account_number',
      'mu',
      'sigma',
      'matches',
      'update_ts',
    ])
    .where('ratings.namespace_id', '=', namespace_id)
}

type Row = Awaited<ReturnType<ReturnType<typeof selectRatings>['execute']>>[number]
type Entry = Listed['ratings'][number]

/** The query has read one row more than the page has. */
function pageOf(rows: readonly Row[], limit: number, anchorOf: (last: Entry) => string): Listed {
  const ratings = rows
    .slice(0, limit)
    .map(({ update_ts, ...row }) => ({ ...row, ordinal: ordinalOf(row), ...timeOf(update_ts) }))
  return rows.length > limit ? { ratings, anchor: anchorOf(ratings.at(-1)!) } : { ratings }
}

function timeOf(update_ts: Date): { update_ts: string } {
  return { update_ts: update_ts.toISOString() }
}

const ORDINAL_ANCHOR = new RegExp(`^(-?\\d{1,20}(?:\\.\\d{1,20})?(?:e-?\\d{1,3})?)_(${ID_FORM})$`)
const IDENTITY_ANCHOR = new RegExp(`^(${ID_FORM})_([^\\0]{1,64})$`)

function readOrdinalAnchor(text: string): { ordinal: number; identity_id: string } {
  const [, digits = '', identity_id = ''] = ORDINAL_ANCHOR.exec(text) ?? []
  if (identity_id === '') throw wrongAnchor()
  return { ordinal: Number(digits), identity_id }
}

function readIdentityAnchor(text: string): { game_mode: string; identity_id: string } {
  const [, identity_id = '', game_mode = ''] = IDENTITY_ANCHOR.exec(text) ?? []
  if (game_mode === '') throw wrongAnchor()
  return { game_mode, identity_id }
}

function wrongAnchor(): ApiError {
  const message = 'An anchor is what the previous page had as its anchor.'
  return validationError([{ path: ['query', 'anchor'], reason: 'invalid', message }])
}
