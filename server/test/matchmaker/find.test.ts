import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  type BodyOf,
  type ErrorCode,
  findLobby,
  listLobbies,
  playerConnected,
  playerDisconnected,
} from '@muster/contract'
import { createDatabase } from '../database.ts'
import {
  closeRegion,
  create,
  deploy,
  endRun,
  failureOf,
  find,
  from,
  idOf,
  join,
  journal,
  LONG_MS,
  listed,
  MODES,
  outcomesOf,
  ready,
  refused,
  removeReasonOf,
  type Seat,
  seatsTaken,
  serverOf,
  setLimits,
  starting,
  stopReasonOf,
  TRUSTING,
  tooManyTags,
  UNKNOWN_ID,
  unshown,
  withKey,
} from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../platform.ts'
import { until } from '../until.ts'

const MANY = { max_players_per_client: 1_000_000, lobby_count_max: 1_000 }

const sameLobby = (seats: readonly Seat[]): boolean => new Set(seats.map((seat) => seat.lobby.lobby_id)).size === 1

test('every refusal of find has its code, and changes nothing', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  await closeRegion(platform, game)
  const cases: [ErrorCode, Partial<BodyOf<typeof findLobby>>][] = [
    ['MATCHMAKER_NO_GAME_MODE_PROVIDED', { game_modes: [] }],
    ['MATCHMAKER_GAME_MODE_NOT_FOUND', { game_modes: ['default', 'nothing'] }],
    ['MATCHMAKER_GAME_MODE_NOT_FOUND', { game_modes: ['constructor'] }],
    ['MATCHMAKER_REGION_NOT_FOUND', { regions: ['local', 'mars'] }],
    ['MATCHMAKER_TAGS_DISABLED', { tags: { a: 'b' } }],
    ['MATCHMAKER_TAGS_DISABLED', { game_modes: ['tagged', 'default'], tags: { a: 'b' } }],
    ['MATCHMAKER_TOO_MANY_TAGS', { game_modes: ['tagged'], tags: tooManyTags() }],
    ['MATCHMAKER_TAG_NAME_TOO_LONG', { game_modes: ['tagged'], tags: { ['ä'.repeat(65)]: 'x' } }],
    ['MATCHMAKER_TAG_TOO_LONG', { game_modes: ['tagged'], tags: { a: 'ä'.repeat(257) } }],
    ['MATCHMAKER_DYNAMIC_MAX_PLAYERS_DISABLED', { max_players: 4 }],
    ['MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID', { game_modes: ['sized'], max_players: 9 }],
    ['MATCHMAKER_FIND_DISABLED', { game_modes: ['unfindable'] }],
    ['MATCHMAKER_NO_AVAILABLE_LOBBIES', { prevent_auto_create_lobby: true }],
    ['MATCHMAKER_AUTO_CREATE_FAILED', { game_modes: ['nowhere'] }],
  ]
  for (const [code, body] of cases) {
    const error = await refused(platform, code, () => find(game, body))
    assert.equal(error.status, 400)
  }
  await setLimits(platform, game, { max_players_per_client: 0 })
  await refused(platform, 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () => find(game))
  await setLimits(platform, game, { max_players_per_client: 8, lobby_count_max: 0 })
  await refused(platform, 'MATCHMAKER_TOO_MANY_LOBBIES', () => find(game))
  assert.deepEqual(await listed(game), [])

  const shown = cases.map(([code]) => code as string)
  shown.push('MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', 'MATCHMAKER_TOO_MANY_LOBBIES')
  // Shown below: they take a lobby that does not start.
  assert.deepEqual(unshown(findLobby, shown), ['MATCHMAKER_LOBBY_STOPPED', 'MATCHMAKER_LOBBY_NOT_STARTED'])
})

test('a burst of finds fills the lobbies that are starting, and waits until they are ready', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({
    matchmaker: { game_modes: { default: {}, small: { max_players: 10 } } },
    limits: MANY,
  })
  let answered = 0
  const burst = (game_mode: string): Promise<Seat[]> =>
    Promise.all(
      Array.from({ length: 30 }, () =>
        find(game, { game_modes: [game_mode] }).then((seat) => {
          answered++
          return seat
        }),
      ),
    )
  const seats = burst('default')
  const [lobby_id] = await starting(platform, game)
  await until('all to have a seat', async () => (await seatsTaken(game)) === 30)
  assert.deepEqual(await listed(game), [{ lobby_id, total_player_count: 30 }])
  assert.equal(answered, 0)
  await ready(platform, game, lobby_id!)
  assert.ok(sameLobby(await seats))
  assert.equal(new Set((await seats).map((seat) => seat.player.token)).size, 30)

  const spread = burst('small')
  const lobbies = await starting(platform, game, 3)
  await until('all to have a seat', async () => (await seatsTaken(game)) === 60)
  assert.equal(lobbies.length, 3)
  for (const id of lobbies) await ready(platform, game, id)
  const counts = Object.groupBy(await spread, (seat) => seat.lobby.lobby_id)
  assert.deepEqual(
    Object.values(counts).map((of_lobby) => of_lobby?.length),
    [10, 10, 10],
  )
})

test('a find whose lobby dies while it starts gets a seat in another one', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const seat = find(game)
  const [first] = await starting(platform, game)
  await endRun(platform, first!)
  assert.equal(await stopReasonOf(platform, first!), 'exited')
  const [second] = await starting(platform, game)
  assert.notEqual(second, first)
  await ready(platform, game, second!)
  assert.equal((await seat).lobby.lobby_id, second)
  assert.deepEqual(await listed(game), [{ lobby_id: second, total_player_count: 1 }])
})

test('a find gives up when every lobby it waits for dies, and keeps no seat', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ matchmaker: { game_modes: { default: { ready_deadline_ms: 5_000 } } } })
  const failure = failureOf(find(game))
  for (let attempt = 0; attempt < 3; attempt++) {
    const [lobby_id] = await starting(platform, game)
    platform.advance(5_000)
    assert.equal(await stopReasonOf(platform, lobby_id!), 'never_ready')
  }
  const error = await failure
  assert.deepEqual([error.status, error.code], [400, 'MATCHMAKER_LOBBY_STOPPED'])
  const { lobby_id, ...end } = error.metadata
  assert.deepEqual(end, { exit_reason: 'never_ready', exit_code: -1 })
  assert.equal(await stopReasonOf(platform, String(lobby_id)), 'never_ready')
  assert.match(error.message, /its server did not call ready in time\..*\/cloud\/rays\/.*\/explain/)
  assert.deepEqual(await listed(game), [])
})

test('a find waits 50 s for a lobby to start and no longer, then its seat is free', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const impatient = failureOf(find(game))
  const [lobby_id] = await starting(platform, game)
  platform.advance(1_000)
  const patient = find(game)
  await until('both to have a seat', async () => (await seatsTaken(game)) === 2)
  platform.advance(49_000)
  const error = await impatient
  assert.equal(error.code, 'MATCHMAKER_LOBBY_NOT_STARTED')
  assert.equal(error.status, 503)
  assert.equal(error.retry_after_s, 1)
  assert.deepEqual(await listed(game), [{ lobby_id, total_player_count: 1 }])
  await ready(platform, game, lobby_id!)
  assert.equal((await patient).lobby.lobby_id, lobby_id)
})

test('a client that hangs up while its lobby starts gives the seat back at once', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const game = await platform.game()
  const ways: Record<string, (signal: AbortSignal) => Promise<unknown>> = {
    'without a key': (signal) => find(game, {}, { signal }),
    'with a key': (signal) => find(game, {}, { signal, ...withKey() }),
    'through the edge': (signal) =>
      fetch(`${platform.edge_url}${findLobby.path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${game.public_token}`, 'content-type': 'application/json' },
        body: '{"game_modes":["default"]}',
        signal,
      }),
  }
  for (const [way, call] of Object.entries(ways)) {
    const caller = new AbortController()
    const end = assert.rejects(call(caller.signal), { name: 'AbortError' })
    await until(`the seat of a caller ${way}`, async () => (await seatsTaken(game)) === 1)
    caller.abort()
    await end
    await until(`the seat of a caller ${way} to be free`, async () => (await seatsTaken(game)) === 0)
  }
  assert.equal((await listed(game)).length, 1)
})

test('a seat is kept for a client that still waits for it with the same key, whichever call hangs up', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ limits: MANY })
  for (const leaver of [0, 1]) {
    const key = withKey()
    const callers = [new AbortController(), new AbortController()]
    const calls: Promise<Seat>[] = []
    const taken = await seatsTaken(game)
    for (const { signal } of callers) {
      calls.push(find(game, {}, { ...key, signal }))
      await until('the seat', async () => (await seatsTaken(game)) === taken + 1)
      await heard(game)
    }
    const { player_id } = await platform.ctx.db
      .selectFrom('players')
      .orderBy('create_ts', 'desc')
      .select('player_id')
      .executeTakeFirstOrThrow()
    const [gone, waiting] = leaver === 0 ? calls : calls.toReversed()
    const end = assert.rejects(gone!, { name: 'AbortError' })
    callers[leaver]!.abort()
    await end
    // Another client hangs up too: once its seat is free, the seat of the first would be.
    await hangUp(game)
    assert.equal(await seatsTaken(game), taken + 1)
    const [lobby_id] = await starting(platform, game)
    await ready(platform, game, lobby_id!)
    const seat = await waiting!
    assert.equal(idOf(platform, seat), player_id)
    const server = serverOf(platform, game, lobby_id!)
    await server.call(playerConnected, { body: { player_token: seat.player.token } })
    await endRun(platform, lobby_id!)
    await stopReasonOf(platform, lobby_id!)
  }
})

test('a seat that was answered is not lost to a repetition that hangs up', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ limits: MANY })
  const key = withKey()
  const seat = await find(game, {}, key)
  for (let repetition = 0; repetition < 20; repetition++) {
    // Changes of others are being written while the repetition is read: it is answered later, with its client gone.
    const others = [find(game), find(game), find(game)]
    await sendAndLeave(platform, game, key.headers)
    await Promise.all(others)
  }
  await heard(game)
  assert.equal(await seatsTaken(game), 61)
  const server = serverOf(platform, game, seat.lobby.lobby_id)
  await server.call(playerConnected, { body: { player_token: seat.player.token } })
})

test('the same key gets the same answer word for word, also from a matchmaker that was restarted', async (t) => {
  const options = {
    database_url: await createDatabase(t),
    data_dir: await folder(t),
    env: { MUSTER_ADVERTISED_HTTP_PORT: '80' },
  }
  const platform = await startPlatform(t, options)
  platform.playServers()
  const game = await platform.game()
  const { headers } = withKey()
  const first = await answerTo(platform, game, headers)
  assert.equal(await answerTo(platform, game, headers), first)
  await platform.close()

  const restarted = await startPlatform(t, options)
  assert.equal(await answerTo(restarted, game, headers), first)
  const { player, lobby } = JSON.parse(first) as Seat
  const server = serverOf(restarted, game, lobby.lobby_id)
  await server.call(playerConnected, { body: { player_token: player.token } })
  assert.equal(await answerTo(restarted, game, headers), first)
})

test('a key is good for its client and its action alone, and for ten minutes', async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const headers = { ...withKey().headers, ...from('203.0.113.1').headers }
  const mine = await find(game, {}, { headers })
  const foreign = await find(game, {}, { headers: { ...headers, ...from('203.0.113.2').headers } })
  const joined = await join(game, mine.lobby.lobby_id, { headers })
  assert.equal(new Set([mine, foreign, joined].map((seat) => seat.player.token)).size, 3)
  platform.advance(10 * 60_000 - 5_000)
  assert.deepEqual(await find(game, {}, { headers }), mine)
  platform.advance(5_001)
  const later = await find(game, {}, { headers })
  assert.notEqual(later.player.token, mine.player.token)
})

test('a key that is not one is refused, and takes no seat', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  for (const key of ['', 'two words', 'x'.repeat(129), 'ümlaut']) {
    const error = await refused(platform, 'VALIDATION_ERROR', () =>
      find(game, {}, { headers: { 'idempotency-key': Buffer.from(key).toString('latin1') } }),
    )
    assert.deepEqual((error.metadata.errors as { path: string[] }[])[0]?.path, ['headers', 'idempotency_key'])
  }
})

test('the limit of players per client is exact under concurrent finds, and counts each client alone', async (t) => {
  const platform = await startPlatform(t, { env: TRUSTING })
  platform.playServers()
  const game = await platform.game({ limits: { max_players_per_client: 5 } })
  const burst = (address: string) => outcomesOf(Array.from({ length: 50 }, () => find(game, {}, from(address))))
  const expected = { answered: 5, MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE: 45 }
  assert.deepEqual(await Promise.all([burst('203.0.113.1'), burst('203.0.113.2')]), [expected, expected])
  assert.equal(await seatsTaken(game), 10)
})

test('limits that are lowered remove nobody, and are in force from the next call on', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const seats = [await find(game), await find(game), await find(game)]
  const { lobby_id } = seats[0]!.lobby
  const server = serverOf(platform, game, lobby_id)
  await setLimits(platform, game, { max_players_per_client: 2, lobby_count_max: 0 })
  assert.deepEqual(await listed(game), [{ lobby_id, total_player_count: 3 }])
  await server.call(playerConnected, { body: { player_token: seats[0]!.player.token } })
  await refused(platform, 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () => find(game))
  for (const seat of seats.slice(1)) {
    await server.call(playerDisconnected, { body: { player_token: seat.player.token } })
  }
  // One place below the limit, in the lobby that is there: a new one may not be made.
  assert.equal((await find(game)).lobby.lobby_id, lobby_id)
  await refused(platform, 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () => find(game))
  await setLimits(platform, game, { max_players_per_client: 0 })
  await refused(platform, 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE', () => find(game))
  await setLimits(platform, game, { max_players_per_client: 4_294_967_295 })
  assert.equal((await find(game)).lobby.lobby_id, lobby_id)
  assert.equal(await seatsTaken(game), 3)
})

test('a find by tags gets a lobby that has all of them, and a lobby that it starts has them', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits: MANY })
  const lobbyOf = async (tags: Record<string, string>) =>
    (await find(game, { game_modes: ['tagged'], tags })).lobby.lobby_id
  const both = await lobbyOf({ map: 'moon', mood: 'calm' })
  assert.equal(await lobbyOf({ map: 'moon' }), both)
  assert.equal(await lobbyOf({ mood: 'calm', map: 'moon' }), both)
  assert.equal(await lobbyOf({}), both)
  const other = await lobbyOf({ map: 'moon', mood: 'wild' })
  assert.notEqual(other, both)
  assert.equal(await lobbyOf({ mood: 'wild' }), other)
  // A name that objects have by nature is a tag like any other.
  const odd = await lobbyOf({ constructor: 'x' })
  assert.ok(odd !== both && odd !== other)
  assert.equal(await lobbyOf({ constructor: 'x' }), odd)
  for (const tags of [{ 'a\nb': 5 }, { 'a\u2028b': {} }, { a: 5 }, { a: null }]) {
    const body = { game_modes: ['tagged'], tags: tags as unknown as Record<string, string> }
    await refused(platform, 'VALIDATION_ERROR', () => find(game, body))
  }
  const longest = { ['ä'.repeat(64)]: 'ä'.repeat(256) }
  assert.equal(await lobbyOf(longest), await lobbyOf(longest))
})

test('max_players of a find is the limit of the lobby it starts', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const lobbyOf = async () => (await find(game, { game_modes: ['sized'], max_players: 2 })).lobby.lobby_id
  const lobbies = [await lobbyOf(), await lobbyOf(), await lobbyOf()]
  assert.equal(lobbies[1], lobbies[0])
  assert.notEqual(lobbies[2], lobbies[0])
  const { lobbies: infos } = await game.player.call(listLobbies, {})
  assert.deepEqual(
    infos.map((info) => [info.max_players_normal, info.max_players_direct, info.total_player_count]),
    [
      [2, 2, 2],
      [2, 2, 1],
    ],
  )
  await refused(platform, 'MATCHMAKER_LOBBY_FULL', () => join(game, lobbies[0]!))
})

test('max_players is a whole number from 1 to what the game mode has, and else a refusal that starts nothing', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits: MANY })
  const ask = (max_players: unknown) => find(game, { game_modes: ['sized'], max_players: max_players as number })
  const open = (max_players: unknown) => create(game, { game_mode: 'custom', max_players: max_players as number })
  const codes = ['VALIDATION_ERROR', 'MATCHMAKER_DYNAMIC_MAX_PLAYERS_INVALID']
  for (const value of [0, -1, 9, 1.5, 2 ** 32 - 1, 2 ** 32, 2 ** 53, '5', [5], true]) {
    const before = await journal(platform)
    for (const call of [ask, open]) {
      const { code, status } = await failureOf(call(value))
      assert.ok(codes.includes(code) && status === 400, `${String(value)}: ${code}`)
    }
    assert.equal(await journal(platform), before)
  }
  const [one, eight] = [await ask(1), await ask(8)]
  assert.notEqual(one.lobby.lobby_id, eight.lobby.lobby_id)
  assert.equal((await failureOf(join(game, one.lobby.lobby_id))).code, 'MATCHMAKER_LOBBY_FULL')
})

test('of several game modes and regions the fullest lobby is found, and the first is started', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  await closeRegion(platform, game)
  const tagged = await find(game, { game_modes: ['tagged', 'default'], regions: ['local'] })
  const [info] = (await game.player.call(listLobbies, {})).lobbies
  assert.deepEqual(
    [info?.game_mode_name_id, info?.region_id, info?.lobby_id],
    ['tagged', 'local', tagged.lobby.lobby_id],
  )
  const found = await find(game, { game_modes: ['nowhere', 'default', 'tagged', 'tagged'] })
  assert.equal(found.lobby.lobby_id, tagged.lobby.lobby_id)
  assert.deepEqual(found.lobby.region, { region_id: 'local', display_name: 'Local' })
})

test('after a deploy lobbies of the version before are joined, but not found or listed', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({
    matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS }, retired: { idle_grace_ms: LONG_MS } } },
  })
  const [old, retired] = [await find(game), await find(game, { game_modes: ['retired'] })]
  await deploy(platform, game, { default: { idle_grace_ms: LONG_MS } })
  await refused(platform, 'MATCHMAKER_GAME_MODE_NOT_FOUND', () => find(game, { game_modes: ['retired'] }))
  const fresh = await find(game)
  assert.notEqual(fresh.lobby.lobby_id, old.lobby.lobby_id)
  assert.deepEqual(await listed(game), [{ lobby_id: fresh.lobby.lobby_id, total_player_count: 1 }])
  for (const before of [old, retired]) {
    const seat = await join(game, before.lobby.lobby_id)
    assert.equal(seat.lobby.lobby_id, before.lobby.lobby_id)
    assert.deepEqual(Object.keys(seat.ports), ['game'])
  }
})

test('a reservation that nobody uses is free again after its time, which counts from ready', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({
    matchmaker: { game_modes: { default: { player_deadline_ms: 60_000, idle_grace_ms: LONG_MS } } },
  })
  const answer = find(game)
  const [lobby_id] = await starting(platform, game)
  platform.advance(40_000)
  await ready(platform, game, lobby_id!)
  const seat = await answer
  platform.advance(50_000)
  assert.deepEqual(await listed(game), [{ lobby_id, total_player_count: 1 }])
  platform.advance(10_000)
  assert.equal(await removeReasonOf(platform, idOf(platform, seat)), 'expired')
  assert.deepEqual(await listed(game), [{ lobby_id, total_player_count: 0 }])
  const server = serverOf(platform, game, lobby_id!)
  await refused(platform, 'MATCHMAKER_PLAYER_REGISTRATION_EXPIRED', () =>
    server.call(playerConnected, { body: { player_token: seat.player.token } }),
  )
})

test('a seat does not expire while its lobby starts', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ matchmaker: { game_modes: { default: { player_deadline_ms: 1_000 } } } })
  const answer = find(game)
  const [lobby_id] = await starting(platform, game)
  const seats = await platform.ctx.db.selectFrom('players').select('player_id').execute()
  platform.advance(30_000)
  await heard(game)
  await ready(platform, game, lobby_id!)
  assert.equal(idOf(platform, await answer), seats[0]?.player_id)
})

test('a lobby without players is stopped after its grace', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const seat = await find(game)
  const { lobby_id } = seat.lobby
  const body = { player_token: seat.player.token }
  const server = serverOf(platform, game, lobby_id)
  await server.call(playerConnected, { body })
  platform.advance(LONG_MS)
  await server.call(playerDisconnected, { body })
  platform.advance(14_000)
  assert.deepEqual(await listed(game), [{ lobby_id, total_player_count: 0 }])
  platform.advance(1_000)
  assert.equal(await stopReasonOf(platform, lobby_id), 'idle')
  assert.deepEqual(await listed(game), [])
  assert.notEqual((await find(game)).lobby.lobby_id, lobby_id)
})

test('a client that waits for a lobby when the matchmaker stops is asked at once to come again', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const failure = failureOf(find(game))
  await starting(platform, game)
  const begin_ms = performance.now()
  const closing = platform.close()
  const error = await failure
  assert.equal(error.code, 'MATCHMAKER_LOBBY_NOT_STARTED')
  assert.equal(error.retry_after_s, 1)
  await closing
  assert.ok(performance.now() - begin_ms < 4_000, 'the connection was closed with its answer, and not cut off')
})

test('ids that are nobody’s are not found', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  await refused(platform, 'MATCHMAKER_LOBBY_NOT_FOUND', () => join(game, UNKNOWN_ID))
})

/** Round trips after which what was sent before has been read and carried out. */
async function heard(game: TestGame): Promise<void> {
  for (let trip = 0; trip < 3; trip++) await game.player.call(listLobbies, {})
}

/** Takes a seat, hangs up, and waits until it is free: whatever hung up before has been noticed then. */
async function hangUp(game: TestGame): Promise<void> {
  const taken = await seatsTaken(game)
  const caller = new AbortController()
  const end = assert.rejects(find(game, {}, { signal: caller.signal }), { name: 'AbortError' })
  await until('one more seat', async () => (await seatsTaken(game)) === taken + 1)
  caller.abort()
  await end
  await until('one seat less', async () => (await seatsTaken(game)) <= taken)
}

/** Sends a find and closes the connection without reading the answer. */
function sendAndLeave(platform: Platform, game: TestGame, headers: Record<string, string>): Promise<void> {
  return new Promise((resolve) => {
    const call = request(`${platform.matchmaker_url}${findLobby.path}`, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${game.public_token}`, 'content-type': 'application/json' },
    })
    call.on('error', () => {})
    call.once('close', resolve)
    call.end('{"game_modes":["default"]}', () => call.destroy())
  })
}

async function answerTo(platform: Platform, game: TestGame, headers: Record<string, string>): Promise<string> {
  const response = await fetch(`${platform.matchmaker_url}${findLobby.path}`, {
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${game.public_token}`, 'content-type': 'application/json' },
    body: '{"game_modes":["default"]}',
  })
  const text = await response.text()
  assert.equal(response.status, 200, text)
  return text
}

async function folder(t: TestContext): Promise<string> {
  const path = await mkdtemp(joinPath(tmpdir(), 'muster-test-'))
  t.after(() => rm(path, { recursive: true, force: true }))
  return path
}
