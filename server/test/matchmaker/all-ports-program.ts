// What all-ports.test.ts tries, alone in a network namespace: it ends with 0 when everything was as it must be.
import assert from 'node:assert'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLobby } from '@musterhost/contract'
import { RAW_HOST } from '../edge/platform.ts'
import { startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'

const [FIRST, COUNT] = [26_000, 6_000]
const STRANGERS = 200
const OF_A_LOBBY = 16
const AT_ONCE = 60
const RETRIES_MAX = 5
/** As `retry_after_s` of the refusal says. */
const RETRY_MS = 1_000
const LIMITS = { max_players_per_client: 1_000_000, lobby_count_max: 1_000_000 }

const gameWith = (count: number) => ({
  docker: {
    ports: Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, { protocol: 'tcp' as const }])),
  },
  matchmaker: { game_modes: { default: { actions: { create: { enabled: true, enable_public: true } } } } },
  limits: LIMITS,
})

/** The numbers of as many lobbies, and the codes of those that there are not. */
async function create(game: TestGame, count: number): Promise<{ ports: number[]; refusals: string[] }> {
  const ports: number[] = []
  const refusals: string[] = []
  let left = count
  const createOne = async (tries_left: number): Promise<void> => {
    try {
      const seat = await game.player.call(createLobby, { body: { game_mode: 'default' } })
      ports.push(...Object.values(seat.ports).map(({ port }) => port ?? -1))
    } catch (error) {
      const code = String((error as { code?: unknown }).code)
      if (code !== 'API_NOT_AVAILABLE' || tries_left === 0) return void refusals.push(code)
      // On a loaded machine a batch of so many may meet the time limit of the database. It asks the caller to come again.
      await sleep(RETRY_MS)
      await createOne(tries_left - 1)
    }
  }
  const work = async (): Promise<void> => {
    while (left-- > 0) await createOne(RETRIES_MAX)
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, work))
  return { ports, refusals }
}

test('all ports', async (t) => {
  assert.strictEqual(spawnSync('ip', ['link', 'set', 'lo', 'up']).status, 0)
  const taken = new Set<number>()
  for (let index = 0; index < STRANGERS; index++) {
    const port = FIRST + index * (COUNT / STRANGERS)
    const stranger = createServer().listen(port, RAW_HOST)
    await once(stranger, 'listening')
    t.after(() => stranger.close())
    taken.add(port)
  }
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,edge',
    env: { MUSTER_EDGE_PORTS_SPARE: String(COUNT) },
    database_url: process.env.TEST_DATABASE!,
  })
  platform.playServers()
  const many = await platform.game(gameWith(OF_A_LOBBY))
  const rest = (COUNT - STRANGERS) % OF_A_LOBBY
  const few = await platform.game(gameWith(rest))
  const one = await platform.game(gameWith(1))
  const { pool } = platform.ctx
  const countOf = async (what: string): Promise<number> =>
    Number((await pool.query(`select count(*) from ${what}`)).rows[0].count)
  await until('all are open that can be', async () => {
    return (await countOf("edge_ports where transport = 'tcp'")) === COUNT - STRANGERS
  })

  const lobbies = Math.floor((COUNT - STRANGERS) / OF_A_LOBBY)
  for (let cycle = 0; cycle < 2; cycle++) {
    const most = await create(many, lobbies + 20)
    assert.deepStrictEqual([...new Set(most.refusals)], ['MATCHMAKER_NO_PORTS'])
    assert.strictEqual(most.refusals.length, 20)
    const last = await create(few, 1)
    assert.deepStrictEqual(last.refusals, [])
    const given = new Set([...most.ports, ...last.ports])
    assert.strictEqual(given.size, COUNT - STRANGERS, 'each is given once')
    for (const port of given) assert.ok(port >= FIRST && port < FIRST + COUNT && !taken.has(port), String(port))
    assert.deepStrictEqual(await create(one, 1), { ports: [], refusals: ['MATCHMAKER_NO_PORTS'] })
    await until('no lobby and no seat is left of what was refused', async () => {
      const counts = [await countOf('lobbies where stop_ts is null'), await countOf('players where remove_ts is null')]
      return counts.every((count) => count === lobbies + 1)
    })

    // Players never come, then their lobbies are idle, then the ports have rested.
    platform.advance(130_000)
    await until('the seats have expired', async () => (await countOf('players where remove_ts is null')) === 0)
    platform.advance(16_000)
    await until('the lobbies have stopped', async () => (await countOf('lobbies where stop_ts is null')) === 0)
    platform.advance(61_000)
  }
})
