// Why a request for a seat ended as it did: every refusal is explained, with what was checked and what became of the
// lobbies; to the game's developers, and to nobody else.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Explanation, explainRay, findLobby, setLobbyClosed } from '@musterhost/contract'
import { createExplanationStore, NAMESPACE_EXPLANATIONS_MAX } from '../../src/matchmaker/explanations/store.ts'
import { ask, bearer, JSON_TYPE } from '../http/ask.ts'
import { LONG_MS, MODES, UNKNOWN_ID } from '../http/steps.ts'
import { CALLERS, createWorld } from '../http/world.ts'
import { lacking } from '../run/optional-programs.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'

/** A find as it is written; answers its code and its ray. */
async function refusedFind(
  platform: Platform,
  game: TestGame,
  body: object,
): Promise<{ code: string; ray_id: string }> {
  const { text, headers } = await ask(`${platform.matchmaker_url}${findLobby.path}`, {
    method: 'POST',
    headers: { ...bearer(game.public_token), ...JSON_TYPE },
    body: JSON.stringify({ game_modes: ['default'], ...body }),
  })
  return { code: (JSON.parse(text) as { code: string }).code, ray_id: String(headers['x-ray-id']) }
}

const explain = async ({ client }: Platform, ray_id: string): Promise<Explanation> =>
  (await client.call(explainRay, { params: { ray_id } })).explanation

test('a refusal explains which lobbies were there, why each was passed over, and the limits at that time', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const modes = {
    ...MODES,
    default: { idle_grace_ms: LONG_MS, max_players: 1, taggable: true },
    custom: { ...MODES.custom!, max_players: 1 },
  }
  const game = await platform.game({ matchmaker: { game_modes: modes }, limits: { lobby_count_max: 5 } })
  const full = await game.find()
  const closed = await game.find({ tags: { map: 'dune' } })
  const stalled = await game.find({ tags: { map: 'hill' } })
  const other_mode = await game.find({ game_modes: ['unlisted'] })
  const hidden = await game.create({ game_mode: 'custom', publicity: 'private' })
  await platform.serverOf(game, closed.lobby.lobby_id).call(setLobbyClosed, { body: { is_closed: true } })

  await platform.stallRun(stalled.lobby.lobby_id)

  const wish = { tags: { map: 'hill' }, captcha: { hcaptcha: { client_response: 'of-a-person' } } }
  const { code, ray_id } = await refusedFind(platform, game, wish)
  assert.equal(code, 'MATCHMAKER_TOO_MANY_LOBBIES')
  const told = await explain(platform, ray_id)
  assert.deepEqual([told.code, told.operation, told.namespace_id], [code, 'lobbies.find', game.namespace_id])
  assert.deepEqual(told.asked, { game_modes: ['default'], tags: { map: 'hill' } })
  assert.ok(!JSON.stringify(told).includes('of-a-person'), 'what was for the captcha only is not kept')
  assert.deepEqual([told.captcha, told.verification], ['none', 'none'])
  const [attempt, ...more] = told.attempts
  assert.equal(more.length, 0)
  assert.deepEqual([attempt!.outcome, attempt!.code, attempt!.candidates_left_out], ['refused', code, 0])
  const { client_limit, client_players, client_players_max, ...lobbies } = attempt!.limits
  assert.deepEqual([client_limit, client_players, client_players_max], ['max_players_per_client', 5, 8])
  assert.deepEqual(lobbies, { lobbies: 5, lobby_count_max: 5 })
  assert.deepEqual(Object.fromEntries(attempt!.candidates.map(({ lobby_id, verdict }) => [lobby_id, verdict])), {
    [full.lobby.lobby_id]: 'other_tags',
    [closed.lobby.lobby_id]: 'closed',
    [stalled.lobby.lobby_id]: 'stalled',
    [other_mode.lobby.lobby_id]: 'other_game_mode',
    [hidden.lobby.lobby_id]: 'other_game_mode',
  })
  const untagged = await explain(platform, (await refusedFind(platform, game, {})).ray_id)
  assert.equal(untagged.attempts[0]!.candidates[0]!.verdict, 'full', 'the nearest to fit first')
  assert.equal(untagged.attempts[0]!.candidates[0]!.lobby_id, full.lobby.lobby_id)

  // Refused before any book was asked: there is no attempt to tell of.
  const unknown = await explain(platform, (await refusedFind(platform, game, { game_modes: ['nothing'] })).ray_id)
  assert.deepEqual([unknown.code, unknown.attempts], ['MATCHMAKER_GAME_MODE_NOT_FOUND', []])
})

test('a seat that is explained says which lobby it is in and why, and most seats are not explained', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const seatAsked = () => refusedFind(platform, game, {})
  const first = await seatAsked()
  const created = await explain(platform, first.ray_id)
  assert.equal(created.code, undefined)
  assert.equal(created.attempts[0]!.outcome, 'created')
  assert.deepEqual(
    created.waits.map(({ lobby_id, end }) => [lobby_id, end]),
    [[created.attempts[0]!.lobby_id, 'ready']],
  )
  platform.advance(1_000)
  const beside = await explain(platform, (await seatAsked()).ray_id)
  assert.deepEqual([beside.attempts[0]!.outcome, beside.attempts[0]!.candidates[0]!.verdict], ['seated', 'chosen'])
  assert.equal(beside.attempts[0]!.limits.client_players, 1)
  // Of many in one moment few are kept, and each that is not says that it is not there.
  const many = await Promise.all(Array.from({ length: 6 }, seatAsked))
  const found = await Promise.all(
    many.map(({ ray_id }) =>
      explain(platform, ray_id).then(
        () => 'told',
        (error: { code: string }) => error.code,
      ),
    ),
  )
  assert.ok(found.filter((one) => one === 'told').length <= 3)
  assert.ok(found.includes('RAY_NOT_FOUND'))
})

test("a ray is shown to the game's developers and administrators; for all others there is none", async (t) => {
  const platform = await startPlatform(t)
  const world = await createWorld(platform)
  await platform.setLimits(world.game, { max_players_per_client: 0 })
  const { code, ray_id } = await refusedFind(platform, world.game, {})
  assert.equal(code, 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
  const in_words: Record<string, string> = {}
  for (const caller of CALLERS) {
    const token = world.tokens[caller]
    const headers = token === null ? {} : bearer(token)
    const { status, text } = await ask(`${platform.matchmaker_url}/cloud/rays/${ray_id}/explain`, { headers })
    in_words[caller] = status === 200 ? 'told' : (JSON.parse(text) as { code: string }).code
  }
  const { none, garbage, forged, expired, revoked, ...known } = in_words
  const told = ['admin', 'cloud', 'owner', 'developer']
  const unknown = ['other_cloud', 'viewer', 'stranger', 'left', 'kicked']
  for (const [caller, answer] of Object.entries(known)) {
    const expected = told.includes(caller) ? 'told' : unknown.includes(caller) ? 'RAY_NOT_FOUND' : 'API_FORBIDDEN'
    assert.equal(answer, expected, caller)
  }
  assert.deepEqual(
    [none, garbage, forged, expired, revoked],
    ['API_UNAUTHORIZED', 'TOKEN_INVALID', 'TOKEN_INVALID', 'TOKEN_EXPIRED', 'TOKEN_REVOKED'],
  )
  await assert.rejects(explain(platform, UNKNOWN_ID), { code: 'RAY_NOT_FOUND' })
})

test('a server that does not start is explained with its exit code, its reason and its last lines', async (t) => {
  const how = lacking('bwrap') === null ? 'bubblewrap' : 'no sandbox'
  t.diagnostic(`with ${how}`)
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner', has_sandboxes: true })
  const files = {
    'server.mjs': "console.log('reading the map')\nconsole.error('no map \\u0000 here')\nprocess.exitCode = 3\n",
  }
  const game = await platform.game({ files })
  const { code, ray_id } = await refusedFind(platform, game, {})
  assert.equal(code, 'MATCHMAKER_LOBBY_STOPPED')
  const told = await explain(platform, ray_id)
  // When it came: it was over before now.
  assert.ok(Date.parse(told.create_ts) + told.duration / 1_000 <= platform.ctx.now())
  assert.equal(told.attempts.length, 3)
  assert.ok(told.waits.every(({ end }) => end === 'gone'))
  assert.equal(told.lobbies.length, 3)
  for (const lobby of told.lobbies) {
    const { is_ready, stop_reason, exit_code, exit_reason } = lobby
    assert.deepEqual([is_ready, stop_reason, exit_code, exit_reason], [false, 'exited', 3, 'exit'])
    assert.deepEqual(lobby.log_lines.toSorted(), ['no map \uFFFD here', 'reading the map'])
  }
  const broken = await platform.game({ docker: {}, files: { 'other.mjs': '' } })
  const gone = await explain(platform, (await refusedFind(platform, broken, {})).ray_id)
  assert.ok(gone.lobbies.every(({ log_lines }) => log_lines.length > 0))
})

test('a namespace keeps its newest rays only, and none that are too old', async (t) => {
  const platform = await startPlatform(t)
  const { ctx } = platform
  const game = await platform.game()
  const { pool } = ctx
  await pool.query(
    `insert into explanations (ray_id, namespace_id, operation, create_ts, duration_us, explanation)
      select gen_random_uuid(), $1, 'lobbies.find', now() - n * interval '1 second', 1, '{}' from generate_series(1, $2) n`,
    [game.namespace_id, NAMESPACE_EXPLANATIONS_MAX + 5],
  )
  const explanations = createExplanationStore(ctx)
  explanations.keep({
    ray_id: UNKNOWN_ID,
    namespace_id: game.namespace_id,
    operation: 'lobbies.find',
    create_ms: ctx.now(),
    duration_us: 1,
    code: null,
    explanation: '{"text":"\\u0000\\ud800"}',
  })
  await explanations.flush()
  assert.equal(await explanations.trim(), 6)
  assert.equal(await explanations.trim(), 0)
  const { rows } = await pool.query<{ count: string }>('select count(*) from explanations')
  assert.equal(Number(rows[0]!.count), NAMESPACE_EXPLANATIONS_MAX)
  const newest = await pool.query('select from explanations where ray_id = $1', [UNKNOWN_ID])
  assert.equal(newest.rowCount, 1)
  await explanations.close()
})
