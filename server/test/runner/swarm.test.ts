// A platform whose lobbies run on two engines of a Docker Swarm: placement, ports, and the loss of an engine, of the network
// to it and of the manager.
import assert from 'node:assert/strict'
import { get } from 'node:http'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { findLobby, listNodes, playerConnected } from '@muster/contract'
import { decodePage } from '../../src/journal/pages.ts'
import { type Platform, startPlatform, type TestGame } from '../platform.ts'
import { until } from '../until.ts'
import { BASE_IMAGE } from './base-image.ts'
import { missingFor, sharedEngine, sharedSwarm, swarmSettings } from './driver-fixture.ts'
import type { SwarmMachine } from './swarm-engines.ts'

const GRACE_S = 10
const MODE = { game_modes: { default: { max_players: 1, idle_grace_ms: 600_000 } } }
const LIMITS = { max_players_per_client: 1_000, lobby_count_max: 1_000 }
const FINDS_MAX = 8
/** Says which container it is. The number is the server's own choice. */
const SERVER = `
import http from 'node:http'
import { randomUUID } from 'node:crypto'
const id = randomUUID()
console.log('started ' + id)
http.createServer((_, answer) => answer.end(id)).listen(7777, process.env.HOST, () => {
  const headers = { authorization: 'Bearer ' + process.env.PLATFORM_TOKEN }
  http.request(process.env.PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }).end()
})
process.on('SIGTERM', () => process.exit(0))
`

type Lobby = { lobby_id: string; node_id: string; player_token: string }

class World {
  readonly platform: Platform
  readonly game: TestGame
  readonly machines: readonly SwarmMachine[]

  constructor(platform: Platform, game: TestGame, machines: readonly SwarmMachine[]) {
    this.platform = platform
    this.game = game
    this.machines = machines
  }

  static async open(t: TestContext): Promise<World> {
    await sharedEngine('swarm')
    const { machines } = await sharedSwarm()
    const platform = await startPlatform(t, {
      roles: 'api,matchmaker,runner,edge',
      env: {
        ...(await swarmSettings('tcp')),
        MUSTER_INTERNAL_HOST: '0.0.0.0',
        MUSTER_DOCKER_BASE_IMAGE: BASE_IMAGE,
        MUSTER_SANDBOX: 'off',
        MUSTER_NODE_GRACE_SECONDS: String(GRACE_S),
      },
    })
    const game = await platform.game({
      matchmaker: MODE,
      limits: LIMITS,
      files: { 'server.mjs': SERVER },
      docker: { ports: { game: { protocol: 'http', port: 7_777 } } },
    })
    const world = new World(platform, game, machines)
    await until('both nodes to be open', async () => (await world.states()).join() === 'open,open')
    return world
  }

  async states(): Promise<string[]> {
    return (await this.platform.client.call(listNodes, {})).nodes
      .filter(({ node_id }) => this.machines.some((machine) => machine.node_id === node_id))
      .map(({ state }) => state)
  }

  /** A lobby with a player on each machine, in their order. */
  async findOnBoth(): Promise<Lobby[]> {
    const found = new Map<string, Lobby>()
    for (let finds = 0; finds < FINDS_MAX && found.size < this.machines.length; finds++) {
      const lobby = await this.find()
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

test('a machine of a Swarm that is cut off for a while loses no seat; after the grace its lobbies end in one row, and its orphans at its return', async (t) => {
  const missing = missingFor('swarm')
  if (missing !== null) return t.skip(missing)
  const world = await World.open(t)
  const [first, second] = await world.findOnBoth()
  const third = await until('a second lobby on the second machine', async () => {
    const lobby = await world.find()
    return lobby.node_id === second!.node_id ? lobby : null
  })
  const answers = [await world.ask(first!), await world.ask(second!)]
  assert.ok(answers.every((answer) => answer !== null))
  const machine = world.machines[1]!

  machine.setConnected(false)
  await until('its lobbies to take no players', async () => (await world.rowOf(second!.lobby_id)).is_stalled)
  assert.equal((await world.find()).node_id, first!.node_id)
  machine.setConnected(true)
  await until('its lobbies to take players', async () => !(await world.rowOf(second!.lobby_id)).is_stalled)
  const { stop_reason, player_count } = await world.rowOf(second!.lobby_id)
  assert.deepEqual({ stop_reason, player_count }, { stop_reason: null, player_count: 1 })
  assert.deepEqual([await world.ask(first!), await world.ask(second!)], answers)

  machine.setConnected(false)
  await until('its lobbies to end', async () => (await world.rowOf(second!.lobby_id)).stop_reason)
  const lost = [second!.lobby_id, third.lobby_id].sort()
  assert.deepEqual(
    (await world.rowsThatEnd('node_lost')).map((ids) => ids.sort()),
    [lost],
  )
  assert.equal((await world.containersOf(second!)).length, 1, 'the machine itself still runs it')
  machine.setConnected(true)
  await until('its orphans to end', async () => (await world.containersOf(second!)).length === 0)
  await until('the machine to be open', async () => (await world.states()).join() === 'open,open')
  assert.deepEqual([await world.ask(first!), await world.ask(second!)], [answers[0], null])
  for (const lobby of [first!, second!, third]) assert.equal(await world.starts(lobby), 1)
})

test('a machine that loses its power takes its own lobbies along, no lobby starts twice, and without a manager none starts', async (t) => {
  const missing = missingFor('swarm')
  if (missing !== null) return t.skip(missing)
  const world = await World.open(t)
  const [first, second] = await world.findOnBoth()
  const answer = await world.ask(second!)
  // The first machine is the only manager.
  const manager = world.machines[0]!
  // Cut off first, so that nothing of its end is seen.
  manager.setConnected(false)
  await manager.engine.end()
  await until('its lobby to end', async () => (await world.rowOf(first!.lobby_id)).stop_reason)
  assert.deepEqual(await world.rowsThatEnd('node_lost'), [[first!.lobby_id]])
  assert.equal(await world.ask(second!), answer, 'the other machine needs no manager for what runs')
  await assert.rejects(world.find(), { code: 'MATCHMAKER_REGION_FULL' })
  manager.setConnected(true)
  await manager.restart()
  await until('the manager to take requests', async () => (await world.states()).join() === 'open,open')
  const next = await until('a lobby to start', () => world.find().catch(() => null))
  assert.ok(await until('its server to respond', () => world.ask(next)))
  await until('the lost lobby to leave nothing', async () => (await world.containersOf(first!)).length === 0)
  assert.equal(await world.ask(second!), answer)
  for (const lobby of [first!, second!, next]) assert.equal(await world.starts(lobby), 1)
})
