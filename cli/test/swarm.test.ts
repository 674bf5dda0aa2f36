// A swarm against the real platform with the example game: it counts the players that play, and names the limit.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  createCloudToken,
  getGameById,
  getGames,
  listGameCloudTokens,
  updateGameNamespaceMatchmakerConfig,
} from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { startArena } from '../../server/test/end-to-end/arena.ts'
import { until } from '../../server/test/support/until.ts'
import { openRequester } from '../src/swarm/requester.ts'
import { Swarm, type SwarmOptions, type SwarmReport } from '../src/swarm/swarm.ts'
import { createMuster } from './program.ts'

const DURATION_MS = 600_000

test('a swarm plays, and names the limit that comes first', async (t) => {
  const arena = await startArena(t, { deploy: ['--max-players', '4'], env: { MUSTER_RATE_LIMIT_SEATS: '0' } })
  const url = `http://localhost:${arena.settings.MUSTER_EDGE_HTTP_PORT}`
  const token = readFileSync(join(arena.folder, 'admin-token'), 'utf8').trim()
  const admin = createClient({ url, token })
  const game_id = (await admin.call(getGames, {})).games[0]!.game_id
  const { game } = await admin.call(getGameById, { params: { game_id } })
  const { namespace_id } = game.namespaces.find(({ name_id }) => name_id === 'prod')!
  const target = { game_id, namespace_id, url, token, game_mode: 'default' }
  const setLimits = (body: { max_players_per_client?: number; lobby_count_max?: number }) =>
    admin.call(updateGameNamespaceMatchmakerConfig, { params: { game_id, namespace_id }, body })
  /** Runs a swarm until `isEnough`, as Ctrl-C ends it. */
  const run = async (
    find: SwarmOptions['find'],
    bots: number,
    isEnough: (now: { players: number; refused: number }) => boolean,
  ) => {
    const interrupt = new AbortController()
    const onChange = (now: { players: number; refused: number }): void => {
      if (isEnough(now)) interrupt.abort()
    }
    const options = { find, bots, path: '/?token={token}', port: null, duration_ms: DURATION_MS }
    return new Swarm({ ...options, pattern: 'burst', signal: interrupt.signal, onChange }).run()
  }
  const areGone = () =>
    until('all bots to have left', async () => (await arena.lobbies()).every((lobby) => lobby.total_player_count === 0))

  await t.test('bots of one address are bounded by the limit of a client', async () => {
    await setLimits({ max_players_per_client: 3 })
    const { kind, find } = await openRequester(admin, target, t.signal)
    assert.equal(kind, 'player')
    const report = await run(find, 5, ({ players, refused }) => players === 3 && refused > 0)
    assert.equal(report.players_max, 3)
    assert.equal(report.first_limit?.code, 'MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE')
    assert.match(report.first_limit.remedy, /max_players_per_client/)
    assert.ok(report.find_ms !== null && report.find_ms.max > 0)
    await areGone()
  })

  await t.test('bots of a backend have addresses of their own, and are bounded by the lobbies', async () => {
    await setLimits({ lobby_count_max: 2 })
    const cloud = await admin.call(createCloudToken, { params: { game_id } })
    const { kind, find } = await openRequester(
      createClient({ url, token: cloud.token }),
      { ...target, ...cloud },
      t.signal,
    )
    assert.equal(kind, 'backend')
    const report = await run(find, 10, ({ players, refused }) => players === 8 && refused > 0)
    assert.equal(report.players_max, 8)
    assert.equal(report.first_limit?.code, 'MATCHMAKER_TOO_MANY_LOBBIES')
    await areGone()
  })

  await t.test('without a limit all bots play, and the report names none', async () => {
    await setLimits({ max_players_per_client: 100, lobby_count_max: 100 })
    const { find } = await openRequester(admin, target, t.signal)
    const report = await run(find, 6, ({ players }) => players === 6)
    assert.deepEqual([report.players_max, report.seats, report.first_limit, report.lost], [6, 6, null, 0])
  })

  await t.test("with the operator's token the command seats all bots, and prints the report as JSON", async (step) => {
    await setLimits({ max_players_per_client: 1 })
    const muster = createMuster(step, { MUSTER_URL: url, MUSTER_TOKEN: token })
    const args = ['swarm', '2', '--game', game_id, '--pattern', 'burst', '--duration', '2s']
    const report = (await muster.json(args)) as SwarmReport
    assert.deepEqual([report.bots, report.players_max, report.pattern, report.first_limit], [2, 2, 'burst', null])
    const { tokens } = await admin.call(listGameCloudTokens, { params: { game_id } })
    assert.equal(typeof tokens[0]!.revoke_ts, 'string', 'the token of the command is revoked')
    assert.equal((await muster.run(['swarm', '0'])).code, 2)
  })

  arena.started().signalGroup('SIGINT')
  await arena.started().ended
})
