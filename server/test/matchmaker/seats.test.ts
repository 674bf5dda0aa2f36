import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { test } from 'node:test'
import { findLobby, playerConnected, playerDisconnected } from '@musterhost/contract'
import { sql } from 'kysely'
import { LONG_MS } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import type { Seat } from '../support/platform-verbs.ts'
import { failureOf } from '../support/refusal.ts'

const CROWD = 5_000
/** Requests that are sent over one connection without waiting: a descriptor for each would be more than many machines give. */
const PIPELINED = 100

test('a find starts a lobby, and the next one gets the seat beside it', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const find = () => game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const first = await find()
  const second = await find()
  assert.equal(second.lobby.lobby_id, first.lobby.lobby_id)
  assert.notEqual(second.player.token, first.player.token)
  const lobby = platform.as(platform.lobbyToken({ ...first.lobby, namespace_id: game.namespace_id }))
  await lobby.call(playerConnected, { body: { player_token: first.player.token } })
  await assert.rejects(lobby.call(playerConnected, { body: { player_token: first.player.token } }), {
    code: 'MATCHMAKER_PLAYER_ALREADY_CONNECTED',
  })
  await lobby.call(playerDisconnected, { body: { player_token: first.player.token } })
})

/** All are under way at once; how many players each lobby has is asked meanwhile, of another connection to the database. */
async function rush(platform: Platform, game: TestGame, prevent_auto_create_lobby: boolean) {
  let is_over = false
  let looks = 0
  const look = async (): Promise<void> => {
    while (!is_over) {
      const { rows } = await sql<{ seats: number; seats_max: number; lobbies: number }>`
        select coalesce(max(taken), 0)::int as seats, coalesce(min(max_players_normal), 0)::int as seats_max,
          count(*)::int as lobbies
        from (select lobby_id, max_players_normal, (select count(*) from players
                where players.lobby_id = lobbies.lobby_id and remove_ts is null) as taken
              from lobbies where namespace_id = ${game.namespace_id} and stop_ts is null) as counted
      `.execute(platform.ctx.db)
      const { seats, seats_max, lobbies } = rows[0]!
      assert.ok(seats <= seats_max && lobbies <= 7, `${seats} of ${seats_max} in ${lobbies}`)
      looks++
    }
  }
  const looking = look()
  const connections = Array.from({ length: CROWD / PIPELINED }, () =>
    pipelined(new URL(platform.matchmaker_url), PIPELINED, {
      path: findLobby.path,
      token: game.public_token,
      body: JSON.stringify({ game_modes: ['default'], prevent_auto_create_lobby }),
    }),
  )
  const outcomes = (await Promise.all(connections)).flat().map((body) => {
    const answer = JSON.parse(body) as Seat & { code?: string }
    return answer.code ?? { token: answer.player.token, lobby_id: answer.lobby.lobby_id }
  })
  assert.equal(outcomes.length, CROWD)
  is_over = true
  await looking
  assert.ok(looks > 0)
  const seats = outcomes.filter((outcome) => typeof outcome === 'object')
  assert.equal(new Set(seats.map((seat) => seat.token)).size, seats.length)
  const codes = Object.groupBy(
    outcomes.filter((outcome) => typeof outcome === 'string'),
    (code) => code,
  )
  const refusals = Object.fromEntries(Object.entries(codes).map(([code, all]) => [code, all!.length]))
  return { lobbies: new Set(seats.map((seat) => seat.lobby_id)).size, seats: seats.length, refusals }
}

const gameOf = (platform: Platform, max_players: number, lobby_count_max: number): Promise<TestGame> =>
  platform.game({
    matchmaker: { game_modes: { default: { max_players, idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } } },
    limits: { max_players_per_client: 1_000_000, lobby_count_max },
  })

test('of 5,000 finds at once for 100 seats exactly 100 get one', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await gameOf(platform, 100, 1)
  const first = await game.find()
  const { seats, refusals } = await rush(platform, game, true)
  assert.deepEqual([seats, refusals], [99, { MATCHMAKER_NO_AVAILABLE_LOBBIES: CROWD - 99 }])
  assert.deepEqual(await game.listedLobbies(), [{ lobby_id: first.lobby.lobby_id, total_player_count: 100 }])
})

test('of 5,000 finds at once that may start seven lobbies for ten, exactly 70 get a seat, and there are never eight', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await gameOf(platform, 10, 7)
  const { lobbies, seats, refusals } = await rush(platform, game, false)
  assert.deepEqual([lobbies, seats, refusals], [7, 70, { MATCHMAKER_TOO_MANY_LOBBIES: CROWD - 70 }])
})

test('both players of a lobby for two get in, also when one enters while the other is being let in', async (t) => {
  const ROUNDS = 100
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await gameOf(platform, 2, 1_000)
  for (let round = 0; round < ROUNDS; round++) {
    const first = await game.find()
    const { lobby_id } = first.lobby
    const server = platform.serverOf(game, lobby_id)
    const enter = (seat: Seat) => server.call(playerConnected, { body: { player_token: seat.player.token } })
    const [second] =
      round % 2 === 0
        ? await Promise.all([game.join(lobby_id), enter(first)])
        : (await Promise.all([enter(first), game.join(lobby_id)])).toReversed()
    await enter(second as Seat)
    assert.equal((await failureOf(game.join(lobby_id))).code, 'MATCHMAKER_LOBBY_FULL')
  }
  assert.equal(new Set((await game.listedLobbies()).map(({ total_player_count }) => total_player_count)).size, 1)
  assert.equal(await game.seatsTaken(), 2 * ROUNDS)
})

test('of 1,000 calls with one player token exactly one consumes it', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const seat = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const lobby = platform.as(platform.lobbyToken({ ...seat.lobby, namespace_id: game.namespace_id }))
  const key = randomUUID()
  const connect = (headers: Record<string, string>) =>
    lobby.call(playerConnected, { body: { player_token: seat.player.token }, headers }).then(
      () => 'connected',
      (error: { code: string }) => error.code,
    )
  const outcomes = await Promise.all(Array.from({ length: 1_000 }, () => connect({})))
  assert.equal(outcomes.filter((outcome) => outcome === 'connected').length, 1)
  assert.equal(outcomes.filter((outcome) => outcome === 'MATCHMAKER_PLAYER_ALREADY_CONNECTED').length, 999)
  assert.equal(await connect({ 'idempotency-key': key }), 'MATCHMAKER_PLAYER_ALREADY_CONNECTED')

  const other = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const connectOther = () =>
    lobby.call(playerConnected, {
      body: { player_token: other.player.token },
      headers: { 'idempotency-key': key },
    })
  assert.deepEqual(await Promise.all([connectOther(), connectOther(), connectOther()]), [{}, {}, {}])
})

test('the same Idempotency-Key gets the same seat, word for word', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game()
  const headers = { 'idempotency-key': randomUUID() }
  const find = () => game.player.call(findLobby, { body: { game_modes: ['default'] }, headers })
  const [first, second] = await Promise.all([find(), find()])
  assert.deepEqual(second, first)
  assert.deepEqual(await find(), first)
})

/** The bodies of the answers, in order. */
function pipelined(
  { hostname, port }: URL,
  count: number,
  { path, token, body }: { path: string; token: string; body: string },
): Promise<string[]> {
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${hostname}`,
    `authorization: Bearer ${token}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  const { promise, resolve, reject } = Promise.withResolvers<string[]>()
  const bodies: string[] = []
  let bytes = Buffer.alloc(0)
  const socket = connect({ host: hostname, port: Number(port) })
  socket.on('error', reject)
  socket.on('close', () => reject(new Error(`the connection ended after ${bodies.length} answers`)))
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    for (;;) {
      const end = bytes.indexOf('\r\n\r\n')
      if (end === -1) return
      const length = Number(/^content-length: (\d+)/im.exec(bytes.subarray(0, end).toString('latin1'))?.[1])
      const next = end + 4 + length
      if (bytes.length < next) return
      bodies.push(bytes.subarray(end + 4, next).toString('utf8'))
      bytes = bytes.subarray(next)
      if (bodies.length < count) continue
      resolve(bodies)
      socket.destroy()
      return
    }
  })
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`.repeat(count))
  return promise
}
