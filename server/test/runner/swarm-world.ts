// A platform whose lobbies run on the engines of a Docker Swarm, for tests.
import { get } from 'node:http'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { findLobby, listNodes, playerConnected } from '@musterhost/contract'
import { decodePage } from '../../src/journal/pages.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { BASE_IMAGE } from './base-image.ts'
import { sharedEngine, sharedSwarm, swarmSettings } from './driver-fixture.ts'
import type { SwarmMachine, SwarmRole } from './swarm-engines.ts'

const MODE = { game_modes: { default: { max_players: 1, idle_grace_ms: 600_000 } } }
const LIMITS = { max_players_per_client: 1_000, lobby_count_max: 1_000 }
const FINDS_MAX = 8
/** Says which container it is. The number is the server's own choice. */
const SERVER = `
const http = process.getBuiltinModule('node:http')
import { randomUUID } from 'node:crypto'
const id = randomUUID()
console.log('started ' + id)
http.createServer((_, answer) => answer.end(id)).listen(7777, process.env.HOST, () => {
  const headers = { authorization: 'Bearer ' + process.env.PLATFORM_TOKEN }
  http.request(process.env.PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }).end()
})
process.on('SIGTERM', () => process.exit(0))
`

export type Lobby = { lobby_id: string; node_id: string; player_token: string }

export class World {
  readonly platform: Platform
  readonly game: TestGame
  readonly machines: readonly SwarmMachine[]

  constructor(platform: Platform, game: TestGame, machines: readonly SwarmMachine[]) {
    this.platform = platform
    this.game = game
    this.machines = machines
  }

  static async open(
    t: TestContext,
    grace_s: number,
    others?: readonly SwarmRole[],
    heartbeat_s?: number,
  ): Promise<World> {
    const { machines } = await sharedSwarm(others, heartbeat_s)
    await sharedEngine('swarm')
    const platform = await startPlatform(t, {
      roles: 'api,matchmaker,runner,edge',
      env: {
        ...(await swarmSettings('tcp')),
        MUSTER_INTERNAL_HOST: '0.0.0.0',
        MUSTER_DOCKER_BASE_IMAGE: BASE_IMAGE,
        MUSTER_SANDBOX: 'off',
        MUSTER_NODE_GRACE_SECONDS: String(grace_s),
      },
    })
    const game = await platform.game({
      matchmaker: MODE,
      limits: LIMITS,
      files: { 'server.mjs': SERVER },
      docker: { ports: { game: { protocol: 'http', port: 7_777 } } },
    })
    const world = new World(platform, game, machines)
    await until('all nodes to be open', () => world.isOpen())
    return world
  }

  async isOpen(): Promise<boolean> {
    const states = await this.states()
    return states.length === this.machines.length && states.every((state) => state === 'open')
  }

  async states(): Promise<string[]> {
    return (await this.platform.client.call(listNodes, {})).nodes
      .filter(({ node_id }) => this.machines.some((machine) => machine.node_id === node_id))
      .map(({ state }) => state)
  }

  /** A lobby with a player on each machine, in their order. */
  async findOnAll(): Promise<Lobby[]> {
    const found = new Map<string, Lobby>()
    for (let finds = 0; finds < FINDS_MAX && found.size < this.machines.length; finds++) {
      // On a loaded machine the first pull of the image takes longer than a find waits.
      const lobby = await until('a lobby to start', () => this.find().catch(() => null))
      found.set(lobby.node_id, lobby)
    }
    return this.machines.map(({ node_id }) => found.get(node_id)!)
  }

  async find(): Promise<Lobby> {
    const { lobby } = await this.game.player.call(findLobby, { body: { game_modes: ['default'] } })
    const { lobby_id } = lobby
    const seat = { lobby_id, player_token: lobby.player.token }
    const server = this.platform.as(this.platform.lobbyToken({ lobby_id, namespace_id: this.game.namespace_id }))
    await server.call(playerConnected, { body: { player_token: seat.player_token } })
    return { ...seat, node_id: (await this.rowOf(lobby_id)).node_id! }
  }

  rowOf(lobby_id: string) {
    return this.platform.ctx.db
      .selectFrom('lobbies')
      .where('lobby_id', '=', lobby_id)
      .select(['node_id', 'stop_reason', 'is_stalled', 'player_count'])
      .executeTakeFirstOrThrow()
  }

  /** What the server says to a player, who comes through the edge; null: nothing. */
  async ask({ lobby_id }: Lobby): Promise<string | null> {
    return new Promise((resolve) => {
      const path = `/lobbies/${lobby_id}/game`
      const request = get(`${this.platform.edge_url}${path}`, { headers: { host: 'localhost' } }, (response) => {
        text(response).then((body) => resolve(response.statusCode === 200 ? body : null))
      })
      request.on('error', () => resolve(null))
    })
  }

  /** How often the servers of a lobby have started, on any machine. */
  async starts({ lobby_id }: Lobby): Promise<number> {
    const lines = await this.platform.ctx.lobby_logs.last(lobby_id, 'stdout', 100)
    return lines.lines.filter(({ bytes }) => bytes.toString().startsWith('started ')).length
  }

  async containersOf({ lobby_id }: Lobby): Promise<string[]> {
    const listed = await Promise.all(
      this.machines.map(({ engine }) => engine.docker(['ps', '--all', '--quiet', '--filter', `name=${lobby_id}`])),
    )
    return listed.join('\n').split('\n').filter(Boolean)
  }

  /** Rows of the journal that end lobbies with this reason. */
  async rowsThatEnd(reason: string): Promise<string[][]> {
    const { rows } = await this.platform.ctx.pool.query<{ payload: Buffer }>(
      'select payload from journal order by shard, seq',
    )
    const ends = rows.map(({ payload }) =>
      decodePage(payload).entries.flatMap(({ changes }) =>
        changes.flatMap((change) =>
          change.kind === 'lobby_stopped' && change.reason === reason ? change.lobby_id : [],
        ),
      ),
    )
    return ends.filter((ids) => ids.length > 0)
  }
}
