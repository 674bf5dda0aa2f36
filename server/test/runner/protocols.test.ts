// Servers that speak the protocol of another platform, on the real platform: they call nothing of this one.
import assert from 'node:assert'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import {
  explainRay,
  findLobby,
  getLobbyState,
  getNamespaceLobby,
  joinLobby,
  listMatchmakerLobbyPlayers,
  type ResponseOf,
  type VersionConfig,
} from '@musterhost/contract'
import { lobbySentences } from '@musterhost/contract/explanation-words'
import { REMEMBER_EVERY_MS } from '../../src/runner/protocols/attached-lobby.ts'
import { gatewayFolder, readState } from '../../src/runner/protocols/attachments.ts'
import { lacking } from '../run/optional-programs.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { NETWORK_NEEDS } from './network-world.ts'
import { AGONES_IN_PYTHON, PROTOCOL_SERVERS } from './protocol-servers.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>
type Seat = ResponseOf<typeof findLobby>

const run = promisify(execFile)
const LONG_MS = 3_600_000

const DOCKERS: Record<string, Docker> = {
  agones: { protocol: 'agones', protocol_options: { lists: { players: { capacity: 4 } } } },
  gsdk: { protocol: 'gsdk' },
  'gsdk-strict': { protocol: 'gsdk', protocol_options: { end_unhealthy: true } },
  gamelift: { protocol: 'gamelift' },
  multiplay: { protocol: 'multiplay', seats: 'edge' },
  'agones-edge': { protocol: 'agones', seats: 'edge', protocol_options: { lists: { players: {} } } },
}

class World {
  readonly platform: Platform
  readonly game: TestGame

  static async open(t: TestContext, env: Record<string, string>): Promise<World> {
    const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true, env })
    const modes = Object.entries(DOCKERS).map(([name, docker]) => {
      const args = ['node', `${docker.protocol}.mjs`]
      return [name, { max_players: 4, idle_grace_ms: LONG_MS, docker: { ...docker, args } }]
    })
    const game = await platform.game({
      files: PROTOCOL_SERVERS,
      docker: { args: ['node', 'game.mjs'], ports: { game: { protocol: 'http' } } },
      matchmaker: { game_modes: Object.fromEntries(modes) },
      limits: { max_players_per_client: 1_000 },
    })
    return new World(platform, game)
  }

  constructor(platform: Platform, game: TestGame) {
    this.platform = platform
    this.game = game
  }

  /** Two players in one lobby. */
  async pair(game_mode: string): Promise<{ lobby_id: string; seats: [Seat, Seat]; ids: [string, string] }> {
    const one = await this.game.player.call(findLobby, { body: { game_modes: [game_mode] } })
    const { lobby_id } = one.lobby
    const two = await this.game.player.call(joinLobby, { body: { lobby_id } })
    return { lobby_id, seats: [one, two], ids: [this.platform.playerIdOf(one), this.platform.playerIdOf(two)] }
  }

  /** What the server knows, after the call. */
  async ask<Known>(seat: Seat, path: string): Promise<Known> {
    const response = await fetch(`${seat.ports.game!.url}${path}`)
    const text = await response.text()
    assert.strictEqual(response.status, 200, text)
    return JSON.parse(text) as Known
  }

  /** Whether each player with a seat is connected. */
  async connections(lobby_id: string): Promise<Map<string, boolean>> {
    const params = { game_id: this.game.game_id, lobby_id }
    const { players } = await this.platform.client.call(listMatchmakerLobbyPlayers, { params })
    return new Map(players.map(({ player_id, connect_ts }) => [player_id, connect_ts !== undefined]))
  }

  /** Both players come, and the first one leaves. `names`: how they name themselves to the server. Default: by their ids. */
  async comeAndGo(
    lobby_id: string,
    [one, two]: [Seat, Seat],
    [first, second]: [string, string],
    names = [first, second],
  ): Promise<void> {
    await this.ask(one, `/come?id=${names[0]}`)
    await this.ask(two, `/come?id=${names[1]}`)
    await until('both players are connected', async () => {
      const seats = await this.connections(lobby_id)
      return seats.get(first) === true && seats.get(second) === true
    })
    await this.ask(one, `/go?id=${names[0]}`)
    await until('the seat is given back', async () => !(await this.connections(lobby_id)).has(first))
    assert.strictEqual((await this.connections(lobby_id)).get(second), true)
  }
}

for (const network of ['auto', 'machine'] as const) {
  const skip = (network === 'auto' && lacking(...NETWORK_NEEDS)) || false
  test(`players find, play and leave servers of four other platforms (${network})`, { skip }, async (t) => {
    const env: Record<string, string> = network === 'machine' ? { MUSTER_LOBBY_NETWORK: 'machine' } : {}
    const world = await World.open(t, env)

    await t.test('Agones: Allocated with the first seat, players by a list, shutdown', async () => {
      const { lobby_id, seats, ids } = await world.pair('agones')
      type Known = { object_meta: { uid: string; labels: Record<string, string> }; status: { state: string } }
      const known = await until('the server sees that it is allocated', async () => {
        const seen = await world.ask<Known>(seats[0], '/')
        return seen.status.state === 'Allocated' ? seen : null
      })
      assert.strictEqual(known.object_meta.uid, lobby_id)
      assert.strictEqual(known.object_meta.labels['agones.dev/sdk-map'], 'cliff')
      // A server that receives the player's token, and no id, lists the token.
      await world.comeAndGo(lobby_id, seats, ids, [ids[0], seats[1].player.token])
      const params = { game_id: world.game.game_id, namespace_id: world.game.namespace_id, lobby_id }
      await until('developers see the state in the words of Agones', async () => {
        const { lobby } = await world.platform.client.call(getNamespaceLobby, { params })
        return lobby.protocol?.name === 'agones' && lobby.protocol.state === 'Allocated'
      })
      const of_lobby = world.platform.ctx.db.selectFrom('lobbies').where('lobby_id', '=', lobby_id).select('ray_id')
      const { ray_id } = await of_lobby.executeTakeFirstOrThrow()
      const { explanation } = await world.platform.client.call(explainRay, { params: { ray_id: ray_id! } })
      assert.match(
        explanation.lobbies.flatMap(lobbySentences).join(' '),
        /reported to Agones: Allocated, last health 2/,
      )
      const state = await world.game.player.call(getLobbyState, { params: { lobby_id } })
      assert.match(JSON.stringify(state), /"agones.dev\/sdk-map":"cliff"/)
      // The signal may end the server before it responds.
      await fetch(`${seats[0].ports.game!.url}/shutdown`)
      assert.strictEqual(await world.platform.stopReasonOf(lobby_id), 'requested')
    })

    // Elsewhere the port is in the network of the lobby.
    if (network === 'machine')
      await t.test('Agones: Python calls the SDK server by gRPC', (t) => callInPython(t, world))

    if (network === 'machine')
      await t.test('Agones: a crash of the gateway loses neither labels nor players', async () => {
        const { lobby_id, seats, ids } = await world.pair('agones')
        await world.ask(seats[0], `/come?id=${ids[0]}`)
        await until('the first player is connected', async () => (await world.connections(lobby_id)).get(ids[0]))
        // A crash loses the changes since the last write.
        await setTimeout(2 * REMEMBER_EVERY_MS)
        const folder = gatewayFolder(join(world.platform.ctx.config.data_dir, 'lobbies'))
        const killed = readState(folder)!.process
        process.kill(killed.pid, 'SIGKILL')
        await until('another gateway runs', () => readState(folder)!.process.pid !== killed.pid)
        // The server adds its second player to a list that has the first one.
        await until('the server is served', () => world.ask(seats[1], `/come?id=${ids[1]}`).catch(() => false))
        type Known = { object_meta: { labels: Record<string, string> }; status: { state: string } }
        const { object_meta, status } = await world.ask<Known>(seats[0], '/')
        assert.deepStrictEqual([object_meta.labels['agones.dev/sdk-map'], status.state], ['cliff', 'Allocated'])
        // The new gateway reports players after it has served its server.
        await until('both players are connected', async () => {
          const connections = await world.connections(lobby_id)
          return ids.every((id) => connections.get(id) === true)
        })
      })

    await t.test('GSDK: Active with the first seat, and players by heartbeats', async () => {
      const { lobby_id, seats, ids } = await world.pair('gsdk')
      const { session } = await until('the server is active', async () => {
        const seen = await world.ask<{ state: string; session: { sessionId: string } }>(seats[0], '/')
        return seen.state === 'Active' ? seen : null
      })
      assert.strictEqual(session.sessionId, lobby_id)
      await world.comeAndGo(lobby_id, seats, ids)
    })

    await t.test('a server that no longer reports its health is ended only where its game mode says so', async () => {
      const [patient, strict] = [await world.pair('gsdk'), await world.pair('gsdk-strict')]
      await Promise.all([patient, strict].map(({ seats }) => world.ask(seats[0], '/hush')))
      assert.strictEqual(await world.platform.stopReasonOf(strict.lobby_id), 'requested')
      const { state } = await world.ask<{ state: string }>(patient.seats[0], '/')
      assert.strictEqual(state, 'Active')
    })

    await t.test('GameLift: a game session for the lobby, and player sessions as seats', async () => {
      const { lobby_id, seats, ids } = await world.pair('gamelift')
      type Known = { session: { MaximumPlayerSessionCount: number }; players: { PlayerId: string }[] }
      const known = await until('both seats are player sessions', async () => {
        const seen = await world.ask<Known>(seats[0], '/')
        return seen.players.length === 2 ? seen : null
      })
      assert.strictEqual(known.session.MaximumPlayerSessionCount, 4)
      assert.deepStrictEqual(known.players.map(({ PlayerId }) => PlayerId).sort(), [...ids].sort())
      const tokens = seats.map(({ player }) => player.token)
      await world.comeAndGo(lobby_id, seats, ids, tokens)
    })

    await t.test('Multiplay: an allocation by its file and its event, with seats of the edge', async () => {
      const { lobby_id, seats } = await world.pair('multiplay')
      const token = `?player_token=${seats[0].player.token}`
      type Known = { file: { allocatedUUID: string }; events: { AllocationID: string }[] }
      const known = await world.ask<Known>(seats[0], `/${token}`)
      assert.strictEqual(known.file.allocatedUUID, lobby_id)
      assert.deepStrictEqual([...new Set(known.events.map(({ AllocationID }) => AllocationID))], [lobby_id])
      await until('the edge has connected the player', async () => (await world.connections(lobby_id)).size > 0)
    })

    await t.test('seats of the edge stay, whatever players the server reports', async () => {
      const { lobby_id, seats, ids } = await world.pair('agones-edge')
      const token = `player_token=${seats[0].player.token}`
      await world.ask(seats[0], `/?${token}`)
      await until('the edge has connected the player', async () => (await world.connections(lobby_id)).get(ids[0]))
      await world.ask(seats[0], `/come?id=stranger&${token}`)
      assert.strictEqual((await world.connections(lobby_id)).get(ids[0]), true)
    })
  })
}

async function callInPython(t: TestContext, world: World): Promise<void> {
  const missing = lacking('python3-grpcio')
  if (missing !== null) return t.skip(missing)
  const { lobby_id, seats } = await world.pair('agones')
  const { grpc_port } = await world.ask<{ grpc_port: string }>(seats[0], '/')
  const { stdout } = await run('/usr/bin/python3', ['-c', AGONES_IN_PYTHON, grpc_port, lobby_id])
  assert.strictEqual(stdout, 'as expected\n')
}
