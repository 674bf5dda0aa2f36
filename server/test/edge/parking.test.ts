// Requests that wait at a role over a trunk, through a real edge, matchmaker and api. They hold a place of the pool `parked`.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { findLobby, getKvEntry, playerConnected, putKvEntry } from '@musterhost/contract'
import { LONG_MS } from '../http/steps.ts'
import { evenShares, gameIn, startNodes } from '../matchmaker/nodes.ts'
import { freePorts } from '../support/free-ports.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { type HttpResponse, startSmallEdge } from './pools.ts'

async function world(t: TestContext) {
  const platform = await startPlatform(t)
  const game = await platform.game({
    matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS } } } as never,
    limits: { max_players_per_client: 1_000 },
  })
  const edge = await startSmallEdge(t, platform)
  // The first request for each role opens its trunk.
  await edge.ask({ client: 0, path: '/matchmaker/lobbies/list', token: game.public_token })
  await edge.ask({ client: 0, path: '/cloud/games', token: platform.token })
  const parked = (role: string, count: number) =>
    until(`${count} are parked at ${role}`, async () => (await edge.places())[`${role} parked`] === count)
  const find = (client: number, signal?: AbortSignal): Promise<HttpResponse> =>
    edge.ask({
      ...{ client, method: 'POST', path: findLobby.path, token: game.public_token },
      body: { game_modes: ['default'] },
      ...(signal && { signal }),
    })
  return { platform, game, edge, find, parked }
}

const codeOf = ({ body }: HttpResponse): string => (JSON.parse(body) as { code: string }).code

test('finds that wait for a lobby leave their pool, and get their seats once it is ready', async (t) => {
  const { platform, game, edge, find, parked } = await world(t)
  const finds = Array.from({ length: 20 }, (_, client) => find(client))
  const [lobby_id] = await platform.startingLobbies(game)
  await parked('matchmaker', 20)
  assert.equal((await edge.places())['matchmaker seat'], 0)
  await platform.makeReady(game, lobby_id!)
  const responses = await Promise.all(finds)
  const tokens = new Set<string>()
  for (const { status, headers, body } of responses) {
    assert.equal(status, 200, body)
    assert.match(String(headers['x-ray-id']), /^[0-9a-f-]{36}$/)
    assert.deepEqual(
      Object.keys(headers).filter((name) => name.startsWith('x-muster')),
      [],
    )
    tokens.add((JSON.parse(body) as { player: { token: string } }).player.token)
  }
  assert.equal(tokens.size, 20)
  const server = platform.serverOf(game, lobby_id!)
  for (const player_token of tokens) await server.call(playerConnected, { body: { player_token } })
  await parked('matchmaker', 0)

  // A response that did not wait has the same headers.
  const at_once = await find(30)
  const { date: _, 'x-ray-id': __, 'content-length': ___, ...others } = at_once.headers
  for (const name of Object.keys(others)) assert.deepEqual(responses[0]!.headers[name], others[name], name)
})

test('a parked find whose client disconnects frees its seat at once', async (t) => {
  const { platform, game, find, parked } = await world(t)
  const hanging_up = new AbortController()
  const gone = find(1, hanging_up.signal)
  const stays = find(2)
  const [lobby_id] = await platform.startingLobbies(game)
  await parked('matchmaker', 2)
  hanging_up.abort()
  await assert.rejects(gone)
  await parked('matchmaker', 1)
  const open = () =>
    platform.ctx.db
      .selectFrom('players')
      .select('player_id')
      .where('lobby_id', '=', lobby_id!)
      .where('remove_ts', 'is', null)
      .execute()
  await until('the seat is free', async () => (await open()).length === 1)
  await platform.makeReady(game, lobby_id!)
  assert.equal((await stays).status, 200)
  assert.equal(await game.seatsTaken(), 1)
})

test('a parked request that fails gets the same refusal as one that is not parked', async (t) => {
  const { platform, game, find, parked } = await world(t)
  const finding = find(1)
  await platform.startingLobbies(game)
  await parked('matchmaker', 1)
  platform.advance(60_000)
  const response = await finding
  assert.deepEqual([response.status, codeOf(response)], [503, 'MATCHMAKER_LOBBY_NOT_STARTED'])
  assert.equal(response.headers['retry-after'], '1')
})

test('the response to a parked watch arrives whole, however large the value is', async (t) => {
  const { platform, game, edge, parked } = await world(t)
  const writer = platform.client
  const { namespace_id } = game
  const path = `${getKvEntry.path}?key=a&namespace_id=${namespace_id}`
  const first = await edge.ask({ client: 1, path, token: platform.token })
  assert.equal(first.status, 200, first.body)
  const { index } = (JSON.parse(first.body) as { watch: { index: string } }).watch
  const watching = Array.from({ length: 5 }, (_, client) =>
    edge.ask({ client, path: `${path}&watch_index=${encodeURIComponent(index)}`, token: platform.token }),
  )
  await parked('api', 5)
  const value = 'x'.repeat(200_000)
  await writer.call(putKvEntry, { body: { namespace_id, key: 'a', value } })
  for (const { status, body } of await Promise.all(watching)) {
    assert.equal(status, 200)
    assert.equal((JSON.parse(body) as { value: string }).value, value)
  }
  await parked('api', 0)
})

test('parked requests are refused when their role stops', async (t) => {
  const { platform, game, find, parked } = await world(t)
  const finds = Array.from({ length: 3 }, (_, client) => find(client))
  await platform.startingLobbies(game)
  await parked('matchmaker', 3)
  await platform.close()
  for (const response of await Promise.all(finds)) assert.equal(response.status, 503, response.body)
})

test('the first request for a role may wait too', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ limits: { max_players_per_client: 1_000 } })
  const edge = await startSmallEdge(t, platform)
  const finding = edge.ask({
    ...{ client: 1, method: 'POST', path: findLobby.path, token: game.public_token },
    body: { game_modes: ['default'] },
  })
  const [lobby_id] = await platform.startingLobbies(game)
  await until('the find is parked', async () => (await edge.places())['matchmaker parked'] === 1)
  await platform.makeReady(game, lobby_id!)
  assert.equal((await finding).status, 200)
})

test('finds that wait at a matchmaker that has come back to its address get their seats', async (t) => {
  const nodes = await startNodes(t)
  const { first } = nodes
  const edge = await startSmallEdge(t, first)
  const [port] = (await freePorts(1)) as [number]
  const env = { MUSTER_MATCHMAKER_PORT: String(port), MUSTER_NODE: 'second' }
  const matchmaker = { game_modes: { default: { idle_grace_ms: LONG_MS } } } as never
  for (const time of ['first', 'second']) {
    const second = await nodes.join({ env })
    const shares = await evenShares([first, second])
    const game = await gameIn(first, shares.get('second')!, { matchmaker })
    const ask = () => edge.ask({ client: 0, path: '/matchmaker/lobbies/list', token: game.public_token })
    await until('the edge asks the second matchmaker', async () => (await ask()).status === 200)
    const asked = { client: 1, method: 'POST', path: findLobby.path, token: game.public_token }
    const found = edge.ask({ ...asked, body: { game_modes: ['default'] } })
    const [lobby_id] = await first.startingLobbies(game)
    await until('the find is parked', async () => (await edge.places())['matchmaker parked'] === 1)
    await first.makeReady(game, lobby_id!)
    const { status, body } = await found
    assert.equal(status, 200, `the ${time} time: ${body}`)
    await second.close()
    await evenShares([first])
    await until(
      'the edge knows one matchmaker',
      async () => (await first.ctx.db.selectFrom('matchmakers').select('writer').execute()).length === 1,
    )
  }
})
