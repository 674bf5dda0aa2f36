import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  changeOwnLobby,
  createLobby,
  type ErrorCode,
  getLobbyState,
  listLobbies,
  playerConnected,
  setLobbyClosed,
  setLobbyPlayers,
  setLobbyReady,
  setLobbyState,
  stopOwnLobby,
  watchOwnLobby,
} from '@musterhost/contract'
import { idOfName } from '../../src/ids.ts'
import { ask, bearer, JSON_TYPE, requireRefusal } from '../http/ask.ts'
import { MODES, tooManyTags, UNKNOWN_ID, unshown } from '../http/steps.ts'
import { startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'

test('a lobby calls ready once; again changes nothing', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const seat = game.find()
  const [lobby_id] = await platform.startingLobbies(game)
  const server = platform.serverOf(game, lobby_id!)
  assert.deepEqual(await server.call(setLobbyReady, {}), {})
  await seat
  const before = await platform.journalEnds()
  assert.deepEqual(await server.call(setLobbyReady, {}), {})
  assert.equal(await platform.journalEnds(), before)
})

test('what a lobby that has stopped says of itself is refused, and changes nothing', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const { lobby } = await game.find()
  await platform.endRun(lobby.lobby_id)
  await platform.stopReasonOf(lobby.lobby_id)
  const code: ErrorCode = 'MATCHMAKER_LOBBY_STOPPED'
  for (const server of [platform.serverOf(game, lobby.lobby_id), platform.serverOf(game, UNKNOWN_ID)]) {
    await platform.refuses(code, () => server.call(setLobbyReady, {}))
    await platform.refuses(code, () => server.call(setLobbyClosed, { body: { is_closed: true } }))
    await platform.refuses(code, () => server.call(setLobbyState, { body: 'x' }))
  }
  assert.deepEqual(unshown(setLobbyReady, [code]), [])
  assert.deepEqual(unshown(setLobbyClosed, [code]), [])
  assert.deepEqual(unshown(setLobbyState, [code, 'API_BODY_TOO_LARGE']), [])
})

test('a closed lobby is not found until it is opened again', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const { lobby } = await game.find()
  const server = platform.serverOf(game, lobby.lobby_id)
  await server.call(setLobbyClosed, { body: { is_closed: true } })
  const before = await platform.journalEnds()
  await server.call(setLobbyClosed, { body: { is_closed: true } })
  assert.equal(await platform.journalEnds(), before)
  await platform.refuses('MATCHMAKER_NO_AVAILABLE_LOBBIES', () => game.find({ prevent_auto_create_lobby: true }))
  assert.equal((await game.join(lobby.lobby_id)).lobby.lobby_id, lobby.lobby_id)
  await server.call(setLobbyClosed, { body: { is_closed: false } })
  const seat = await game.find({ prevent_auto_create_lobby: true })
  assert.equal(seat.lobby.lobby_id, lobby.lobby_id)
})

test('the state of a lobby is any JSON, and comes back as it was set', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const { lobby } = await game.find()
  const params = { lobby_id: lobby.lobby_id }
  const server = platform.serverOf(game, lobby.lobby_id)
  assert.equal(await game.player.call(getLobbyState, { params }), null)
  const states = [
    { a: [1, null, { b: 'ü"\\\n' }] },
    { prepared: 'x' },
    'plain text',
    '',
    '"',
    0,
    -1.5,
    false,
    true,
    [],
    {},
    [[]],
    null,
  ]
  for (const state of states) {
    await server.call(setLobbyState, { body: state })
    assert.deepEqual(await game.player.call(getLobbyState, { params }), state)
    assert.deepEqual(await server.call(getLobbyState, { params }), state)
    const { lobbies } = await game.player.call(listLobbies, { query: { include_state: true } })
    assert.deepEqual(lobbies[0]?.state, state)
  }
  await server.call(setLobbyState, { body: 'something' })
  await server.call(setLobbyState, {})
  assert.equal(await game.player.call(getLobbyState, { params }), null)
  assert.ok(!('state' in (await game.player.call(listLobbies, {})).lobbies[0]!))
})

test('the state and the config of a lobby keep every number to its last digit, and no member may stand twice', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const send = (method: string, path: string, token: string, body: string) =>
    ask(`${platform.matchmaker_url}${path}`, { method, headers: { ...bearer(token), ...JSON_TYPE }, body })
  const read = async (path: string) =>
    (await ask(`${platform.matchmaker_url}${path}`, { headers: bearer(game.public_token) })).text
  const createWith = (config: string) =>
    send('POST', createLobby.path, game.public_token, `{"game_mode":"custom","lobby_config":${config}}`)
  const { lobby_id } = (await game.find()).lobby
  const server_token = platform.lobbyToken({ lobby_id, namespace_id: game.namespace_id })
  const setState = (state: string) => send('PUT', setLobbyState.path, server_token, state)
  const exact = [
    '{"a":9007199254740993,"b":1e400,"c":-0,"d":1.0,"e":[18446744073709551616,0.1000000000000000055]}',
    '1.0',
    '-0',
    '12345678901234567890',
    '{"rawJSON":"1.0"}',
  ]
  for (const text of exact) {
    const answer = await setState(text)
    assert.equal(answer.status, 200, answer.text)
    assert.equal(await read(`/matchmaker/lobbies/${lobby_id}/state`), text)
    assert.ok((await read(`${listLobbies.path}?include_state=true`)).includes(`"state":${text}}`), text)
    const created = await createWith(text)
    assert.equal(created.status, 200, created.text)
    const { lobby } = JSON.parse(created.text) as { lobby: { lobby_id: string } }
    const row = await platform.ctx.db
      .selectFrom('lobbies')
      .where('lobby_id', '=', lobby.lobby_id)
      .select('lobby_config')
      .executeTakeFirstOrThrow()
    assert.equal(row.lobby_config, text)
  }
  for (const [answer, path] of [
    [await setState('{"a":1,"a":2}'), ['a']],
    [await createWith('{"a":{"b":1,"b":2}}'), ['lobby_config', 'a', 'b']],
  ] as const) {
    const { metadata } = requireRefusal(answer, 'VALIDATION_ERROR')
    const [error] = metadata.errors as { path: string[]; reason: string }[]
    assert.deepEqual([error?.path, error?.reason], [path, 'not_unique'])
  }
  assert.equal(await read(`/matchmaker/lobbies/${lobby_id}/state`), exact.at(-1))
})

test('a state has at most 16 KiB', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const { lobby } = await game.find()
  const server = platform.serverOf(game, lobby.lobby_id)
  const largest = 'ä'.repeat(8 * 1024 - 1)
  await server.call(setLobbyState, { body: largest })
  const error = await platform.refuses('API_BODY_TOO_LARGE', () => server.call(setLobbyState, { body: `${largest}a` }))
  assert.equal(error.status, 413)
  assert.equal(await game.player.call(getLobbyState, { params: { lobby_id: lobby.lobby_id } }), largest)
})

test('the state of a lobby is read within its namespace, while it lives', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const stranger = await platform.game()
  const [{ lobby }, other] = [await game.find(), await stranger.find()]
  const params = { lobby_id: lobby.lobby_id }
  await platform.serverOf(game, lobby.lobby_id).call(setLobbyState, { body: 'secret' })
  const foreign_server = platform.serverOf(stranger, other.lobby.lobby_id)
  const tell = ({ message, metadata }: { message: string; metadata: unknown }) => ({ message, metadata })
  const code: ErrorCode = 'MATCHMAKER_LOBBY_NOT_FOUND'
  const none = await platform.refuses(code, () =>
    stranger.player.call(getLobbyState, { params: { lobby_id: UNKNOWN_ID } }),
  )
  for (const client of [stranger.player, foreign_server]) {
    const error = await platform.refuses(code, () => client.call(getLobbyState, { params }))
    assert.deepEqual(tell(error), tell(none))
  }
  await platform.endRun(lobby.lobby_id)
  await platform.stopReasonOf(lobby.lobby_id)
  await platform.refuses(code, () => game.player.call(getLobbyState, { params }))
  assert.deepEqual(unshown(getLobbyState, [code]), [])
})

test('the token of a lobby dies with it', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const [{ lobby }, other] = [await game.find(), await game.find({ game_modes: ['tagged'] })]
  const server = platform.serverOf(game, lobby.lobby_id)
  const params = { lobby_id: other.lobby.lobby_id }
  assert.equal(await server.call(getLobbyState, { params }), null)
  await platform.endRun(lobby.lobby_id)
  await platform.stopReasonOf(lobby.lobby_id)
  const error = await failureOf(server.call(getLobbyState, { params }))
  assert.equal(error.code, 'TOKEN_REVOKED')
  assert.equal(error.status, 401)
})

/** How a game mode is named wherever its id is shown. */
const namesOf = ({ game_id }: TestGame, name: string) => ({
  game_mode_id: idOfName(name, game_id),
  game_mode_name_id: name,
})
const byName = (a: { game_mode_name_id: string }, b: { game_mode_name_id: string }): number =>
  a.game_mode_name_id < b.game_mode_name_id ? -1 : 1

test('find and create take a game mode by the id that list returns, and by its name', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const { game_modes } = await game.player.call(listLobbies, {})
  const idOf = (name: string) => game_modes.find((mode) => mode.game_mode_name_id === name)?.game_mode_id ?? ''
  const { lobby } = await game.find({ game_modes: [idOf('tagged')] })
  assert.equal((await game.find({ game_modes: ['tagged'] })).lobby.lobby_id, lobby.lobby_id)
  await game.create({ game_mode: idOf('custom') })
  await platform.refuses('MATCHMAKER_GAME_MODE_NOT_FOUND', () => game.find({ game_modes: [UNKNOWN_ID] }))
})

test('list names the game modes and regions, and the public lobbies that are not hidden', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  await platform.closeRegion(game)
  const { lobby } = await game.find()
  await game.find({ game_modes: ['unlisted'] })
  await game.create({ game_mode: 'secret' })
  await platform.serverOf(game, lobby.lobby_id).call(setLobbyClosed, { body: { is_closed: true } })
  const before = await platform.journalEnds()
  const list = await game.player.call(listLobbies, {})
  assert.equal(await platform.journalEnds(), before)
  const game_modes = Object.keys(MODES).map((name) => namesOf(game, name))
  assert.deepEqual(list.game_modes.toSorted(byName), game_modes.toSorted(byName))
  assert.deepEqual(list.regions, [
    {
      region_id: 'local',
      provider_display_name: 'This machine',
      region_display_name: 'Local',
      datacenter_coord: { latitude: 0, longitude: 0 },
      datacenter_distance_from_client: { kilometers: 0, miles: 0 },
    },
  ])
  const limits = { max_players_normal: 32, max_players_direct: 32, max_players_party: 32 }
  const where = { region_id: 'local', ...namesOf(game, 'default'), lobby_id: lobby.lobby_id }
  assert.deepEqual(list.lobbies, [{ ...where, ...limits, total_player_count: 1 }])
  assert.ok(!('anchor' in list))
})

test('list comes in pages of 256, oldest first, each lobby once', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({
    matchmaker: { game_modes: { ...MODES, default: { max_players: 1 } } },
    limits: { lobby_count_max: 1_000, max_players_per_client: 1_000 },
  })
  await Promise.all(Array.from({ length: 300 }, () => game.find()))
  const page = await game.player.call(listLobbies, {})
  assert.equal(page.lobbies.length, 256)
  assert.equal(page.anchor, page.lobbies.at(-1)?.lobby_id)
  const rest = await game.player.call(listLobbies, { query: { anchor: page.anchor! } })
  assert.equal(rest.lobbies.length, 44)
  assert.ok(!('anchor' in rest))
  const ids = [...page.lobbies, ...rest.lobbies].map((lobby) => lobby.lobby_id)
  assert.equal(new Set(ids).size, 300)
  // An id begins with its millisecond; within one there is no older.
  const moments = ids.map((id) => id.slice(0, 13))
  assert.deepEqual(moments, moments.toSorted())
  assert.equal((await game.listedLobbies()).length, 256)
})

test('a server sees the seats of its lobby, reports players by id, and ends the lobby', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const first = await game.find()
  const { lobby_id } = first.lobby
  const server = platform.serverOf(game, lobby_id)
  const player_id = platform.playerIdOf(first)
  const seen = await server.call(watchOwnLobby, {})
  assert.deepEqual([seen.lobby_id, seen.is_closed, seen.is_draining], [lobby_id, false, false])
  assert.deepEqual(
    seen.seats.map((seat) => [seat.player_id, seat.is_connected]),
    [[player_id, false]],
  )

  const { index } = seen.watch
  const watching = server.call(watchOwnLobby, { query: { watch_index: index } })
  const stranger = 'a player who has no seat'
  const reported = await server.call(setLobbyPlayers, { body: { player_ids: [player_id, stranger] } })
  assert.deepEqual(reported, { unknown_player_ids: [stranger] })
  const news = await watching
  assert.deepEqual(
    news.seats.map(({ is_connected }) => is_connected),
    [true],
  )
  const before = await platform.journalEnds()
  await server.call(setLobbyPlayers, { body: { player_ids: [player_id] } })
  assert.equal(await platform.journalEnds(), before)

  // The second player has a reserved seat, which a report without the player does not take back.
  const second = await game.join(lobby_id)
  const by_token = await server.call(setLobbyPlayers, { body: { player_ids: [first.player.token, 'player.forged'] } })
  assert.deepEqual(by_token, { unknown_player_ids: ['player.forged'] })
  await server.call(setLobbyPlayers, { body: { player_ids: [] } })
  const { seats } = await server.call(watchOwnLobby, {})
  assert.deepEqual(
    seats.map((seat) => seat.player_id),
    [platform.playerIdOf(second)],
  )
  await platform.refuses('MATCHMAKER_PLAYER_REMOVED', () =>
    server.call(playerConnected, { body: { player_token: first.player.token } }),
  )

  await server.call(stopOwnLobby, {})
  assert.equal(await platform.stopReasonOf(lobby_id), 'requested')
  const code: ErrorCode = 'MATCHMAKER_LOBBY_STOPPED'
  await platform.refuses(code, () => server.call(watchOwnLobby, {}))
  await platform.refuses(code, () => server.call(setLobbyPlayers, { body: { player_ids: [] } }))
  assert.deepEqual(await server.call(stopOwnLobby, {}), {})
  assert.deepEqual(unshown(watchOwnLobby, [code]), [])
  assert.deepEqual(unshown(setLobbyPlayers, [code, 'MATCHMAKER_LOBBY_NOT_STARTED']), [])
})

test('a lobby that its server keeps stays while it is empty, and ends when the server says so', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: { default: { idle_grace_ms: 0 } } } })
  const seat = await game.find()
  const { lobby_id } = seat.lobby
  const server = platform.serverOf(game, lobby_id)
  const { keep_until_ts } = await server.call(changeOwnLobby, { body: { keep_ms: 3_600_000 } })
  await server.call(playerConnected, { body: { player_token: seat.player.token } })
  await server.call(setLobbyPlayers, { body: { player_ids: [] } })
  assert.deepEqual((await server.call(watchOwnLobby, {})).seats, [])
  assert.deepEqual(await server.call(changeOwnLobby, { body: {} }), { keep_until_ts })
  const before = await platform.journalEnds()
  assert.deepEqual(await server.call(changeOwnLobby, { body: { tags: {} } }), { keep_until_ts })
  assert.equal(await platform.journalEnds(), before)

  assert.deepEqual(await server.call(changeOwnLobby, { body: { keep_ms: 0 } }), {})
  assert.equal(await platform.stopReasonOf(lobby_id), 'idle')
  await platform.refuses('MATCHMAKER_LOBBY_STOPPED', () => server.call(changeOwnLobby, { body: { keep_ms: 1 } }))
})

test('a lobby is found by the tags that its server gave it, and no longer by those of before', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const find = async (tags: Record<string, string>) =>
    (await game.find({ game_modes: ['tagged'], tags })).lobby.lobby_id
  const lobby_id = await find({ map: 'ice' })
  const server = platform.serverOf(game, lobby_id)
  await server.call(changeOwnLobby, { body: { tags: { map: 'sand' } } })
  assert.equal(await find({ map: 'sand' }), lobby_id)
  assert.notEqual(await find({ map: 'ice' }), lobby_id)

  const untagged = platform.serverOf(game, (await game.find()).lobby.lobby_id)
  for (const [code, asking, tags] of [
    ['MATCHMAKER_TAGS_DISABLED', untagged, { a: 'b' }],
    ['MATCHMAKER_TOO_MANY_TAGS', server, tooManyTags()],
    ['MATCHMAKER_TAG_NAME_TOO_LONG', server, { ['x'.repeat(129)]: 'x' }],
    ['MATCHMAKER_TAG_TOO_LONG', server, { a: 'x'.repeat(513) }],
  ] as const) {
    await platform.refuses(code, () => asking.call(changeOwnLobby, { body: { tags, keep_ms: 1_000 } }))
  }
  assert.deepEqual(
    unshown(changeOwnLobby, [
      'MATCHMAKER_LOBBY_STOPPED',
      'MATCHMAKER_TAGS_DISABLED',
      'MATCHMAKER_TOO_MANY_TAGS',
      'MATCHMAKER_TAG_NAME_TOO_LONG',
      'MATCHMAKER_TAG_TOO_LONG',
    ]),
    [],
  )
})

test('players of a lobby that is starting are not reported yet', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const seat = game.find()
  const [lobby_id] = await platform.startingLobbies(game)
  const server = platform.serverOf(game, lobby_id!)
  await platform.refuses('MATCHMAKER_LOBBY_NOT_STARTED', () =>
    server.call(setLobbyPlayers, { body: { player_ids: [] } }),
  )
  await server.call(setLobbyReady, {})
  await seat
})
