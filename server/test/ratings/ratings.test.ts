// Results of matches and the ratings that they change, over HTTP and on one platform. Lobbies and players of most tests are rows
// of the projection, which is all that the api reads of them.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type BodyOf,
  createCloudToken,
  deleteGameNamespace,
  exportRatings,
  getIdentityRatings,
  getOwnRatings,
  getPlayerRatings,
  listAuditEvents,
  listRatings,
  type ResponseOf,
  reportLobbyResult,
  resetRatings,
  setupIdentity,
} from '@musterhost/contract'
import type { Client } from '@musterhost/contract/client'
import fc from 'fast-check'
import { retentionSteps } from '../../src/cloud/sweep/retention.ts'
import { NEW_RATING, ratingsOf } from '../../src/database/ratings.ts'
import { newId } from '../../src/ids.ts'
import { openModel, type RateTeams } from '../../src/ratings/model.ts'
import { createResults } from '../../src/ratings/results.ts'
import { refused } from '../cloud/steps.ts'
import { LONG_MS } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'

type Result = ResponseOf<typeof reportLobbyResult>
type Lobby = { lobby_id: string; namespace_id: string; server: Client }

const MODES = {
  default: { idle_grace_ms: LONG_MS, ratings: {} },
  duel: { idle_grace_ms: LONG_MS, ratings: {} },
  casual: { idle_grace_ms: LONG_MS },
}
/** Results that are reported at once. */
const AT_ONCE = 40

test('ratings', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const { game_id, namespace_id } = game
  const backend = platform.as((await platform.client.call(createCloudToken, { params: { game_id } })).token)
  const place = { namespace_id, game_mode: 'default' }
  const exported = async () => (await backend.call(exportRatings, { query: { namespace_id } })).ratings

  await t.test('a result changes the ratings of its players, who and whose server then read them', async () => {
    const [ada, bob] = [await personOf(platform, game), await personOf(platform, game)]
    const seats = [await ada.game.find(), await bob.game.find(), await game.find()]
    const { lobby_id } = seats[0]!.lobby
    assert.ok(seats.every(({ lobby }) => lobby.lobby_id === lobby_id))
    const server = platform.serverOf(game, lobby_id)
    const [a, b, nameless] = seats.map((seat) => platform.playerIdOf(seat)) as [string, string, string]
    // A token names the player as well as the id.
    const body = { teams: [[seats[0]!.player.token, nameless], [b]], ranks: [1, 2] }
    const result = await server.call(reportLobbyResult, { body })
    assert.deepEqual(
      result.ratings.map(({ player_id, matches }) => [player_id, matches]),
      [
        [a, 1],
        [b, 1],
      ],
    )
    assert.deepEqual(result.unrated_players, [{ player_id: nameless, reason: 'no_identity' }])
    const [winner, loser] = result.ratings as [Result['ratings'][0], Result['ratings'][0]]
    assert.ok(winner.ordinal_change > 0 && loser.mu < NEW_RATING.mu && winner.ordinal > loser.ordinal)

    const { mu, sigma, ordinal } = winner
    const { ratings } = await ada.client.call(getOwnRatings, {})
    assert.deepEqual(
      ratings.map(({ update_ts: _, ...rating }) => rating),
      [{ game_mode: 'default', mu, sigma, ordinal, matches: 1 }],
    )
    const params = { identity_id: ada.identity_id }
    assert.deepEqual(await backend.call(getIdentityRatings, { params, query: { namespace_id } }), { ratings })
    const { players } = await server.call(getPlayerRatings, { query: { players: [nameless, a] } })
    assert.deepEqual(players, [
      { player_id: nameless, mu: NEW_RATING.mu, sigma: NEW_RATING.sigma, ordinal: 0, matches: 0 },
      { player_id: a, mu, sigma, ordinal, matches: 1 },
    ])
    const read = await ratingsOf(platform.ctx.db, namespace_id, 'default', [ada.identity_id, randomUUID()])
    assert.deepEqual([...read], [[ada.identity_id, { mu, sigma, ordinal, matches: 1 }]])
    await refused(
      'IDENTITY_NOT_FOUND',
      backend.call(getIdentityRatings, { params: { identity_id: randomUUID() }, query: { namespace_id } }),
    )
  })

  await t.test('a match has one result: the same call again returns it, and another one is refused', async () => {
    const lobby = await lobbyOf(platform, game)
    const [a, b] = (await seated(platform, lobby, 2)) as [string, string]
    const report = (body: Partial<BodyOf<typeof reportLobbyResult>>) =>
      lobby.server.call(reportLobbyResult, { body: { teams: [[a], [b]], ranks: [1, 2], ...body } })
    const first = await report({})
    await platform.ctx.db.deleteFrom('players').where('lobby_id', '=', lobby.lobby_id).execute()
    assert.deepEqual(await report({}), first)
    await refused('RATING_RESULT_DIFFERS', report({ ranks: [2, 1] }))
    await putPlayers(platform, lobby, [a, b])
    const second = await report({ match_id: 'round-2' })
    assert.deepEqual(
      second.ratings.map(({ matches }) => matches),
      [2, 2],
    )
    const [one, two] = await Promise.all([report({ match_id: 'r3' }), report({ match_id: 'r3' })])
    assert.deepEqual(one, two)
    assert.equal(one.ratings[0]!.matches, 3)
    await refused('RATING_RESULT_DIFFERS', report({ match_id: 'r3', ranks: [1, 1] }))
  })

  await t.test('a wrong result names the member and changes nothing', async () => {
    const lobby = await lobbyOf(platform, game)
    const [a, b] = (await seated(platform, lobby, 2)) as [string, string]
    const [c] = (await seated(platform, lobby, 1, { has_identity: false })) as [string]
    const stranger = newId(platform.ctx.now())
    await putPlayers(platform, await lobbyOf(platform, game), [stranger])
    const before = await exported()
    const report = (teams: string[][], ranks: number[] = [1, 2]) =>
      lobby.server.call(reportLobbyResult, { body: { teams, ranks } })
    const pathOf = async (
      code: 'VALIDATION_ERROR' | 'RATING_PLAYER_NOT_FOUND' | 'PLAYER_TOKEN_INVALID',
      call: Promise<unknown>,
    ) => {
      const { metadata } = await refused(code, call)
      return metadata.path ?? (metadata.errors as { path: string[] }[])[0]!.path
    }
    assert.deepEqual(await pathOf('VALIDATION_ERROR', report([[a], [b]], [1])), ['ranks'])
    assert.deepEqual(await pathOf('VALIDATION_ERROR', report([[a], [b, a]])), ['teams', '1', '1'])
    assert.deepEqual(await pathOf('VALIDATION_ERROR', report([[a], [...many(256)]])), ['teams'])
    assert.deepEqual(await pathOf('RATING_PLAYER_NOT_FOUND', report([[a], [stranger]])), ['teams', '1', '0'])
    const [watcher] = (await seated(platform, lobby, 1)) as [string]
    await platform.ctx.pool.query('update players set is_spectator = true where player_id = $1', [watcher])
    assert.deepEqual(await pathOf('RATING_PLAYER_NOT_FOUND', report([[a], [b, watcher]])), ['teams', '1', '1'])
    assert.deepEqual(await pathOf('PLAYER_TOKEN_INVALID', report([[a], ['nonsense']])), ['teams', '1', '0'])
    await refused('VALIDATION_ERROR', report([[a, b]], [1]))
    const other = await seated(platform, lobby, 1, { has_identity: false })
    await refused('RATING_IDENTITY_REQUIRED', report([[c], other]))
    const casual = await lobbyOf(platform, game, 'casual')
    const players = await seated(platform, casual, 2)
    await refused(
      'RATING_DISABLED',
      casual.server.call(reportLobbyResult, { body: { teams: players.map((id) => [id]), ranks: [1, 2] } }),
    )
    await platform.ctx.db
      .updateTable('lobbies')
      .set({ stop_ts: new Date() })
      .where('lobby_id', '=', lobby.lobby_id)
      .execute()
    await refused('TOKEN_REVOKED', report([[a], [b]]))
    assert.deepEqual(await exported(), before)
  })

  await t.test('a player whose seat is not projected yet is waited for, and an unknown one is not', async () => {
    const seat = await game.find({ game_modes: ['duel'] })
    const { lobby_id } = seat.lobby
    const server = platform.serverOf(game, lobby_id)
    const holder = await platform.ctx.pool.connect()
    await until('the lobby is projected', async () => {
      const { rowCount } = await holder.query('select from lobbies where lobby_id = $1', [lobby_id])
      return rowCount === 1
    })
    // The projection of every shard waits for these rows.
    await holder.query('begin')
    await holder.query('select from shards for update')
    const later = await game.find({ game_modes: ['duel'] })
    const read = server.call(getPlayerRatings, { query: { players: [seat.player.token, later.player.token] } })
    assert.equal(await Promise.race([read.catch(String), sleep(300, 'waits')]), 'waits')
    await holder.query('rollback')
    holder.release()
    assert.equal((await read).players.length, 2)
    const unknown = newId(platform.ctx.now())
    await refused('RATING_PLAYER_NOT_FOUND', server.call(getPlayerRatings, { query: { players: [unknown] } }))
  })

  await t.test('results at once count as one after the other, in the order in which each player had them', () =>
    countAll(platform, game),
  )

  await t.test('pages have every rating once: the best first, or by identity', async () => {
    const lobby = await lobbyOf(platform, game, 'duel')
    const players = await seated(platform, lobby, 7)
    await lobby.server.call(reportLobbyResult, {
      body: { teams: players.map((id) => [id]), ranks: [1, 2, 2, 3, 4, 4, 5] },
    })
    const all = (await exported()).filter(({ game_mode }) => game_mode === 'duel')
    const best = await pages(backend, { game_mode: 'duel', namespace_id, limit: 2 })
    assert.deepEqual(
      best.map(({ ordinal }) => ordinal),
      all.map(({ ordinal }) => ordinal).sort((a, b) => b - a),
    )
    assert.deepEqual(
      new Set(best.map(({ identity_id }) => identity_id)),
      new Set(all.map(({ identity_id }) => identity_id)),
    )
    const query = { game_mode: 'duel', namespace_id }
    await refused('VALIDATION_ERROR', backend.call(listRatings, { query: { ...query, anchor: 'x' } }))
    await refused('VALIDATION_ERROR', backend.call(exportRatings, { query: { ...query, anchor: 'x' } }))
    await refused('VALIDATION_ERROR', backend.call(listRatings, { query: { game_mode: 'duel' } }))
    assert.ok(all.every(({ display_name }) => display_name === 'Guest'))
    const key = (entry: (typeof all)[0]) => `${entry.game_mode} ${entry.identity_id}`
    const ids = (await exported()).map(key)
    assert.deepEqual(ids, [...ids].sort())
  })

  await t.test('a reset removes what it names, with an audit event, and the next match begins anew', async () => {
    const lobby = await lobbyOf(platform, game)
    const players = await seated(platform, lobby, 2)
    const report = (match_id: string) =>
      lobby.server.call(reportLobbyResult, { body: { teams: players.map((id) => [id]), ranks: [1, 2], match_id } })
    const first = await report('1')
    const [identity_id] = await identitiesOf(platform, players)
    const body = { namespace_id, identity_id: identity_id! }
    assert.deepEqual(await backend.call(resetRatings, { body }), { removed_count: 1 })
    assert.deepEqual(await backend.call(resetRatings, { body }), { removed_count: 0 })
    assert.deepEqual(
      (await report('2')).ratings.map(({ matches }) => matches),
      [1, 2],
    )
    const count = (await exported()).filter(({ game_mode }) => game_mode === 'default').length
    assert.deepEqual(await backend.call(resetRatings, { body: place }), { removed_count: count })
    assert.ok((await exported()).every(({ game_mode }) => game_mode === 'duel'))
    // A repeated report is not rated again, and returns what it returned.
    assert.deepEqual(await report('1'), first)
    await refused('VALIDATION_ERROR', backend.call(resetRatings, { body: { namespace_id } }))
    const { group_id } = game
    const { events } = await platform.client.call(listAuditEvents, { query: { operation: 'ratings.reset', group_id } })
    assert.equal(events.length, 3)
    assert.ok(events[0]!.changes.some(({ member }) => member === 'removed_count'))
  })

  await t.test('ratings go with their identity, and results after their time', async () => {
    const { db, pool } = platform.ctx
    const lobby = await lobbyOf(platform, game)
    const players = await seated(platform, lobby, 2)
    const body = { teams: players.map((id) => [id]), ranks: [1, 2] }
    await lobby.server.call(reportLobbyResult, { body })
    const [identity_id] = (await identitiesOf(platform, players)) as [string]
    await db.deleteFrom('identities').where('identity_id', '=', identity_id).execute()
    assert.equal((await ratingsOf(db, namespace_id, 'default', [identity_id])).size, 0)
    const again = { ...body, match_id: 'after' }
    const { unrated_players } = await lobby.server.call(reportLobbyResult, { body: again })
    assert.deepEqual(unrated_players, [{ player_id: players[0], reason: 'no_identity' }])

    const step = retentionSteps(platform.ctx).find(({ what }) => what === 'rating_results')!
    const old = { create_ts: new Date(platform.ctx.now() - platform.ctx.config.retention.results_ms! - 1) }
    await db.updateTable('rating_results').set(old).where('match_id', '=', 'after').execute()
    assert.equal(await step.remove(), 1)
    const { rows } = await pool.query('select 1 from rating_results where lobby_id = $1', [lobby.lobby_id])
    assert.equal(rows.length, 1)
  })

  await t.test('a namespace takes its ratings and results with it', async () => {
    const other = await platform.game({ matchmaker: { game_modes: MODES } })
    const lobby = await lobbyOf(platform, other)
    const players = await seated(platform, lobby, 2)
    await lobby.server.call(reportLobbyResult, { body: { teams: players.map((id) => [id]), ranks: [1, 2] } })
    await refused('NAMESPACE_NOT_FOUND', backend.call(exportRatings, { query: { namespace_id: other.namespace_id } }))
    const { db } = platform.ctx
    await db.updateTable('lobbies').set({ stop_ts: new Date() }).where('lobby_id', '=', lobby.lobby_id).execute()
    await platform.client.call(deleteGameNamespace, {
      params: { game_id: other.game_id, namespace_id: other.namespace_id },
    })
    for (const table of ['ratings', 'rating_results'] as const) {
      const rows = await db
        .selectFrom(table)
        .where('namespace_id', '=', other.namespace_id)
        .select('namespace_id')
        .execute()
      assert.deepEqual(rows, [])
    }
  })
})

/** Reports without a queue, as several processes of the platform would. */
async function countAll(platform: Platform, game: TestGame): Promise<void> {
  const { ctx } = platform
  const reportResult = createResults((_, work) => work())
  const rateTeams = await openModel()
  const lobbies = await Promise.all([1, 2, 3].map(() => lobbyOf(platform, game)))
  const identities = await Promise.all(Array.from({ length: 6 }, () => newIdentity(platform, game.namespace_id)))
  // Each lobby has a player of each identity.
  const players = await Promise.all(
    lobbies.map((lobby) =>
      putPlayers(
        platform,
        lobby,
        identities.map(() => newId(ctx.now())),
        identities,
      ),
    ),
  )
  const oneMatch = fc.record({
    lobby: fc.integer({ min: 0, max: lobbies.length - 1 }),
    order: fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 2 }),
    split: fc.integer({ min: 1, max: 5 }),
    ranks: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: 2 }),
  })
  const matches = fc.sample(fc.array(oneMatch, { minLength: AT_ONCE, maxLength: AT_ONCE }), 1)[0]!
  const played = await Promise.all(
    matches.map(async ({ lobby, order, split, ranks }, index) => {
      const cut = Math.min(split, order.length - 1)
      const teams = [order.slice(0, cut), order.slice(cut)]
      const { lobby_id, namespace_id } = lobbies[lobby]!
      const named = teams.map((team) => team.map((one) => players[lobby]![one]!))
      const caller = { kind: 'lobby', lobby_id, namespace_id } as const
      const result = await reportResult(ctx, caller, { teams: named, ranks, match_id: `match-${index}` })
      const numbers = result.ratings.map((rating) => rating.matches)
      return { teams, ranks, result, numbers }
    }),
  )
  const present = replay(rateTeams, played, new Map(identities.map((_, one) => [one, NEW_RATING])))
  const stored = await ratingsOf(ctx.db, game.namespace_id, 'default', identities)
  for (const [one, { mu, sigma, matches: count }] of present) {
    const { ordinal: _, ...value } = stored.get(identities[one]!) ?? NEW_RATING
    assert.deepEqual(value, { mu, sigma, matches: count })
  }
}

type Value = { mu: number; sigma: number; matches: number }
type Played = { teams: number[][]; ranks: number[]; result: Result; numbers: number[] }

/** Rates the matches one after the other, each when all its players have the number of matches before it. */
function replay(rateTeams: RateTeams, played: readonly Played[], ratings: Map<number, Value>): Map<number, Value> {
  const rest = new Set(played)
  const isNext = ({ teams, numbers }: Played): boolean =>
    teams.flat().every((one, i) => ratings.get(one)!.matches + 1 === numbers[i])
  while (rest.size > 0) {
    const next = [...rest].find(isNext)
    assert.ok(next !== undefined, 'no order of the results gives these numbers of matches')
    const { teams, ranks, result } = next
    const before = teams.map((team) => team.map((one) => ratings.get(one)!))
    const values = rateTeams(before, ranks).flat()
    for (const [i, one] of teams.flat().entries()) {
      const { mu, sigma, matches } = result.ratings[i]!
      assert.deepEqual({ mu, sigma }, values[i])
      ratings.set(one, { mu, sigma, matches })
    }
    rest.delete(next)
  }
  return ratings
}

async function personOf(platform: Platform, game: TestGame) {
  const { identity, identity_token } = await game.player.call(setupIdentity, { body: {} })
  const client = platform.as(identity_token)
  return { client, identity_id: identity.identity_id, game: { ...game, player: client } }
}

/** A lobby as the projection has one. */
async function lobbyOf(platform: Platform, game: TestGame, game_mode = 'default'): Promise<Lobby> {
  const { namespace_id, version_id } = game
  const lobby_id = newId(platform.ctx.now())
  await platform.ctx.pool.query(
    `insert into lobbies (lobby_id, namespace_id, shard, version_id, game_mode, region, publicity, is_custom, is_closed,
        max_players_normal, max_players_direct, max_players_party, tags, player_count, player_deadline_ms, idle_grace_ms,
        create_ts, ready_deadline_ts)
      values ($1, $2, 0, $3, $4, 'local', 'public', false, false, 8, 8, 8, '{}', 0, 1, 1, now(), now())`,
    [lobby_id, namespace_id, version_id, game_mode],
  )
  return { lobby_id, namespace_id, server: platform.serverOf(game, lobby_id) }
}

async function newIdentity({ ctx }: Platform, namespace_id: string): Promise<string> {
  const now = new Date(ctx.now())
  const identity_id = newId(ctx.now())
  await ctx.db
    .insertInto('identities')
    .values({ identity_id, namespace_id, display_name: 'Guest', account_number: 1, create_ts: now, seen_ts: now })
    .execute()
  return identity_id
}

/** New players of the lobby, each with an identity of its own. Returns their ids. */
async function seated(
  platform: Platform,
  lobby: Lobby,
  count: number,
  { has_identity = true } = {},
): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId(platform.ctx.now()))
  const identities = has_identity ? await Promise.all(ids.map(() => newIdentity(platform, lobby.namespace_id))) : []
  return putPlayers(platform, lobby, ids, identities)
}

const known = new Map<string, string>()

/** A player that was there before keeps its identity. */
async function putPlayers(
  { ctx }: Platform,
  { lobby_id, namespace_id }: Lobby,
  player_ids: readonly string[],
  identities: readonly string[] = [],
): Promise<string[]> {
  for (const [i, player_id] of player_ids.entries()) {
    const identity_id = identities[i] ?? known.get(player_id) ?? null
    if (identity_id !== null) known.set(player_id, identity_id)
    await ctx.pool.query(
      `insert into players (player_id, lobby_id, namespace_id, shard, client, create_ts, deadline_ts, identity_id)
        values ($1, $2, $3, 0, '192.0.2.1', now(), now(), $4)`,
      [player_id, lobby_id, namespace_id, identity_id],
    )
  }
  return [...player_ids]
}

async function identitiesOf({ ctx }: Platform, player_ids: readonly string[]): Promise<string[]> {
  const rows = await ctx.db
    .selectFrom('players')
    .where('player_id', 'in', player_ids)
    .select(['player_id', 'identity_id'])
    .execute()
  const found = new Map(rows.map(({ player_id, identity_id }) => [player_id, identity_id]))
  return player_ids.map((player_id) => found.get(player_id)!)
}

async function pages(client: Client, query: { game_mode: string; namespace_id: string; limit: number }) {
  const found: ResponseOf<typeof listRatings>['ratings'] = []
  let anchor: string | undefined
  do {
    const page = await client.call(listRatings, { query: { ...query, ...(anchor === undefined ? {} : { anchor }) } })
    found.push(...page.ratings)
    anchor = page.anchor
  } while (anchor !== undefined)
  return found
}

function many(count: number): string[] {
  return Array.from({ length: count }, () => randomUUID())
}
