// Several nodes of one region: placement, nodes that are away for a while and for good, drains, and builds ahead.
// REAL_LENGTHS=1: the node is cut off for 20 s and for 5 minutes, with the grace of an installation.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  cancelNodeDrain,
  drainNode,
  findLobby,
  listNodes,
  playerConnected,
  removeNode,
  type VersionConfig,
} from '@musterhost/contract'
import { decodePage } from '../../src/journal/pages.ts'
import { refused } from '../cloud/steps.ts'
import { processesOf } from '../supervisor/started.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { RunnerNode } from '../support/runner-node.ts'
import { until } from '../support/until.ts'
import { type DatabaseProxy, openDatabaseProxy } from './database-proxy.ts'

const IS_REAL = process.env.REAL_LENGTHS !== undefined
/** Of a node that is silent. */
const GRACE_S = IS_REAL ? 60 : 12
/** How long the node is away at least. */
const AWAY_S = IS_REAL ? { short: 20, long: 300 } : { short: 0, long: 0 }
/** Between two finds while the node is away. */
const FIND_EVERY_MS = 10_000
const MODE = { game_modes: { default: { max_players: 1, idle_grace_ms: 600_000 } } }
const LIMITS = { max_players_per_client: 1_000, lobby_count_max: 1_000 }

/** Until a node gets a lobby. */
const FINDS_MAX = 20

type Seat = { lobby_id: string; player_token: string }

class World {
  readonly platform: Platform
  readonly two: RunnerNode
  readonly game: TestGame
  readonly #link: DatabaseProxy

  constructor(platform: Platform, two: RunnerNode, game: TestGame, link: DatabaseProxy) {
    this.platform = platform
    this.two = two
    this.game = game
    this.#link = link
  }

  static async open(t: TestContext, env: Record<string, string> = {}): Promise<World> {
    const platform = await startPlatform(t, {
      roles: 'api,matchmaker,runner',
      env: { MUSTER_NODE: 'one', MUSTER_SANDBOX: 'off', MUSTER_NODE_GRACE_SECONDS: String(GRACE_S), ...env },
    })
    const game = await platform.game({ matchmaker: MODE, limits: LIMITS })
    const link = await openDatabaseProxy(t, platform.ctx.config.database_url!)
    const two = await RunnerNode.start(t, platform, 'two', { DATABASE_URL: link.url })
    await until('both nodes to be open', async () => (await platform.client.call(listNodes, {})).nodes.length === 2)
    return new World(platform, two, game, link)
  }

  /** The second node reaches nothing of the platform, or reaches it again. Its runner and its lobbies run on. */
  setCutOff(is_cut_off: boolean): void {
    this.#link.setAway(is_cut_off)
  }

  /** Meanwhile players find seats on the other node. */
  async findFor(seconds: number): Promise<void> {
    for (let waited_ms = 0; waited_ms < seconds * 1_000; waited_ms += FIND_EVERY_MS) {
      assert.equal((await this.rowOf(await this.find())).node_id, 'one')
      await sleep(FIND_EVERY_MS)
    }
  }

  async find(): Promise<Seat> {
    const { lobby } = await this.game.player.call(findLobby, { body: { game_modes: ['default'] } })
    const seat = { lobby_id: lobby.lobby_id, player_token: lobby.player.token }
    const server = this.platform.as(this.platform.lobbyToken({ ...seat, namespace_id: this.game.namespace_id }))
    await server.call(playerConnected, { body: { player_token: seat.player_token } })
    return seat
  }

  /** Finds seats until each node has `count` lobbies of them. Returns them by node. */
  async findOnBoth(count: number): Promise<Record<'one' | 'two', Seat[]>> {
    const seats = { one: [] as Seat[], two: [] as Seat[] }
    for (let found = 0; found < 4 * count; found++) {
      const seat = await this.find()
      seats[(await this.rowOf(seat)).node_id as 'one' | 'two'].push(seat)
      if (seats.one.length >= count && seats.two.length >= count) return seats
    }
    throw new Error(`the lobbies are not spread: ${seats.one.length} and ${seats.two.length}`)
  }

  /** Finds seats until one is on this node. The node with more free room gets the lobbies. */
  async findOn(node_id: string): Promise<Seat> {
    for (let found = 0; found < FINDS_MAX; found++) {
      const seat = await this.find()
      if ((await this.rowOf(seat)).node_id === node_id) return seat
    }
    throw new Error(`${node_id} gets no lobby`)
  }

  async rowOf({ lobby_id }: Pick<Seat, 'lobby_id'>) {
    return this.platform.ctx.db
      .selectFrom('lobbies')
      .where('lobby_id', '=', lobby_id)
      .select(['node_id', 'stop_reason', 'is_stalled', 'player_count'])
      .executeTakeFirstOrThrow()
  }

  isThere({ lobby_id }: Seat): boolean {
    return processesOf(lobby_id).length > 0
  }

  async stateOf(node_id: string) {
    return (await this.platform.client.call(listNodes, {})).nodes.find((node) => node.node_id === node_id)?.state
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

test('a node that is away for a while loses no seat; one that is gone loses its lobbies in one row, and ends them at its return', async (t) => {
  const world = await World.open(t)
  const { two } = world
  const seats = await world.findOnBoth(2)

  // The node is cut off for less than the grace. Its lobbies run on.
  world.setCutOff(true)
  await until(
    'the lobbies of the silent node to take no players',
    async () => (await world.rowOf(seats.two[0]!)).is_stalled,
  )
  const elsewhere = await world.find()
  assert.equal((await world.rowOf(elsewhere)).node_id, 'one')
  await world.findFor(AWAY_S.short)
  world.setCutOff(false)
  await until('its lobbies to take players again', async () => !(await world.rowOf(seats.two[0]!)).is_stalled)
  for (const seat of seats.two) {
    const { stop_reason, player_count } = await world.rowOf(seat)
    assert.deepEqual(
      { stop_reason, player_count, is_there: world.isThere(seat) },
      { stop_reason: null, player_count: 1, is_there: true },
    )
  }

  // It is away for longer than the grace.
  const setAway = (is_away: boolean): void =>
    IS_REAL ? world.setCutOff(is_away) : two.signal(is_away ? 'SIGSTOP' : 'SIGCONT')
  setAway(true)
  await world.findFor(AWAY_S.long)
  await until('its lobbies to end', async () => (await world.rowOf(seats.two[0]!)).stop_reason)
  const lost = seats.two.map(({ lobby_id }) => lobby_id).sort()
  // A lobby that the node had not started yet ends before that, and its player gets another one.
  const ends = (await world.rowsThatEnd('node_lost')).filter((ids) => ids.some((id) => lost.includes(id)))
  assert.deepEqual(
    ends.map((ids) => ids.sort()),
    [lost],
  )
  for (const seat of seats.one) assert.equal((await world.rowOf(seat)).stop_reason, null)
  assert.equal((await world.rowOf(await world.find())).node_id, 'one')
  assert.ok(world.isThere(seats.two[0]!), 'the process of an ended lobby runs until its runner returns')
  setAway(false)
  await until('the orphans to end', () => seats.two.every((seat) => !world.isThere(seat)))
  for (const seat of seats.one) assert.ok(world.isThere(seat))

  // It is killed with everything that it runs, and starts again.
  const later = await world.findOn('two')
  await two.killAll()
  await until('its lobbies to end', async () => (await world.rowOf(later)).stop_reason === 'node_lost')
  await two.startAgain()
  await world.findOn('two')
})

test('a drain disconnects nobody, ends empty lobbies, can be cancelled, and ends the rest at its deadline', async (t) => {
  const world = await World.open(t)
  const { client } = world.platform
  const seats = await world.findOnBoth(2)
  const [first] = seats.two as [Seat, ...Seat[]]

  await client.call(drainNode, { body: { node_id: 'two', at_match_end: true } })
  await until('its lobbies to take no players', async () => (await world.rowOf(first)).is_stalled)
  for (let found = 0; found < 3; found++) assert.equal((await world.rowOf(await world.find())).node_id, 'one')
  assert.deepEqual([await world.stateOf('two'), (await world.rowOf(first)).player_count], ['draining', 1])
  await refused('NODE_HAS_LOBBIES', client.call(removeNode, { body: { node_id: 'two' } }))

  await client.call(cancelNodeDrain, { body: { node_id: 'two' } })
  await until('its lobbies to take players again', async () => !(await world.rowOf(first)).is_stalled)
  await world.findOn('two')
  for (const seat of seats.two)
    assert.deepEqual([(await world.rowOf(seat)).stop_reason, world.isThere(seat)], [null, true])

  await client.call(drainNode, { body: { node_id: 'two', deadline_s: 1 } })
  await until('the drain to end', async () => (await world.stateOf('two')) === 'drained')
  assert.equal((await world.rowOf(first)).stop_reason, 'node_drained')
  await until('the process to end', () => !world.isThere(first))
  await client.call(removeNode, { body: { node_id: 'two' } })
  assert.equal((await world.rowOf(await world.find())).node_id, 'one')
  await refused('NODE_NOT_FOUND', client.call(drainNode, { body: { node_id: 'three' } }))
})

test('every runner unpacks the build of a deployed version before its first lobby', async (t) => {
  const world = await World.open(t)
  const version = await world.platform.ctx.db
    .selectFrom('versions')
    .where('version_id', '=', world.game.version_id)
    .select('config')
    .executeTakeFirstOrThrow()
  const build_id = (version.config as VersionConfig).matchmaker?.docker?.image_id
  for (const folder of [world.platform.data_dir, world.two.folder]) {
    await until('the build to be unpacked', () => existsSync(join(folder, 'builds', build_id!, 'server.mjs')))
  }
  const { rows } = await world.platform.ctx.pool.query('select from lobbies')
  assert.equal(rows.length, 0)
})
