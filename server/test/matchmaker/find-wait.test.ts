// A find that waits while its lobby starts: how long, what ends it early, and what happens to its seat.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { createCloudToken, findLobby, listLobbies, playerConnected } from '@musterhost/contract'
import { withKey } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import type { Seat } from '../support/platform-verbs.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'

const MANY = { max_players_per_client: 1_000_000, lobby_count_max: 1_000 }

const sameLobby = (seats: readonly Seat[]): boolean => new Set(seats.map((seat) => seat.lobby.lobby_id)).size === 1

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
        game.find({ game_modes: [game_mode] }).then((seat) => {
          answered++
          return seat
        }),
      ),
    )
  const seats = burst('default')
  const [lobby_id] = await platform.startingLobbies(game)
  await until('all to have a seat', async () => (await game.seatsTaken()) === 30)
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id, total_player_count: 30 }])
  assert.equal(answered, 0)
  await platform.makeReady(game, lobby_id!)
  assert.ok(sameLobby(await seats))
  assert.equal(new Set((await seats).map((seat) => seat.player.token)).size, 30)

  const spread = burst('small')
  const lobbies = await platform.startingLobbies(game, 3)
  await until('all to have a seat', async () => (await game.seatsTaken()) === 60)
  assert.equal(lobbies.length, 3)
  for (const id of lobbies) await platform.makeReady(game, id)
  const counts = Object.groupBy(await spread, (seat) => seat.lobby.lobby_id)
  assert.deepEqual(
    Object.values(counts).map((of_lobby) => of_lobby?.length),
    [10, 10, 10],
  )
})

test('a find whose lobby dies while it starts gets a seat in another one', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const seat = game.find()
  const [first] = await platform.startingLobbies(game)
  await platform.endRun(first!)
  assert.equal(await platform.stopReasonOf(first!), 'exited')
  const [second] = await platform.startingLobbies(game)
  assert.notEqual(second, first)
  await platform.makeReady(game, second!)
  assert.equal((await seat).lobby.lobby_id, second)
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id: second, total_player_count: 1 }])
})

test('a find gives up when every lobby it waits for dies, and keeps no seat', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ matchmaker: { game_modes: { default: { ready_deadline_ms: 5_000 } } } })
  const failure = failureOf(game.find())
  for (let attempt = 0; attempt < 3; attempt++) {
    const [lobby_id] = await platform.startingLobbies(game)
    platform.advance(5_000)
    assert.equal(await platform.stopReasonOf(lobby_id!), 'never_ready')
  }
  const error = await failure
  assert.deepEqual([error.status, error.code], [400, 'MATCHMAKER_LOBBY_STOPPED'])
  const { lobby_id, ...end } = error.metadata
  assert.deepEqual(end, { exit_reason: 'never_ready', exit_code: -1 })
  assert.equal(await platform.stopReasonOf(String(lobby_id)), 'never_ready')
  assert.match(error.message, /its server was not ready in time\..*"muster explain [0-9a-f-]+"/)
  assert.deepEqual(await game.listedLobbies(), [])
})

test('a find waits 50 s for a lobby to start and no longer, then its seat is free', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const impatient = failureOf(game.find())
  const [lobby_id] = await platform.startingLobbies(game)
  platform.advance(1_000)
  const patient = game.find()
  await until('both to have a seat', async () => (await game.seatsTaken()) === 2)
  platform.advance(49_000)
  const error = await impatient
  assert.equal(error.code, 'MATCHMAKER_LOBBY_NOT_STARTED')
  assert.equal(error.status, 503)
  assert.equal(error.retry_after_s, 1)
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id, total_player_count: 1 }])
  await platform.makeReady(game, lobby_id!)
  assert.equal((await patient).lobby.lobby_id, lobby_id)
})

test('a find that only a silent node could serve says so, and names the node to a backend only', async (t) => {
  const platform = await startPlatform(t)
  const { pool, listener, db } = platform.ctx
  await pool.query(
    `insert into runners (runner_id, regions, disk_free_bytes, port_count, ts)
     values ('attic', '{local}', 1e12, 1000, now() - interval '1 minute')`,
  )
  await listener.notify('nodes', 'attic')
  // Until the matchmaker knows the node, a lobby gets none.
  const player = await until('a lobby is on the node', async () => {
    const game = await platform.game()
    const failure = failureOf(game.find())
    const [lobby_id] = await platform.startingLobbies(game)
    const lobby = await db.selectFrom('lobbies').select('node_id').where('lobby_id', '=', lobby_id!).executeTakeFirst()
    if (lobby?.node_id !== 'attic') return null
    const token = (await platform.client.call(createCloudToken, { params: { game_id: game.game_id } })).token
    const body = { game_modes: ['default'], namespace_id: game.namespace_id, clients: [{ address: '198.51.100.7' }] }
    const backend = failureOf(platform.as(token).call(findLobby, { body }))
    await until('both have a seat', async () => (await game.seatsTaken()) === 2)
    return { failure, backend }
  })
  platform.advance(50_000)
  const error = await player.failure
  assert.equal(error.code, 'MATCHMAKER_LOBBY_NOT_STARTED')
  assert.match(error.message, / Its node does not report, and no other node is open/)
  assert.doesNotMatch(error.message, /attic/)
  assert.match((await player.backend).message, / Its node attic does not report/)
})

test('a client that hangs up while its lobby starts gives the seat back at once', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const game = await platform.game()
  const ways: Record<string, (signal: AbortSignal) => Promise<unknown>> = {
    'without a key': (signal) => game.find({}, { signal }),
    'with a key': (signal) => game.find({}, { signal, ...withKey() }),
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
    await until(`the seat of a caller ${way}`, async () => (await game.seatsTaken()) === 1)
    caller.abort()
    await end
    await until(`the seat of a caller ${way} to be free`, async () => (await game.seatsTaken()) === 0)
  }
  assert.equal((await game.listedLobbies()).length, 1)
})

test('a seat is kept for a client that still waits for it with the same key, whichever call hangs up', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ limits: MANY })
  for (const leaver of [0, 1]) {
    const newest_before = await newestPlayer(platform)
    const key = withKey()
    const callers = [new AbortController(), new AbortController()]
    const calls: Promise<Seat>[] = []
    const taken = await game.seatsTaken()
    for (const { signal } of callers) {
      calls.push(game.find({}, { ...key, signal }))
      await until('the seat', async () => (await game.seatsTaken()) === taken + 1)
      await heard(game)
    }
    // The seat is counted before it is written.
    const player_id = await until('the player to be written', async () => {
      const newest = await newestPlayer(platform)
      return newest === newest_before ? null : newest
    })
    const [gone, waiting] = leaver === 0 ? calls : calls.toReversed()
    const end = assert.rejects(gone!, { name: 'AbortError' })
    callers[leaver]!.abort()
    await end
    // Another client hangs up too: once its seat is free, the seat of the first would be.
    await hangUp(game)
    assert.equal(await game.seatsTaken(), taken + 1)
    const [lobby_id] = await platform.startingLobbies(game)
    await platform.makeReady(game, lobby_id!)
    const seat = await waiting!
    assert.equal(platform.playerIdOf(seat), player_id)
    const server = platform.serverOf(game, lobby_id!)
    await server.call(playerConnected, { body: { player_token: seat.player.token } })
    await platform.endRun(lobby_id!)
    await platform.stopReasonOf(lobby_id!)
  }
})

test('a seat that was answered is not lost to a repetition that hangs up', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ limits: MANY })
  const key = withKey()
  const seat = await game.find({}, key)
  for (let repetition = 0; repetition < 20; repetition++) {
    // Changes of others are being written while the repetition is read: it is answered later, with its client gone.
    const others = [game.find(), game.find(), game.find()]
    await sendAndLeave(platform, game, key.headers)
    await Promise.all(others)
  }
  await heard(game)
  assert.equal(await game.seatsTaken(), 61)
  const server = platform.serverOf(game, seat.lobby.lobby_id)
  await server.call(playerConnected, { body: { player_token: seat.player.token } })
})

test('a seat does not expire while its lobby starts', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ matchmaker: { game_modes: { default: { player_deadline_ms: 1_000 } } } })
  const answer = game.find()
  const [lobby_id] = await platform.startingLobbies(game)
  const seats = await platform.ctx.db.selectFrom('players').select('player_id').execute()
  platform.advance(30_000)
  await heard(game)
  await platform.makeReady(game, lobby_id!)
  assert.equal(platform.playerIdOf(await answer), seats[0]?.player_id)
})

test('a client that waits for a lobby when the matchmaker stops is asked at once to come again', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const failure = failureOf(game.find())
  await platform.startingLobbies(game)
  const begin_ms = performance.now()
  const closing = platform.close()
  const error = await failure
  assert.equal(error.code, 'MATCHMAKER_LOBBY_NOT_STARTED')
  assert.equal(error.retry_after_s, 1)
  await closing
  assert.ok(performance.now() - begin_ms < 4_000, 'the connection was closed with its answer, and not cut off')
})

/** Round trips after which what was sent before has been read and carried out. */
async function heard(game: TestGame): Promise<void> {
  for (let trip = 0; trip < 3; trip++) await game.player.call(listLobbies, {})
}

async function newestPlayer({ ctx }: Platform): Promise<string | undefined> {
  const players = ctx.db.selectFrom('players').orderBy('create_ts', 'desc').select('player_id')
  return (await players.limit(1).executeTakeFirst())?.player_id
}

/** Takes a seat, hangs up, and waits until it is free: whatever hung up before has been noticed then. */
async function hangUp(game: TestGame): Promise<void> {
  const taken = await game.seatsTaken()
  const caller = new AbortController()
  const end = assert.rejects(game.find({}, { signal: caller.signal }), { name: 'AbortError' })
  await until('one more seat', async () => (await game.seatsTaken()) === taken + 1)
  caller.abort()
  await end
  await until('one seat less', async () => (await game.seatsTaken()) <= taken)
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
