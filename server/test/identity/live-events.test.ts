// Events by WebSocket, through the edge as players reach them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { createParty, findLobby, getParty, joinParty, setupIdentity } from '@muster/contract'
import { WebSocket } from 'ws'
import { type Platform, startPlatform, type TestGame } from '../platform.ts'

type News = { events: { event_id: string; kind: object }[]; watch: { index: string } }

/** Reads what a socket is told, in order. */
function listen(url: string, options: { origin?: string } = {}) {
  const socket = new WebSocket(url, options)
  const told: News[] = []
  let wake = Promise.withResolvers<void>()
  socket.on('message', (data) => {
    told.push(JSON.parse(String(data)) as News)
    wake.resolve()
    wake = Promise.withResolvers()
  })
  socket.on('error', () => {})
  const closed = once(socket, 'close').then(([code]) => code as number)
  const refused = new Promise<number>((resolve) =>
    socket.on('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0)),
  )
  return {
    socket,
    closed,
    refused,
    async next(): Promise<News> {
      while (told.length === 0) await wake.promise
      return told.shift()!
    },
  }
}

const live = (platform: Platform, token: string, more = '') =>
  `${platform.edge_url.replace('http', 'ws')}/identity/events/live?identity_token=${encodeURIComponent(token)}${more}`

async function world(t: TestContext) {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  platform.playServers()
  const game = await platform.game({ limits: { max_players_per_client: 100 } })
  return { platform, game, token: await tokenOf(game) }
}

async function tokenOf(game: TestGame): Promise<string> {
  return (await game.player.call(setupIdentity, { body: {} })).identity_token
}

test('a socket is told what a long poll would be answered, and goes on behind the index that it is opened with', async (t) => {
  const { platform, game, token } = await world(t)
  const leader = platform.as(token)
  const other = await tokenOf(game)
  const { party } = await leader.call(createParty, {})
  await platform.as(other).call(joinParty, { body: { code: party.code } })
  const origin = new URL(`http://${game.name_id}.cdn.localhost:${new URL(platform.edge_url).port}`).origin
  const listening = listen(live(platform, other), { origin })
  const first = await listening.next()
  assert.deepEqual(first.events, [])
  assert.equal(listening.socket.extensions, '', 'nothing is packed')
  const find = () => leader.call(findLobby, { body: { game_modes: ['default'], party: true } })
  const [one, two] = [await find(), await find()]
  const told = [(await listening.next()).events, (await listening.next()).events].flat()
  assert.deepEqual(
    told.map(({ kind }) => (kind as { matchmaker_lobby_join: typeof one }).matchmaker_lobby_join.lobby.lobby_id),
    [one.lobby.lobby_id, two.lobby.lobby_id],
  )
  // Without the edge, which ends before the matchmaker does.
  const direct = live(platform, other, `&watch_index=${first.watch.index}`).replace(
    /:\d+/,
    `:${new URL(platform.matchmaker_url).port}`,
  )
  const again = listen(direct)
  assert.deepEqual((await again.next()).events, told)
  assert.equal((await leader.call(getParty, {})).party.members.length, 2)
  await platform.close()
  assert.equal(await again.closed, 1001)
})

test('who may not listen is refused before there is a socket; who says too much loses it', async (t) => {
  const { platform, game, token } = await world(t)
  const other_game = await platform.game()
  const refused = async (url: string, origin?: string) => listen(url, origin === undefined ? {} : { origin }).refused
  assert.equal(await refused(live(platform, 'nonsense')), 401)
  assert.equal(await refused(live(platform, game.public_token)), 403)
  assert.equal(await refused(live(platform, token, '&watch_index=x')), 400)
  const port = new URL(platform.edge_url).port
  for (const origin of ['http://evil.example', `http://${other_game.name_id}.cdn.localhost:${port}`]) {
    assert.equal(await refused(live(platform, token), origin), 403)
  }
  const elsewhere = live(platform, token).replace('/identity/events/live', '/matchmaker/lobbies/list')
  assert.notEqual(await refused(elsewhere), 101)

  const long = listen(live(platform, token))
  await long.next()
  long.socket.send('x'.repeat(2_000))
  assert.equal(await long.closed, 1009)
  const talkative = listen(live(platform, token))
  await talkative.next()
  for (let count = 0; count < 40; count++) talkative.socket.send('hello')
  assert.equal(await talkative.closed, 1008)
  const pinging = listen(live(platform, token))
  await pinging.next()
  for (let count = 0; count < 40; count++) pinging.socket.ping()
  assert.equal(await pinging.closed, 1008)

  // As many as an identity may have; one more is to try again.
  const many = Array.from({ length: 8 }, () => listen(live(platform, token)))
  for (const one of many) await one.next()
  assert.equal(await listen(live(platform, token)).closed, 1013)
  for (const one of many) one.socket.terminate()
})
