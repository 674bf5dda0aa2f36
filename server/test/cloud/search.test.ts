// The list of a game's rays with its filters, and the search in a game. What both read grows with the platform, so the plans of
// their queries are tested too.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  FOUND_MAX,
  listGameRays,
  playerConnected,
  type QueryOf,
  type RaySummary,
  searchGame,
  setupIdentity,
} from '@musterhost/contract'
import { newId } from '../../src/ids.ts'
import { from, LONG_MS, TRUSTING, UNKNOWN_ID } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'

const GAME_MODES = { default: { idle_grace_ms: LONG_MS, max_players: 64 } }
const LIMITS = { max_players_per_client: 1_000 }

type Query = QueryOf<typeof listGameRays>

const listRays = ({ client }: Platform, { game_id }: TestGame, query: Query = {}) =>
  client.call(listGameRays, { params: { game_id }, query })

/** All pages. */
async function allRays(platform: Platform, game: TestGame, query: Query = {}): Promise<RaySummary[]> {
  const rays: RaySummary[] = []
  for (let cursor: string | undefined, pages = 0; pages < 1_000; pages++) {
    const page = await listRays(platform, game, { ...query, ...(cursor === undefined ? {} : { cursor }) })
    rays.push(...page.rays)
    cursor = page.next_cursor
    if (cursor === undefined) return rays
  }
  throw new Error('The pages do not end.')
}

const searchFor = ({ client }: Platform, { game_id }: TestGame, text: string) =>
  client.call(searchGame, { params: { game_id }, query: { text } })

test('the rays of a game are listed newest first, by every filter, page by page, and no other game sees them', async (t) => {
  const platform = await startPlatform(t, { env: { MUSTER_RAYS_PER_SECOND: '100' } })
  platform.playServers()
  const [game, other] = [await platform.game({ matchmaker: { game_modes: GAME_MODES } }), await platform.game()]
  const { ctx } = platform
  const start_ms = Date.now()
  const seat = await game.find()
  const player_id = platform.playerIdOf(seat)
  const server = platform.serverOf(game, seat.lobby.lobby_id)
  await server.call(playerConnected, { body: { player_token: seat.player.token } })
  await failureOf(game.join(UNKNOWN_ID))
  const rays = await until('the rays are written', async () => {
    await ctx.recorder.flush()
    const all = await allRays(platform, game)
    const explained = all.filter(({ has_explanation }) => has_explanation).map(({ operation }) => operation)
    return explained.includes('lobbies.find') && explained.includes('lobbies.join') && all
  })
  const times = rays.map(({ ts }) => ts)
  assert.deepEqual(times, times.toSorted().reverse())
  assert.ok(rays.every(({ namespace_id }) => namespace_id === undefined || namespace_id === game.namespace_id))

  const operationsOf = async (query: Query) => (await allRays(platform, game, query)).map(({ operation }) => operation)
  assert.deepEqual(await operationsOf({ player_id }), ['players.connected', 'lobbies.find'])
  assert.deepEqual(await operationsOf({ code: 'MATCHMAKER_LOBBY_NOT_FOUND' }), ['lobbies.join'])
  assert.deepEqual(await operationsOf({ code: 'any' }), ['lobbies.join'])
  assert.deepEqual(await operationsOf({ operation: 'lobbies.find', code: 'none' }), ['lobbies.find'])
  const [slowest] = rays.toSorted((one, two) => two.duration - one.duration)
  const slow = await allRays(platform, game, { duration_min: slowest!.duration })
  assert.ok(slow.length > 0 && slow.every(({ duration }) => duration >= slowest!.duration))
  assert.deepEqual(await allRays(platform, game, { query_end: new Date(start_ms - 60_000).toISOString() }), [])
  assert.deepEqual(await allRays(platform, game, { query_start: String(start_ms - 60_000) }), rays)
  assert.deepEqual(await allRays(platform, game, { limit: 1 }), rays, 'one by one they are the same')
  const [refused] = await allRays(platform, game, { operation: 'lobbies.join' })
  assert.ok(refused!.has_explanation)

  const theirs = await allRays(platform, other)
  assert.ok(!theirs.some(({ ray_id }) => rays.some((ray) => ray.ray_id === ray_id)))
  const { namespace_id } = other
  assert.equal((await failureOf(listRays(platform, game, { namespace_id }))).code, 'NAMESPACE_NOT_FOUND')
  assert.equal((await failureOf(listRays(platform, game, { cursor: '1' }))).code, 'VALIDATION_ERROR')

  // Rare ones among many: a page is bounded, and its cursor leads on.
  await ctx.pool.query(
    `insert into ray_spans (ray_id, service, operation, code, owner_kind, owner_id, ts, duration_us, spans, marks)
      select gen_random_uuid(), 'api', 'many', null, 'namespace', $1, now() - interval '1 hour' - number * interval '1 millisecond',
        number, '[]', '[]' from generate_series(1, 5000) as number`,
    [game.namespace_id],
  )
  const rare: Query = { operation: 'many', duration_min: 4_990 }
  const first = await listRays(platform, game, rare)
  assert.deepEqual([first.rays.length, first.next_cursor !== undefined], [0, true])
  assert.equal((await allRays(platform, game, rare)).length, 11)
})

test('a search finds players, lobbies and rays of the game by each id and address, and nothing of another game', async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  platform.playServers()
  const [game, other] = [
    await platform.game({ matchmaker: { game_modes: GAME_MODES }, limits: LIMITS }),
    await platform.game({ matchmaker: { game_modes: GAME_MODES }, limits: LIMITS }),
  ]
  const [address, network] = ['203.0.113.7', '2001:db8:1:2::/64']
  const seat = await game.find({}, from(address))
  await game.find({}, from('2001:db8:1:2:3::4'))
  await other.find({}, from(address))
  const [player_id, { lobby_id }] = [platform.playerIdOf(seat), seat.lobby]
  const { rays } = await until('the ray is written', async () => {
    await platform.ctx.recorder.flush()
    const found = await searchFor(platform, game, player_id)
    const is_projected = (await searchFor(platform, game, lobby_id)).players.items.length === 2
    return is_projected && found.rays.items.length > 0 && found
  })
  const [ray] = rays.items
  assert.equal(ray!.operation, 'lobbies.find')

  const idsIn = async (text: string, of: TestGame = game) => {
    const { players, lobbies, rays } = await searchFor(platform, of, text)
    return {
      players: players.items.map((player) => player.player_id),
      lobbies: lobbies.items.map((lobby) => lobby.lobby_id),
      rays: rays.items.map(({ ray_id }) => ray_id),
    }
  }
  const whole = { players: [player_id], lobbies: [lobby_id], rays: [ray!.ray_id] }
  const nothing = { players: [], lobbies: [], rays: [] }
  assert.deepEqual(await idsIn(` ${player_id.toUpperCase()} `), whole)
  assert.deepEqual(await idsIn(ray!.ray_id), whole)
  const of_lobby = await idsIn(lobby_id)
  assert.deepEqual([of_lobby.players.length, of_lobby.lobbies, of_lobby.rays], [2, [lobby_id], [ray!.ray_id]])
  assert.deepEqual(await idsIn(address), { ...nothing, players: [player_id] })
  const { players } = await searchFor(platform, game, network)
  assert.deepEqual(await searchFor(platform, game, '2001:DB8:1:2:ffff::1'), await searchFor(platform, game, network))
  assert.deepEqual([players.items.length, players.items[0]?.client_key], [1, network])
  for (const text of [player_id, lobby_id, ray!.ray_id]) assert.deepEqual(await idsIn(text, other), nothing)
  assert.notDeepEqual((await idsIn(address, other)).players, [player_id])
  for (const text of ['ada', '', '203.0.113.0/24', '203.0.113.7/64']) {
    assert.equal((await failureOf(searchFor(platform, game, text))).code, 'VALIDATION_ERROR', text)
  }

  const many = Array.from({ length: FOUND_MAX + 1 }, () => newId(platform.ctx.now()))
  await platform.ctx.pool.query(
    `insert into players (player_id, lobby_id, namespace_id, shard, client, create_ts, deadline_ts, remove_ts)
      select id, $2, $3, 0, '198.51.100.1', now(), now(), now() from unnest($1::uuid[]) as player (id)`,
    [many, lobby_id, game.namespace_id],
  )
  const cut = (await searchFor(platform, game, '198.51.100.1')).players
  assert.deepEqual([cut.items.length, cut.is_cut], [FOUND_MAX, true])
})

test('the id of an identity finds its newest seats with their lobbies and requests, in its own game only', async (t) => {
  const platform = await startPlatform(t, { env: { MUSTER_RAYS_PER_SECOND: '100' } })
  platform.playServers()
  const [game, other] = [
    await platform.game({ matchmaker: { game_modes: GAME_MODES }, limits: LIMITS }),
    await platform.game(),
  ]
  const { identity, identity_token } = await game.player.call(setupIdentity, { body: {} })
  const { identity_id } = identity
  const guest = { ...game, player: platform.as(identity_token) }
  const seats = [await guest.find(), await guest.find()]
  await game.find()
  const found = await until('the seats are shown', async () => {
    await platform.ctx.recorder.flush()
    const result = await searchFor(platform, game, identity_id)
    return result.players.items.length === 2 && result.rays.items.length === 2 && result
  })
  assert.deepEqual(
    new Set(found.players.items.map(({ player_id }) => player_id)),
    new Set(seats.map((seat) => platform.playerIdOf(seat))),
  )
  assert.ok(found.players.items.every((player) => player.identity_id === identity_id))
  assert.deepEqual(
    found.lobbies.items.map(({ lobby_id }) => lobby_id),
    [seats[0]!.lobby.lobby_id],
  )
  assert.ok(found.rays.items.every(({ operation }) => operation === 'lobbies.find'))
  assert.deepEqual((await searchFor(platform, other, identity_id)).players.items, [])
})

test('neither the list of rays nor the search reads a whole table', async (t) => {
  const platform = await startPlatform(t)
  const { pool } = platform.ctx
  const game = await platform.game()
  const client = await pool.connect()
  const texts: { text: string; values: unknown[] }[] = []
  const { query } = pool
  pool.query = ((text: unknown, values: unknown[]) => {
    if (typeof text === 'string' && /ray_spans|players|lobbies/.test(text)) texts.push({ text, values })
    return (query as (...args: unknown[]) => unknown).call(pool, text, values)
  }) as typeof pool.query
  try {
    await listRays(platform, game)
    await listRays(platform, game, { player_id: UNKNOWN_ID })
    await searchFor(platform, game, UNKNOWN_ID)
    await searchFor(platform, game, '203.0.113.7')
  } finally {
    pool.query = query
  }
  try {
    // With few rows a scan is cheaper: switched off, it is only left where no index helps.
    await client.query('set enable_seqscan = off')
    const seen = texts.filter(({ text }) => !text.startsWith('insert'))
    assert.ok(seen.length >= 6)
    for (const { text, values } of seen) {
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values)
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      assert.doesNotMatch(plan, /Seq Scan on (ray_spans|players|lobbies)/, `${text}\n${plan}`)
    }
  } finally {
    client.release(true)
  }
})
