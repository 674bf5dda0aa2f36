// Requests whose lobbies do not start: what the caller receives, and how often a broken version is started.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCloudToken, explainRay, findLobby, playerConnected, playerDisconnected } from '@musterhost/contract'
import { ask, bearer, JSON_TYPE } from '../http/ask.ts'
import { LONG_MS, MODES } from '../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { failureOf } from '../support/refusal.ts'
import { until } from '../support/until.ts'

const EXITS =
  "console.log('reading the map')\nprocess.stderr.write('no map \\u0000 ' + 'x'.repeat(500) + '\\n')\nprocess.stdout.write(Buffer.from([0xff, 0xfe, 10]))\nprocess.exitCode = 3\n"

type Refusal = {
  status: number
  code: string
  message: string
  metadata: Record<string, unknown>
  ray_id: string
  retry_after: string | undefined
}

async function findAs(platform: Platform, token: string, body: object): Promise<Refusal> {
  const { status, text, headers } = await ask(`${platform.matchmaker_url}${findLobby.path}`, {
    method: 'POST',
    headers: { ...bearer(token), ...JSON_TYPE },
    body: JSON.stringify({ game_modes: ['default'], ...body }),
  })
  const error = JSON.parse(text) as Omit<Refusal, 'status' | 'retry_after'>
  return { ...error, status, retry_after: headers['retry-after'] as string | undefined }
}

async function lobbiesEver({ ctx }: Platform, game: TestGame): Promise<number> {
  const where = ctx.db.selectFrom('lobbies').where('namespace_id', '=', game.namespace_id)
  return (await where.select('lobby_id').execute()).length
}

test('a find whose servers exit says how the last one ended; its log is for the game, and never for players', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner' })
  const game = await platform.game({ files: { 'server.mjs': EXITS } })
  const { token } = await platform.client.call(createCloudToken, { params: { game_id: game.game_id } })

  const refused = await findAs(platform, game.public_token, {})
  assert.deepEqual([refused.status, refused.code], [400, 'MATCHMAKER_LOBBY_STOPPED'])
  const { lobby_id, ...end } = refused.metadata
  assert.deepEqual(end, { exit_reason: 'exit', exit_code: 3 })
  assert.equal(typeof lobby_id, 'string')
  assert.match(refused.message, /its server exited with code 3\./)
  assert.ok(refused.message.includes(`muster explain ${refused.ray_id}`), refused.message)
  assert.equal(await lobbiesEver(platform, game), 3)

  // Three starts in a row have failed: a request makes one attempt. The pause after it lasts until the clock goes on.
  platform.holdClock()
  const player = { address: '203.0.113.7' }
  const as_game = { namespace_id: game.namespace_id, clients: [player] }
  const told = await findAs(platform, token, as_game)
  assert.equal(told.code, 'MATCHMAKER_LOBBY_STOPPED')
  assert.equal(await lobbiesEver(platform, game), 4)
  const lines = told.metadata.log_lines as string[]
  assert.deepEqual(lines.toSorted(), [`no map \uFFFD ${'x'.repeat(391)}`, 'reading the map', '\uFFFD\uFFFD'])

  // Then a pause: players and the game are refused at once.
  const paused = await findAs(platform, game.public_token, {})
  assert.deepEqual([paused.status, paused.code, paused.retry_after], [400, 'MATCHMAKER_LOBBY_STOPPED', '1'])
  assert.equal(paused.metadata.failed_starts, 4)
  assert.equal(paused.metadata.exit_code, 3)
  assert.equal('log_lines' in paused.metadata, false)
  assert.match(paused.message, /The last 4 starts of this version failed/)
  assert.ok(paused.message.includes(`muster explain ${paused.ray_id}`), paused.message)
  const paused_game = await findAs(platform, token, as_game)
  assert.equal((paused_game.metadata.log_lines as string[]).length, 3)
  assert.equal(await lobbiesEver(platform, game), 4)
  const { explanation } = await platform.client.call(explainRay, { params: { ray_id: paused.ray_id } })
  const [attempt] = explanation.attempts
  assert.deepEqual([attempt?.outcome, attempt?.code], ['refused', 'MATCHMAKER_LOBBY_STOPPED'])
  const { count, pause, last_lobby_id } = attempt!.failed_starts!
  assert.deepEqual([count, last_lobby_id], [4, told.metadata.lobby_id])
  assert.ok(pause > 0)
  assert.deepEqual(
    explanation.lobbies.map(({ exit_code, log_lines }) => [exit_code, log_lines.length]),
    [[3, 3]],
  )
})

/** Listens at a port of its own choice, prints it, and never calls ready. */
const LISTENS_ELSEWHERE = `
import { createServer } from 'node:net'
console.log('no map here')
createServer().listen(Number(process.env.PORT_GAME), '127.0.0.1')
createServer().listen(0, '127.0.0.1', function () { console.log('http ' + this.address().port) })
process.on('SIGTERM', () => process.exit(0))
`

test('a server that is never ready is explained with the ports that it listens on, and those that it does not', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner' })
  const { ctx } = platform
  const http = { protocol: 'http' as const }
  const game = await platform.game({
    files: { 'server.mjs': LISTENS_ELSEWHERE },
    docker: { ports: { game: http, admin: http } },
    matchmaker: { game_modes: { default: {}, quick: { ready_deadline_ms: 5_000 } } },
  })
  const { token } = await platform.client.call(createCloudToken, { params: { game_id: game.game_id } })
  const seen = (count: number) =>
    until(`the ports of ${count} runs to be checked`, async () => {
      const rows = await ctx.db.selectFrom('lobby_runs').selectAll().where('listening', 'is not', null).execute()
      return rows.filter(({ listening }) => listening!.others!.length === 1).length >= count && rows
    })
  const as_game = { namespace_id: game.namespace_id, clients: [{ address: '203.0.113.7' }] }
  const late = findAs(platform, token, as_game)
  const [run] = await seen(1)
  const [other] = run!.listening!.others!
  const { remedy, ...listening } = run!.listening!
  assert.deepEqual(listening, { open: ['game'], shut: ['admin'], others: [other] })
  assert.match(remedy!, /^Read PORT_ADMIN(, or set `port: \d+`)? for the port admin\.$/)
  assert.match(other!, /^tcp 127\.0\.0\.1:\d+$/)
  platform.advance(50_000)
  const refusal = await late
  assert.deepEqual([refusal.status, refusal.code], [503, 'MATCHMAKER_LOBBY_NOT_STARTED'])
  assert.equal(refusal.metadata.lobby_id, run!.lobby_id)
  const where = `Its server does not listen on PORT_ADMIN, only on PORT_GAME. It listens on ${other}. ${remedy}`
  assert.ok(refusal.message.includes(where), refusal.message)
  assert.ok(refusal.message.includes(`muster explain ${refusal.ray_id}`), refusal.message)
  const [first, second, note] = refusal.metadata.log_lines as string[]
  assert.deepEqual([first, second], ['no map here', `http ${other!.split(':')[1]}`])
  assert.ok(note!.includes('it does not listen on PORT_ADMIN (tcp '), note!)
  assert.ok(note!.endsWith(`It listens on ${other}. ${remedy}`), note!)

  const { explanation } = await platform.client.call(explainRay, { params: { ray_id: refusal.ray_id } })
  assert.deepEqual(explanation.lobbies[0]?.listening, run!.listening)

  const stopped = findAs(platform, game.public_token, { game_modes: ['quick'] })
  for (const count of [2, 3, 4]) {
    await seen(count)
    platform.advance(5_000)
  }
  const { code, message, metadata } = await stopped
  assert.deepEqual([code, metadata.exit_reason, metadata.exit_code], ['MATCHMAKER_LOBBY_STOPPED', 'never_ready', -1])
  assert.match(
    message,
    /was not ready in time\. Its server does not listen on PORT_ADMIN, only on PORT_GAME\. It listens on tcp /,
  )
})

/** The servers of a game's lobbies, played by the test. A lobby is given out once, however late its row says what became of it. */
function serversOf(platform: Platform, game: TestGame) {
  const seen = new Set<string>()
  async function next(): Promise<string> {
    const lobby_id = await until('another starting lobby', async () =>
      (await platform.startingLobbies(game, 0)).find((id) => !seen.has(id)),
    )
    seen.add(lobby_id)
    return lobby_id
  }
  return {
    async fail(count: number, end?: Parameters<Platform['endRun']>[1]): Promise<void> {
      for (let failed = 0; failed < count; failed++) {
        const lobby_id = await next()
        await platform.endRun(lobby_id, end)
        assert.equal(await platform.stopReasonOf(lobby_id), 'exited')
      }
    },
    async ready(): Promise<string> {
      const lobby_id = await next()
      await platform.makeReady(game, lobby_id)
      return lobby_id
    },
  }
}

test('starts of a failing version pause twice as long each time; a new version begins without a pause', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const servers = serversOf(platform, game)
  const failedFind = async (start_count: number): Promise<void> => {
    const failure = failureOf(game.find())
    await servers.fail(start_count)
    assert.equal((await failure).code, 'MATCHMAKER_LOBBY_STOPPED')
  }
  const pausedFind = async (): Promise<number | undefined> => {
    const error = await platform.refuses('MATCHMAKER_LOBBY_STOPPED', () => game.find())
    return error.retry_after_s
  }
  await failedFind(3)
  await failedFind(1)
  for (const pause_s of [1, 2, 4]) {
    assert.equal(await pausedFind(), pause_s)
    platform.advance(pause_s * 1_000)
    await failedFind(1)
  }
  assert.equal(await pausedFind(), 8)
  await platform.deploy(game, MODES)
  const [{ lobby }, lobby_id] = await Promise.all([game.find(), servers.ready()])
  assert.equal(lobby.lobby_id, lobby_id)

  // What the platform lost is no fault of the version: no pause follows.
  const mode = { game_modes: ['unlisted'] }
  const lost = failureOf(game.find(mode))
  await servers.fail(3, { exit_code: null, exit_reason: 'lost' })
  assert.deepEqual((await lost).metadata.exit_code, -1)
  const again = failureOf(game.find(mode))
  await servers.fail(3, { exit_code: null, exit_reason: 'lost' })
  assert.equal((await again).code, 'MATCHMAKER_LOBBY_STOPPED')
  await Promise.all([game.find(mode), servers.ready()])
})

test('a start that succeeds ends the pauses, and lobbies that run are found during one', async (t) => {
  const platform = await startPlatform(t)
  const game_modes = { default: { max_players: 2, idle_grace_ms: LONG_MS } }
  const game = await platform.game({ matchmaker: { game_modes } })
  const servers = serversOf(platform, game)
  const full = await Promise.all([game.find(), servers.ready()])
  assert.equal((await game.find()).lobby.lobby_id, full[1])
  const failedFind = async (start_count: number): Promise<void> => {
    const failure = failureOf(game.find())
    await servers.fail(start_count)
    assert.equal((await failure).code, 'MATCHMAKER_LOBBY_STOPPED')
  }
  await failedFind(3)
  await failedFind(1)
  const player_token = full[0].player.token
  const server = platform.serverOf(game, full[1])
  await server.call(playerConnected, { body: { player_token } })
  await server.call(playerDisconnected, { body: { player_token } })
  assert.equal((await game.find()).lobby.lobby_id, full[1], 'the pause keeps nobody out of a lobby that runs')
  assert.equal((await failureOf(game.find())).retry_after_s, 1)
  platform.advance(1_000)
  const [{ lobby }, fresh_id] = await Promise.all([game.find(), servers.ready()])
  assert.equal(lobby.lobby_id, fresh_id)
  assert.equal((await game.find()).lobby.lobby_id, fresh_id)
  // Forgotten: one request makes three attempts again.
  await failedFind(3)
})
