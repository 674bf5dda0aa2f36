// Servers that speak the protocol of another platform, on the real platform: they call nothing of this one.
import assert from 'node:assert'
import { type TestContext, test } from 'node:test'
import {
  findLobby,
  getLobbyState,
  joinLobby,
  listMatchmakerLobbyPlayers,
  type ResponseOf,
  type VersionConfig,
} from '@musterhost/contract'
import { lacking } from '../run/optional-programs.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { NETWORK_NEEDS } from './network-world.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>
type Seat = ResponseOf<typeof findLobby>
type GameServer = {
  object_meta: { uid: string; labels: Record<string, string> }
  status: { state: string; address: string; ports: { name: string; port: number }[] }
}

const LONG_MS = 3_600_000

/** By the SDK's REST interface. Its players come and go by GET /come?id= and /go?id=, and GET / returns what it knows. */
const AGONES_SERVER = `
  const { createServer } = process.getBuiltinModule('node:http')
  const sdk = async (method, path, body) => {
    const address = 'http://127.0.0.1:' + process.env.AGONES_SDK_HTTP_PORT + path
    const response = await fetch(address, { method, headers: { 'content-type': 'application/json' }, body: body && JSON.stringify(body) })
    if (!response.ok) throw new Error(path + ' ' + response.status + ' ' + await response.text())
    return response.json()
  }
  const server = createServer(async (request, response) => {
    try {
      const { pathname, searchParams } = new URL(request.url, 'http://game')
      const value = searchParams.get('id')
      if (pathname === '/come') await sdk('POST', '/v1beta1/lists/players:addValue', { value })
      if (pathname === '/go') await sdk('POST', '/v1beta1/lists/players:removeValue', { value })
      if (pathname === '/shutdown') await sdk('POST', '/shutdown', {})
      response.end(JSON.stringify(await sdk('GET', '/gameserver')))
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  })
  server.listen(process.env.PORT, process.env.HOST, async () => {
    setInterval(() => sdk('POST', '/health', {}).catch(console.error), 1000)
    await sdk('PUT', '/metadata/label', { key: 'map', value: 'cliff' })
    await sdk('POST', '/ready', {})
  })
  process.on('SIGTERM', () => process.exit(0))`

async function startGame(t: TestContext, server: string, docker: Docker, env: Record<string, string>) {
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,runner,edge',
    has_sandboxes: true,
    env: { MUSTER_LOG_LEVEL: 'warn', ...env },
  })
  const game = await platform.game({
    files: { 'server.mjs': server },
    docker: { args: ['node', 'server.mjs'], ports: { game: { protocol: 'http' } }, ...docker },
    matchmaker: { game_modes: { default: { max_players: 4, idle_grace_ms: LONG_MS } } },
    limits: { max_players_per_client: 1_000 },
  })
  return { platform, game }
}

const find = (game: TestGame): Promise<Seat> => game.player.call(findLobby, { body: { game_modes: ['default'] } })

async function ask(seat: Seat, path: string): Promise<GameServer> {
  const response = await fetch(`${seat.ports.game!.url}${path}`)
  const text = await response.text()
  assert.strictEqual(response.status, 200, text)
  return JSON.parse(text) as GameServer
}

/** Player ids by whether the book says that they are connected. */
async function seatsOf(platform: Platform, game: TestGame, lobby_id: string): Promise<Map<string, boolean>> {
  const { players } = await platform.client.call(listMatchmakerLobbyPlayers, {
    params: { game_id: game.game_id, lobby_id },
  })
  return new Map(players.map(({ player_id, connect_ts }) => [player_id, connect_ts !== undefined]))
}

for (const network of ['auto', 'machine'] as const) {
  const skip = (network === 'auto' && lacking(...NETWORK_NEEDS)) || false
  test(`two players find, play and leave a server that speaks Agones (${network})`, { skip }, async (t) => {
    const env: Record<string, string> = network === 'machine' ? { MUSTER_LOBBY_NETWORK: 'machine' } : {}
    const docker: Docker = { protocol: 'agones', protocol_options: { lists: { players: { capacity: 4 } } } }
    const { platform, game } = await startGame(t, AGONES_SERVER, docker, env)
    const one = await find(game)
    const two = await game.player.call(joinLobby, { body: { lobby_id: one.lobby.lobby_id } })
    const { lobby_id } = one.lobby
    const [first, second] = [platform.playerIdOf(one), platform.playerIdOf(two)]
    const known = await until('the server sees that it is allocated', async () => {
      const seen = await ask(one, '/')
      return seen.status.state === 'Allocated' ? seen : null
    })
    assert.strictEqual(known.object_meta.uid, lobby_id)
    assert.strictEqual(known.object_meta.labels['agones.dev/sdk-map'], 'cliff')
    await ask(one, `/come?id=${first}`)
    await ask(two, `/come?id=${second}`)
    await until('both are connected', async () => {
      const seats = await seatsOf(platform, game, lobby_id)
      return seats.get(first) === true && seats.get(second) === true
    })
    await ask(one, `/go?id=${first}`)
    await until('the seat is given back', async () => !(await seatsOf(platform, game, lobby_id)).has(first))
    assert.strictEqual((await seatsOf(platform, game, lobby_id)).get(second), true)
    const state = await game.player.call(getLobbyState, { params: { lobby_id } })
    assert.match(JSON.stringify(state), /"agones.dev\/sdk-map":"cliff"/)
    await ask(one, '/shutdown')
    assert.strictEqual(await platform.stopReasonOf(lobby_id), 'requested')
  })
}
