// What the game receives of a request that it verifies, and what its decision does to the seat.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { test } from 'node:test'
import { findLobby, joinLobby, setLobbyClosed } from '@musterhost/contract'
import { idOfName } from '../../src/ids.ts'
import { mmdbFile } from '../addresses/mmdb-file.ts'
import { ask, bearer } from '../http/ask.ts'
import { from, outcomesOf, withKey } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { SECRET, SITE_KEY, startCaptchaServer } from './captcha-server.ts'
import { type Asked, startGameEndpoint } from './game-endpoint.ts'
import { MANY, NO, SETTINGS, startVerified, verifiedMode } from './verified-games.ts'

const gameModeId = (game: TestGame) => idOfName('default', game.game_id)

test('the game receives who asks for which seat, member for member', async (t) => {
  const { endpoint, game } = await startVerified(t, { taggable: true, allow_dynamic_max_players: true })
  const verification_data = { key: 'väl', list: [1, null, 'x'] }
  const common = { namespace_id: game.namespace_id, game_mode_id: gameModeId(game), game_mode_name_id: 'default' }
  const nowhere = { latitude: null, longitude: null }
  const headers = { ...from('2001:DB8:0::1').headers, 'user-agent': 'Arena/1.0' }
  const seat = await game.find({ tags: { a: 'b' }, max_players: 3, verification_data }, { headers })
  assert.deepEqual(endpoint.asked[0]?.payload, {
    verification_data,
    game: { ...common, lobby: null, state: null, config: null, tags: { a: 'b' }, dynamic_max_players: 3 },
    clients: { '2001:db8::1': { user_agent: 'Arena/1.0', ...nowhere } },
    join_kind: 'normal',
    kind: 'find',
  })
  assert.equal(endpoint.asked[0]?.headers['x-gate-key'], 'abc')
  assert.equal(endpoint.asked[0]?.headers['content-type'], 'application/json')

  await game.join(seat.lobby.lobby_id, from('192.0.2.1'))
  const { payload } = endpoint.asked[1]!
  const create_ts = String(payload.game.lobby?.create_ts)
  assert.match(create_ts, /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/)
  assert.ok(Math.abs(Date.parse(create_ts) - Date.now()) < 60_000)
  const region = { region_id: idOfName('local'), region_name_id: 'local' }
  const lobby = { lobby_id: seat.lobby.lobby_id, ...region, create_ts, is_closed: false }
  assert.deepEqual(payload, {
    verification_data: null,
    game: { ...common, lobby, state: null, config: null, tags: {}, dynamic_max_players: null },
    clients: { '192.0.2.1': { user_agent: userAgent(payload), ...nowhere } },
    join_kind: 'normal',
    kind: 'join',
  })

  await game.create({ lobby_config: { map: 'x' }, tags: { c: 'd' } })
  assert.deepEqual(endpoint.asked[2]?.payload.game, {
    ...common,
    lobby: null,
    state: null,
    config: { map: 'x' },
    tags: { c: 'd' },
    dynamic_max_players: null,
  })
  assert.equal(endpoint.asked[2]?.payload.kind, 'create')

  await game.find({ verification_data: 'x' })
  assert.equal(endpoint.asked[3]?.payload.game.lobby === null, false, 'a find is sent with the lobby that it gets')
  await game.find({ game_modes: ['plain'] })
  assert.equal(endpoint.asked.length, 4)
})

function userAgent(payload: { clients: Record<string, unknown> }): string | null {
  return (payload.clients['192.0.2.1'] as { user_agent: string | null }).user_agent
}

test('headers are sent with their values as they are, beside those of the message itself; a client without a name is null', async (t) => {
  const endpoint = await startGameEndpoint(t)
  const platform = await startPlatform(t, { env: SETTINGS })
  platform.playServers()
  const headers = { 'X-Gate-Key': 'a \t"b"; c=é', 'USER-agent': 'gate', 'content-type': 'application/vnd.gate+json' }
  const verification_config = { url: `${endpoint.url}?a=%20b`, headers }
  const actions = { find: { enabled: true, verification_config } }
  const game = await platform.game({ matchmaker: { game_modes: { default: { actions } } } })
  const answer = await ask(`${platform.matchmaker_url}/v1/lobbies/find`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${game.public_token}` },
    body: '{"game_modes":["default"]}',
  })
  assert.equal(answer.status, 200, answer.text)
  const [{ raw_headers, payload, text }] = endpoint.asked as [Asked]
  const sent = raw_headers.flatMap((name, index) => (index % 2 === 0 ? [[name, raw_headers[index + 1]!]] : []))
  assert.deepEqual(
    sent.toSorted(),
    [
      ...Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
      ...[
        ['accept-encoding', 'identity'],
        ['connection', 'close'],
        ['content-length', String(Buffer.byteLength(text))],
      ],
      ['host', `127.0.0.1:${endpoint.port}`],
    ].toSorted(),
  )
  assert.deepEqual(payload.clients, { '127.0.0.1': { user_agent: null, latitude: null, longitude: null } })
})

test('for a player whose place is unknown the game receives null, and the request goes on', async (t) => {
  const folder = await mkdtemp(joinPath(tmpdir(), 'muster-ip-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const cities = mmdbFile({ '81.2.69.0/24': { location: { latitude: 51.51, longitude: -0.13 } } })
  await writeFile(joinPath(folder, 'city.mmdb'), cities)
  await writeFile(joinPath(folder, 'cut-off.mmdb'), cities.subarray(0, cities.length - 20))
  await writeFile(joinPath(folder, 'no-database.mmdb'), 'this is none'.repeat(1_000))
  const endpoint = await startGameEndpoint(t)
  const platform = await startPlatform(t, { env: { ...SETTINGS, MUSTER_IP_DATA: folder } })
  platform.playServers()
  const matchmaker = { game_modes: { default: verifiedMode(endpoint.url) } }
  const game = await platform.game({ matchmaker, limits: MANY })
  const places: [string, number | null, number | null][] = [
    ['81.2.69.142', 51.51, -0.13],
    ...['1.1.1.1', '10.0.0.1', '127.0.0.1', '192.0.2.1', '2001:db8::1'].map((address): [string, null, null] => [
      address,
      null,
      null,
    ]),
  ]
  for (const [address, latitude, longitude] of places) {
    await game.find({}, { headers: { ...from(address).headers, 'user-agent': 'Arena/1.0' } })
    assert.deepEqual(endpoint.asked.at(-1)?.payload.clients, {
      [address]: { user_agent: 'Arena/1.0', latitude, longitude },
    })
  }
})

test('a no is a no, for every action, and nothing has happened', async (t) => {
  const { endpoint, platform, game } = await startVerified(t)
  const seat = await game.find()
  endpoint.answer((res) => res.writeHead(403).end())
  const calls = [
    () => game.find(),
    () => game.create(),
    () => game.player.call(joinLobby, { body: { lobby_id: seat.lobby.lobby_id } }),
  ]
  for (const call of calls) {
    const error = await platform.refuses(NO, call)
    assert.deepEqual([error.status, error.metadata], [400, {}])
  }
  assert.equal(await game.seatsTaken(), 1)
})

test('while the game thinks its place is nobody else’s, and a no gives it back', async (t) => {
  const { endpoint, platform, game } = await startVerified(t, { max_players: 2 })
  const seat = await game.find()
  const thinking = endpoint.think()
  const pending = failureOf(game.find())
  await until('the game to be asked', async () => thinking.waiting() === 1)
  await platform.setLimits(game, { lobby_count_max: 1, max_players_per_client: 3 })
  // The lobby is full, with the place that is held; nor may there be another lobby.
  await platform.refuses('MATCHMAKER_TOO_MANY_LOBBIES', () => game.find())
  await platform.refuses('MATCHMAKER_LOBBY_FULL', () => game.join(seat.lobby.lobby_id))
  await platform.setLimits(game, { max_players_per_client: 2 })
  await platform.refuses('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () => game.find())
  thinking.say(403)
  assert.equal((await pending).code, NO)
  assert.equal((await game.find()).lobby.lobby_id, seat.lobby.lobby_id)
})

test('a lobby that is only planned counts as one, and as the room that it will need', async (t) => {
  const { endpoint, platform, game } = await startVerified(t)
  await platform.setLimits(game, { lobby_count_max: 1 })
  const thinking = endpoint.think()
  const pending = game.create()
  await until('the game to be asked', async () => thinking.waiting() === 1)
  await platform.refuses('MATCHMAKER_TOO_MANY_LOBBIES', () => game.find({ game_modes: ['plain'] }))
  await platform.refuses('MATCHMAKER_TOO_MANY_LOBBIES', () => game.find())
  thinking.say(200)
  assert.ok((await pending).player.token)
})

test('a burst of verified finds plans one lobby, and all of it is one lobby then', async (t) => {
  const { endpoint, game } = await startVerified(t)
  const thinking = endpoint.think()
  const finds = Array.from({ length: 20 }, () => game.find())
  await until('the game to be asked', async () => thinking.waiting() === 20)
  thinking.say(200)
  const seats = await Promise.all(finds)
  assert.equal(new Set(seats.map((seat) => seat.lobby.lobby_id)).size, 1)
  assert.ok(endpoint.asked.every(({ payload }) => payload.game.lobby === null))
})

test('limits that were lowered meanwhile hold for the seat, and a lobby that was closed is not found after all', async (t) => {
  const { endpoint, platform, game } = await startVerified(t)
  const seat = await game.find()
  const thinking = endpoint.think()
  const late = failureOf(game.find())
  await until('the game to be asked', async () => thinking.waiting() === 1)
  await platform.setLimits(game, { max_players_per_client: 1 })
  thinking.say(200)
  assert.equal((await late).code, 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')

  await platform.setLimits(game, { max_players_per_client: 100 })
  const again = endpoint.think()
  const other = game.find()
  await until('the game to be asked', async () => again.waiting() === 1)
  await platform.serverOf(game, seat.lobby.lobby_id).call(setLobbyClosed, { body: { is_closed: true } })
  again.say(200)
  assert.notEqual((await other).lobby.lobby_id, seat.lobby.lobby_id)
  assert.equal(endpoint.asked.at(-1)?.payload.game.lobby, null)
})

test('a repeated request is one question, one hold and one seat', async (t) => {
  const { endpoint, platform, game } = await startVerified(t)
  await platform.setLimits(game, { max_players_per_client: 1 })
  const thinking = endpoint.think()
  const key = withKey()
  const finds = [game.find({}, key), game.find({}, key)]
  await until('the game to be asked', async () => thinking.waiting() === 1)
  thinking.say(200)
  const seats = await Promise.all(finds)
  seats.push(await game.find({}, key))
  assert.equal(new Set(seats.map((seat) => seat.player.token)).size, 1)
  assert.equal(endpoint.asked.length, 1)
})

test('who hangs up while the game thinks leaves no hold behind', async (t) => {
  const { endpoint, platform, game } = await startVerified(t)
  await platform.setLimits(game, { max_players_per_client: 1 })
  const thinking = endpoint.think()
  const caller = new AbortController()
  const call = game.find({}, { signal: caller.signal }).catch((error: Error) => error)
  await until('the game to be asked', async () => thinking.waiting() === 1)
  caller.abort()
  await call
  await until('the call to the game to end', async () => thinking.waiting() === 0)
  endpoint.answer(null)
  await game.find()
  assert.equal(await game.seatsTaken(), 1)
})

test('a caller who hangs up at the edge frees the held place within 50 ms', async (t) => {
  const HANG_UPS = 21
  const endpoint = await startGameEndpoint(t)
  const platform = await startPlatform(t, { env: SETTINGS, roles: 'api,matchmaker,edge' })
  const game = await platform.game({
    matchmaker: { game_modes: { default: verifiedMode(endpoint.url) } },
    limits: MANY,
  })
  const thinking = endpoint.think()
  const took_ms: number[] = []
  for (let count = 0; count < HANG_UPS; count++) {
    const call = request(`${platform.edge_url}${findLobby.path}`, {
      method: 'POST',
      agent: false,
      headers: { ...bearer(game.public_token), 'content-type': 'application/json', host: 'localhost' },
    })
    call.on('error', () => {})
    call.end(JSON.stringify({ game_modes: ['default'] }))
    await until('the game to be asked', () => thinking.waiting() === 1)
    const ended = thinking.ended()
    const begin = performance.now()
    call.destroy()
    await ended
    took_ms.push(performance.now() - begin)
  }
  const median_ms = took_ms.toSorted((a, b) => a - b)[Math.floor(HANG_UPS / 2)]!
  t.diagnostic(`median ${median_ms.toFixed(1)} ms, longest ${Math.max(...took_ms).toFixed(1)} ms`)
  assert.ok(median_ms < 50, `${median_ms} ms`)
})

/** As text, which a client's JSON.stringify could not send. */
async function findRaw(platform: Platform, game: TestGame, data: string): Promise<Response> {
  return fetch(`${platform.matchmaker_url}/matchmaker/lobbies/find`, {
    method: 'POST',
    headers: { authorization: `Bearer ${game.public_token}`, 'content-type': 'application/json' },
    body: `{"game_modes":["default"],"verification_data":${data}}`,
  })
}

test('verification_data, state and config arrive as they were sent, to the last digit, or are refused', async (t) => {
  const { endpoint, platform, game } = await startVerified(t)
  const exact = [
    '{"a":18446744073709551616,"b":1e400,"c":-0,"d":1.0,"e":0.1000000000000000055511151231257827}',
    '{"constructor":{"prototype":1},"toString":null}',
    '{"a":{"a":[{"a":"b:c\\\\","\\":":1}]}}',
    '[[1],"\\u00e4",1e2]',
    `"${'x'.repeat(16 * 1024 - 2)}"`,
    `${'['.repeat(32)}1e400${']'.repeat(32)}`,
    'false',
    '0',
  ]
  for (const data of exact) {
    const response = await findRaw(platform, game, data)
    assert.equal(response.status, 200, await response.text())
    const sent = data.replace('\\u00e4', 'ä')
    assert.equal(endpoint.asked.at(-1)?.text.slice(0, 22 + sent.length), `{"verification_data":${sent},`)
  }
  const config = '{"a":[9007199254740993,1e400,1.0]}'
  const created = await fetch(`${platform.matchmaker_url}/matchmaker/lobbies/create`, {
    method: 'POST',
    headers: { authorization: `Bearer ${game.public_token}`, 'content-type': 'application/json' },
    body: `{"game_mode":"default","publicity":"public","lobby_config":${config}}`,
  })
  const { lobby } = (await created.json()) as { lobby: { lobby_id: string } }
  assert.match(endpoint.asked.at(-1)?.text ?? '', /"config":{"a":\[9007199254740993,1e400,1\.0]},/)
  const state = '{"seed":18446744073709551616,"scale":1.0}'
  const { lobby_id } = lobby
  await fetch(`${platform.matchmaker_url}/matchmaker/lobbies/state`, {
    method: 'PUT',
    headers: {
      authorization: `Bearer ${platform.lobbyToken({ lobby_id, namespace_id: game.namespace_id })}`,
      'content-type': 'application/json',
    },
    body: state,
  })
  await game.join(lobby_id)
  assert.match(endpoint.asked.at(-1)?.text ?? '', /"state":{"seed":18446744073709551616,"scale":1\.0},/)
  const asked = endpoint.asked.length
  for (const data of [
    `"${'x'.repeat(16 * 1024 - 1)}"`,
    `${'['.repeat(33)}${']'.repeat(33)}`,
    `${'['.repeat(10_000)}${']'.repeat(10_000)}`,
    '{"__proto__":1}',
    '{"a":1,"a":2}',
    '[{"b":{"a":1,"\\u0061":2}}]',
    '1,"verification_data":2',
    '"\\ud800"',
    '"\\u0000"',
  ]) {
    const response = await findRaw(platform, game, data)
    const body = (await response.json()) as { code: string; metadata: { errors: { path: string[] }[] } }
    assert.deepEqual([response.status, body.code], [400, 'VALIDATION_ERROR'], data.slice(0, 40))
    assert.equal(body.metadata.errors[0]?.path[0], 'verification_data')
  }
  assert.equal(endpoint.asked.length, asked)
})

test('the captcha comes first, and a request whose verification says no counts for it', async (t) => {
  const endpoint = await startGameEndpoint(t)
  const provider = await startCaptchaServer(t)
  const platform = await startPlatform(t, { env: { ...SETTINGS, MUSTER_TURNSTILE_URL: provider.url } })
  platform.playServers()
  const turnstile = { site_key: SITE_KEY, secret_key: SECRET }
  const captcha = { requests_before_reverify: 2, verification_ttl: 240_000, turnstile }
  const matchmaker = { game_modes: { default: verifiedMode(endpoint.url) }, captcha }
  const game = await platform.game({ matchmaker, limits: MANY })
  await platform.refuses('CAPTCHA_CAPTCHA_REQUIRED', () => game.find())
  assert.equal(endpoint.asked.length, 0)
  await game.find({ captcha: { turnstile: { client_response: provider.solve() } } })
  endpoint.answer((res) => res.writeHead(403).end())
  assert.deepEqual(await outcomesOf(Array.from({ length: 5 }, () => game.find())), {
    [NO]: 2,
    CAPTCHA_CAPTCHA_REQUIRED: 3,
  })
})

test('a player has the full time to connect, however long the game has thought', async (t) => {
  const endpoint = await startGameEndpoint(t)
  const platform = await startPlatform(t, { env: SETTINGS })
  const game = await platform.game({
    matchmaker: { game_modes: { default: verifiedMode(endpoint.url, { player_deadline_ms: 60_000 }) } },
  })
  const first = game.find()
  const [lobby_id] = await platform.startingLobbies(game)
  await platform.makeReady(game, lobby_id!)
  await first
  const thinking = endpoint.think()
  const pending = game.player.call(joinLobby, { body: { lobby_id: lobby_id! } })
  await until('the game to be asked', async () => thinking.waiting() === 1)
  platform.advance(9_000)
  const before_ms = platform.ctx.now()
  thinking.say(200)
  await pending
  const deadline_ms = await until('the player to be projected', async () => {
    const row = await platform.ctx.db
      .selectFrom('players')
      .select('deadline_ts')
      .orderBy('create_ts', 'desc')
      .limit(2)
      .execute()
    return row.length === 2 && row[0]!.deadline_ts.getTime()
  })
  assert.ok(deadline_ms >= before_ms + 60_000)
})
