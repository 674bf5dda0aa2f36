// The result of a match: it changes the ratings of its players once. The row of the result is written in the transaction that
// changes the ratings, so a repeated call finds it and rates nothing.
//
// Locks are taken in one order: the namespace and the game mode, the lobby, the identities and then their ratings by id. So two
// results that share players both count, one after the other, and no two calls wait for each other.
import { createHash } from 'node:crypto'
import {
  ApiError,
  type BodyOf,
  RATED_PLAYERS_MAX,
  RATING_RESULTS_MAX,
  type ResponseOf,
  type reportLobbyResult,
  validationError,
} from '@musterhost/contract'
import { sql, type Transaction } from 'kysely'
import type { Context } from '../context.ts'
import { createKeyQueue, type KeyQueue } from '../database/key-queue.ts'
import { NEW_RATING, ordinalOf } from '../database/ratings.ts'
import type { Schema } from '../database/schema.ts'
import type { CallerOf } from '../tokens/caller.ts'
import { type RatedLobby, requireRatedLobby } from './lobby.ts'
import { type MatchTeams, matchOf, type RatedPlayer } from './match.ts'
import { openModel, type RateTeams } from './model.ts'
import { type NamedPlayer, playerNamed, requireEachOnce, seatedPlayers } from './players.ts'

type Body = BodyOf<typeof reportLobbyResult>
type Answer = ResponseOf<typeof reportLobbyResult>
type Trx = Transaction<Schema>

/** `match_id`: empty where the lobby is one match. */
type Report = {
  lobby_id: string
  match_id: string
  teams: NamedPlayer[][]
  ranks: readonly number[]
  body_hash: Buffer
}
type StoredRating = { identity_id: string; mu: number; sigma: number; matches: number }

export type ReportResult = (ctx: Context, caller: CallerOf<'lobby'>, body: Body) => Promise<Answer>

/** The results of a namespace wait for each other in this process, so that they take one connection to the database. */
export function createResults(inQueue: KeyQueue = createKeyQueue()): ReportResult {
  return async (ctx, caller, body) => {
    const lobby = await requireRatedLobby(ctx, caller)
    const report = readReport(ctx, caller, body)
    // A repeated call needs no players, whose rows may have been removed.
    const former = await formerAnswer(ctx.db, report)
    if (former !== null) return former
    const players = await seatedPlayers(ctx, caller, report.teams.flat())
    const rateTeams = await openModel()
    const match = matchOf(report.teams, report.ranks, players)
    return inQueue(lobby.namespace_id, () =>
      ctx.db.transaction().execute((trx) => rate(ctx, trx, { lobby, report, match, rateTeams })),
    )
  }
}

/** Throws VALIDATION_ERROR or PLAYER_TOKEN_INVALID. */
function readReport(ctx: Context, caller: CallerOf<'lobby'>, { teams, ranks, match_id = '' }: Body): Report {
  if (ranks.length !== teams.length) {
    const message = `There are ${teams.length} teams and ${ranks.length} ranks. Send a rank for each team, in the same order.`
    throw validationError([{ path: ['ranks'], reason: 'invalid', message }])
  }
  const count = teams.reduce((sum, team) => sum + team.length, 0)
  if (count > RATED_PLAYERS_MAX) {
    const message = `The teams have ${count} players; a match has at most ${RATED_PLAYERS_MAX}.`
    throw validationError([{ path: ['teams'], reason: 'too_long', message }])
  }
  const named = teams.map((team, i) =>
    team.map((text, j) => playerNamed(ctx, caller, text, ['teams', String(i), String(j)])),
  )
  requireEachOnce(named.flat())
  const content = JSON.stringify([named.map((team) => team.map(({ player_id }) => player_id)), ranks])
  const body_hash = createHash('sha256').update(content).digest()
  return { lobby_id: caller.lobby_id, match_id, teams: named, ranks, body_hash }
}

/** Null: the match has no result yet. Throws RATING_RESULT_DIFFERS. */
async function formerAnswer(db: Context['db'], { lobby_id, match_id, body_hash }: Report): Promise<Answer | null> {
  const row = await db
    .selectFrom('rating_results')
    .select(['body_hash', 'response'])
    .where('lobby_id', '=', lobby_id)
    .where('match_id', '=', match_id)
    .executeTakeFirst()
  if (row === undefined) return null
  if (row.body_hash.equals(body_hash)) return JSON.parse(row.response) as Answer
  const named =
    match_id === '' ? 'The lobby has a result, and no match_id was sent' : `The match ${match_id} has a result`
  throw new ApiError('RATING_RESULT_DIFFERS', { match_id }, { message: `${named}: another one is not accepted.` })
}

type Work = { lobby: RatedLobby; report: Report; match: MatchTeams; rateTeams: RateTeams }

async function rate(ctx: Context, trx: Trx, { lobby, report, match, rateTeams }: Work): Promise<Answer> {
  const { namespace_id, game_mode } = lobby
  await lockMatch(trx, lobby, report.lobby_id)
  const former = await formerAnswer(trx, report)
  if (former !== null) return former
  await requireRoom(trx, report.lobby_id)
  const now = new Date(ctx.now())
  const living = await lockIdentities(trx, namespace_id, match.identity_ids)
  const before = await lockRatings(trx, { namespace_id, game_mode, identity_ids: living, now })
  const { answer, after } = rated(match, before, rateTeams)
  await writeRatings(trx, { namespace_id, game_mode, after, now })
  const { lobby_id, match_id, body_hash } = report
  const response = JSON.stringify(answer)
  await trx
    .insertInto('rating_results')
    .values({ lobby_id, match_id, namespace_id, body_hash, response, create_ts: now })
    .execute()
  return answer
}

/** Throws NAMESPACE_NOT_FOUND. A deletion of the namespace, and a reset of the game mode, wait for the end of the transaction. */
async function lockMatch(trx: Trx, { namespace_id, game_mode }: RatedLobby, lobby_id: string): Promise<void> {
  await trx
    .selectFrom('namespaces')
    .select('namespace_id')
    .where('namespace_id', '=', namespace_id)
    .forKeyShare()
    .executeTakeFirstOrThrow(() => new ApiError('NAMESPACE_NOT_FOUND'))
  await sql`
    select pg_advisory_xact_lock_shared(hashtextextended(${ratingsLock(namespace_id, game_mode)}, 0))`.execute(trx)
  await sql`select pg_advisory_xact_lock(hashtextextended(${`rating results ${lobby_id}`}, 0))`.execute(trx)
}

/** The name of the lock that a result shares with others, and that a reset of the game mode has alone. */
export function ratingsLock(namespace_id: string, game_mode: string): string {
  return `ratings ${namespace_id} ${game_mode}`
}

/** Throws QUOTA_REACHED. */
async function requireRoom(trx: Trx, lobby_id: string): Promise<void> {
  const { count } = await trx
    .selectFrom('rating_results')
    .where('lobby_id', '=', lobby_id)
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  if (count < RATING_RESULTS_MAX) return
  const message = `The lobby has ${count} results that are remembered. Start another lobby, or wait until they are removed.`
  throw new ApiError('QUOTA_REACHED', { quota: 'rating_results', limit: RATING_RESULTS_MAX, used: count }, { message })
}

/** Identities that exist, sorted by id. Throws RATING_IDENTITY_REQUIRED when there is none. */
async function lockIdentities(trx: Trx, namespace_id: string, identity_ids: readonly string[]): Promise<string[]> {
  const rows =
    identity_ids.length === 0
      ? []
      : await trx
          .selectFrom('identities')
          .select('identity_id')
          .where('namespace_id', '=', namespace_id)
          .where('identity_id', 'in', identity_ids)
          .orderBy('identity_id')
          .forKeyShare()
          .execute()
  if (rows.length === 0) throw new ApiError('RATING_IDENTITY_REQUIRED')
  return rows.map(({ identity_id }) => identity_id)
}

type RatingScope = { namespace_id: string; game_mode: string; now: Date }

/** Makes missing ratings and locks all of them, in one pass by id. `identity_ids` are sorted. */
async function lockRatings(
  trx: Trx,
  { identity_ids, now, ...place }: RatingScope & { identity_ids: readonly string[] },
): Promise<Map<string, StoredRating>> {
  const { mu, sigma } = NEW_RATING
  const rows = await trx
    .insertInto('ratings')
    .values(identity_ids.map((identity_id) => ({ ...place, identity_id, mu, sigma, matches: 0, update_ts: now })))
    .onConflict((conflict) =>
      // The same value: the statement locks the row and returns it.
      conflict
        .columns(['namespace_id', 'game_mode', 'identity_id'])
        .doUpdateSet({ matches: (row) => row.ref('ratings.matches') }),
    )
    .returning(['identity_id', 'mu', 'sigma', 'matches'])
    .execute()
  return new Map(rows.map((row) => [row.identity_id, row]))
}

/** An identity that is not in `before` is gone: its player counts as a new one. */
function rated(
  { teams, ranks }: MatchTeams,
  before: ReadonlyMap<string, StoredRating>,
  rateTeams: RateTeams,
): { answer: Answer; after: StoredRating[] } {
  const ratingBefore = ({ identity_id }: RatedPlayer) =>
    identity_id === null ? NEW_RATING : (before.get(identity_id) ?? NEW_RATING)
  const results = rateTeams(
    teams.map((team) => team.map(ratingBefore)),
    ranks,
  )
  const answer: Answer = { ratings: [], unrated_players: [] }
  const after: StoredRating[] = []
  for (const [i, team] of teams.entries()) {
    for (const [j, player] of team.entries()) {
      const { player_id, identity_id, unrated_reason } = player
      const former = identity_id === null ? undefined : before.get(identity_id)
      if (identity_id === null || former === undefined) {
        answer.unrated_players.push({ player_id, reason: unrated_reason ?? 'no_identity' })
        continue
      }
      const { mu, sigma } = results[i]![j]!
      if (!Number.isFinite(mu) || !Number.isFinite(sigma)) throw new Error('A rating of a match is not a number.')
      const matches = former.matches + 1
      const ordinal = ordinalOf({ mu, sigma })
      after.push({ identity_id, mu, sigma, matches })
      answer.ratings.push({ player_id, mu, sigma, ordinal, matches, ordinal_change: ordinal - ordinalOf(former) })
    }
  }
  return { answer, after }
}

/** The rows are locked. */
async function writeRatings(
  trx: Trx,
  { namespace_id, game_mode, after, now }: RatingScope & { after: readonly StoredRating[] },
): Promise<void> {
  await sql`
    update ratings set mu = new.mu, sigma = new.sigma, matches = new.matches, update_ts = ${now}
    from jsonb_to_recordset(${JSON.stringify(after)}::jsonb)
      as new (identity_id uuid, mu double precision, sigma double precision, matches integer)
    where ratings.namespace_id = ${namespace_id} and ratings.game_mode = ${game_mode}
      and ratings.identity_id = new.identity_id`.execute(trx)
}
