// Ports of the edge for lobbies: api, matchmaker and edge on one database, and lobbies whose servers the test plays.
import assert from 'node:assert'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createLobby, findLobby } from '@musterhost/contract'
import { CHANNELS } from '../../src/wire/channels.ts'
import { RAW_HOST } from '../edge/platform.ts'
import { createDatabase } from '../support/database.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'

const RANGE = 24
const ROLES = 'api,matchmaker,edge'
const GAME = {
  docker: { ports: { game: { protocol: 'tcp' as const } } },
  matchmaker: {
    game_modes: {
      default: { actions: { create: { enabled: true, enable_public: true } } },
    },
  },
  limits: { max_players_per_client: 1_000_000, lobby_count_max: 1_000_000 },
}

const UDP = { protocol: 'udp' as const }
const PAIRS = { ...GAME, docker: { ports: { ...GAME.docker.ports, voice: { ...UDP, same_number_as: 'game' } } } }

/** A stretch of ports that no other test has, with four that a stranger listens at. */
async function takeRange(t: TestContext) {
  const min = randomInt(10_000, 19_900)
  const taken = [min, min + 5, min + 6, min + RANGE - 1]
  for (const port of taken) {
    const stranger = createServer().listen(port, RAW_HOST)
    await once(stranger, 'listening')
    t.after(() => stranger.close())
  }
  return { taken, setting: `${min}-${min + RANGE - 1}` }
}

/** Of as many lobbies as are asked for at once: the numbers of those there are, and why there are not more. */
async function createMany(game: TestGame, count: number) {
  const body = { game_mode: 'default' }
  const outcomes = await Promise.allSettled(
    Array.from({ length: count }, () => game.player.call(createLobby, { body })),
  )
  return {
    ports: outcomes.flatMap((outcome) =>
      outcome.status === 'fulfilled' ? (outcome.value.ports.game?.port ?? -1) : [],
    ),
    refusals: outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? String(outcome.reason.code) : [])),
  }
}

/** What is committed and projected. */
async function live(platform: Platform) {
  const { rows } = await platform.ctx.pool.query<{ lobbies: string; players: string }>(
    `select (select count(*) from lobbies where stop_ts is null) as lobbies,
      (select count(*) from players where remove_ts is null) as players`,
  )
  return { lobbies: Number(rows[0]!.lobbies), players: Number(rows[0]!.players) }
}

test('a burst gets every port there is, each once; what is beyond is refused, and nothing is left of it', async (t) => {
  const { taken, setting } = await takeRange(t)
  const env = { MUSTER_EDGE_PORTS: setting, MUSTER_EDGE_PORTS_SPARE: '16' }
  const database_url = await createDatabase(t)
  const platform = await startPlatform(t, { roles: ROLES, env, database_url })
  platform.playServers()
  const game = await platform.game(GAME)
  const room = RANGE - taken.length
  let port_wakes = 0
  t.after(platform.ctx.listener.on(CHANNELS.lobby_ports, () => port_wakes++))

  for (let cycle = 0; cycle < 3; cycle++) {
    const { ports, refusals } = await createMany(game, room + 6)
    assert.strictEqual(new Set(ports).size, room, 'each port once')
    assert.ok(
      ports.every((port) => !taken.includes(port)),
      'what others have is passed over',
    )
    assert.deepStrictEqual(
      refusals,
      Array.from({ length: 6 }, () => 'MATCHMAKER_NO_PORTS'),
    )
    await until('lobbies and seats are as many as ports', async () => {
      const { lobbies, players } = await live(platform)
      return lobbies === room && players === room
    })

    // Players never come, and then their lobbies are idle.
    platform.advance(130_000)
    await until('the seats have expired', async () => (await live(platform)).players === 0)
    platform.advance(16_000)
    await until('the lobbies have stopped', async () => (await live(platform)).lobbies === 0)
    assert.deepStrictEqual((await createMany(game, 1)).refusals, ['MATCHMAKER_NO_PORTS'], 'quarantined')
    platform.advance(61_000)
  }
  assert.ok(port_wakes > 1, 'lobbies with public ports did not wake the edges')

  await t.test('where a version asks for it, tcp and udp have one number, in every lobby', async () => {
    const SINGLES = 3
    await createMany(game, SINGLES)
    const pairs = await platform.game(PAIRS)
    const body = { game_mode: 'default' }
    const seats = await Promise.all(
      Array.from({ length: room - SINGLES }, () => pairs.player.call(createLobby, { body })),
    )
    const numbers = seats.map(({ ports }) => [ports.game?.port, ports.voice?.port])
    for (const [tcp, udp] of numbers) {
      assert.strictEqual(tcp, udp)
      assert.ok(!taken.includes(tcp ?? 0))
    }
    assert.strictEqual(new Set(numbers.map(([tcp]) => tcp)).size, seats.length)
  })
})

test('a later life of the platform knows which lobby has which port', async (t) => {
  const { taken, setting } = await takeRange(t)
  const env = { MUSTER_EDGE_PORTS: setting, MUSTER_EDGE_PORTS_SPARE: '16' }
  const database_url = await createDatabase(t)
  const first = await startPlatform(t, { roles: ROLES, env, database_url })
  first.playServers()
  const game = await first.game(GAME)
  const before = await createMany(game, 12)
  assert.strictEqual(new Set(before.ports).size, 12)
  await first.close()

  const second = await startPlatform(t, { roles: ROLES, env, database_url, data_dir: first.data_dir })
  second.playServers()
  const player = second.as(game.public_token)
  const after = await createMany({ ...game, player }, RANGE)
  assert.strictEqual(new Set([...before.ports, ...after.ports]).size, RANGE - taken.length)
  assert.strictEqual(after.ports.length, RANGE - taken.length - 12)
  // The lobby of before still has room, and its number is reported again.
  const seat = await player.call(findLobby, { body: { game_modes: ['default'] } })
  assert.ok(before.ports.includes(seat.ports.game?.port ?? 0))
})
