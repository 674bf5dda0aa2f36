// Which lobbies there were, page by page and as CSV.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  createGameVersion,
  deleteMatchmakerLobby,
  exportMatchmakerLobbyHistory,
  getGameVersionById,
  getLobbyUsage,
  getNamespaceLobby,
  type LobbyUsagePoint,
  type LogsLobbySummary,
  listNamespaceLobbies,
  type QueryOf,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import { idOfName } from '../../../src/ids.ts'
import { STEP_MS_MIN } from '../../../src/lobby-logs/lobby-metrics.ts'
import { unfinishedFolder } from '../../../src/runner/folders/names.ts'
import { LONG_MS } from '../../http/steps.ts'
import { type Platform, startPlatform, type TestGame } from '../../support/platform.ts'
import { failureOf } from '../../support/refusal.ts'
import { until } from '../../support/until.ts'
import { fetchSigned, talkingGame, talkingLobby, wholeLog } from './talking-server.ts'

async function page({ client }: Platform, game: TestGame, before_create_ts?: string): Promise<LogsLobbySummary[]> {
  const { game_id, namespace_id } = game
  const query = before_create_ts === undefined ? {} : { before_create_ts }
  return (await client.call(listNamespaceLobbies, { params: { game_id, namespace_id }, query })).lobbies
}

/** Rows as the matchmaker projects them, `every_ms` between two; the first was created at `first_ms`. */
async function insertLobbies({ ctx }: Platform, game: TestGame, count: number, first_ms: number, every_ms: number) {
  await ctx.pool.query(
    `insert into lobbies (lobby_id, namespace_id, shard, version_id, game_mode, region, publicity, is_custom, is_closed,
        max_players_normal, max_players_direct, max_players_party, tags, player_count, player_deadline_ms, idle_grace_ms,
        create_ts, ready_deadline_ts, stop_ts, stop_reason)
      select gen_random_uuid(), $1, 0, $2, 'default', 'local', 'public', false, false, 1, 1, 1, '{}', 0, 1, 1,
        $3::timestamptz + n * $4 * interval '1 ms', now(), now(), 'idle' from generate_series(0, $5 - 1) n`,
    [game.namespace_id, game.version_id, new Date(first_ms), every_ms, count],
  )
}

/** The rows of a CSV file, by RFC 4180. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]]
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/y
  while (cell.lastIndex < text.length) {
    const [, quoted, plain, end] = cell.exec(text) ?? assert.fail(`no CSV at ${cell.lastIndex}`)
    rows.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain ?? '')
    if (end === '\r\n') rows.push([])
  }
  assert.deepEqual(rows.pop(), [], 'the last row is ended too')
  return rows
}

async function history(platform: Platform, { game_id }: TestGame, query_start: number, query_end: number) {
  const body = { query_start, query_end }
  const { url } = await platform.client.call(exportMatchmakerLobbyHistory, { params: { game_id }, body })
  assert.match(new URL(url).pathname, /\/export\.csv$/)
  const response = await fetchSigned(platform, url)
  assert.equal(response.status, 200)
  const text = await response.text()
  const [names, ...rows] = parseCsv(text)
  return { text, rows: rows.map((row) => Object.fromEntries(names!.map((name, index) => [name, row[index]!]))) }
}

test('pages of the newest lobbies leave none out, also where many were created in one moment', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  const start_ms = Date.parse('2026-03-01T00:00:00Z')
  await insertLobbies(platform, game, 100, start_ms, 1)
  await insertLobbies(platform, game, 90, start_ms + 50, 0)
  const seen: LogsLobbySummary[] = []
  const sizes: number[] = []
  for (let lobbies = await page(platform, game); lobbies.length > 0; ) {
    seen.push(...lobbies)
    sizes.push(lobbies.length)
    lobbies = await page(platform, game, lobbies.at(-1)!.create_ts)
  }
  assert.deepEqual(sizes, [49 + 91, 50])
  assert.equal(new Set(seen.map(({ lobby_id }) => lobby_id)).size, 190)
  const times = seen.map(({ create_ts }) => create_ts)
  assert.deepEqual(times, times.toSorted().reverse())
  for (const far of ['0000-01-01T00:00:00Z', '0001-01-01T00:00:00+23:59']) {
    assert.deepEqual(await page(platform, game, far), [])
  }
  assert.equal((await page(platform, game, '9999-12-31T23:59:59-23:59')).length, 140)
})

test('a lobby that has stopped has an exit code, also where none was seen', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker' })
  const game = await platform.game()
  await insertLobbies(platform, game, 4, Date.parse('2026-03-01T00:00:00Z'), 1_000)
  const ids = (await page(platform, game)).map(({ lobby_id }) => lobby_id)
  const runs: [string, string, number | null][] = [
    [ids[0]!, 'exit', 0],
    [ids[1]!, 'no_such_file', null],
    [ids[2]!, 'lost', null],
  ]
  for (const [lobby_id, exit_reason, exit_code] of runs) {
    await platform.ctx.pool.query(
      `insert into lobby_runs (lobby_id, runner_id, driver, handle, ports, start_ts, exit_ts, exit_reason, exit_code)
        values ($1, gen_random_uuid(), 'process', '{}', '{}', now(), now(), $2, $3)`,
      [lobby_id, exit_reason, exit_code],
    )
  }
  assert.deepEqual(
    (await page(platform, game)).map(({ status }) => status.stopped?.exit_code),
    [0, 127, -1, -1],
    'of its own, for want of a program, unseen, never started',
  )
  await platform.ctx.pool.query("update lobbies set stop_reason = 'never_ready' where lobby_id = $1", [ids[2]])
  assert.deepEqual(
    (await page(platform, game)).map(({ status }) => [status.stopped?.exit_reason, status.stopped?.failed]),
    [
      ['exit', true],
      ['no_such_file', true],
      ['never_ready', true],
      [undefined, false],
    ],
    'also a server that exits with 0 before it is ready',
  )
})

test('a lobby is returned from its creation to how it ended, with its logs', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner' })
  const game = await talkingGame(platform)
  const running = await talkingLobby(platform, game, { std_out: 'hello\n' })
  const failed = await talkingLobby(platform, game, { std_err: 'no map\n', exit_code: 3 })
  await wholeLog(platform, game, failed)
  const params = (lobby_id: string) => ({ game_id: game.game_id, namespace_id: game.namespace_id, lobby_id })
  const tell = (lobby_id: string) => platform.client.call(getNamespaceLobby, { params: params(lobby_id) })

  const { lobby: alive, stdout_presigned_urls } = await until('its readiness is in the tables', async () => {
    const answer = await tell(running)
    return answer.lobby.ready_ts !== undefined && answer
  })
  assert.deepEqual([alive.lobby_id, alive.namespace_id], [running, game.namespace_id])
  assert.deepEqual([alive.lobby_group_name_id, alive.region_id], ['default', idOfName('local')])
  const live = { is_idle: false, is_closed: false, is_stalled: false, is_outdated: false }
  assert.deepEqual(alive.status, { live, running: {} })
  assert.ok(alive.create_ts <= alive.start_ts! && alive.start_ts! <= alive.ready_ts!)
  assert.match(await (await fetchSigned(platform, stdout_presigned_urls[0]!)).text(), /Z hello\n$/)

  const { lobby: dead, stderr_presigned_urls } = await until('its end is in the tables', async () => {
    const answer = await tell(failed)
    return answer.lobby.status.stopped !== undefined && answer
  })
  assert.equal(dead.ready_ts, undefined)
  assert.equal(dead.status.live, undefined)
  const { stop_ts, ...how } = dead.status.stopped!
  assert.ok(stop_ts >= dead.create_ts)
  assert.deepEqual(how, { failed: true, exit_code: 3, exit_reason: 'exit' })
  assert.match(await (await fetchSigned(platform, stderr_presigned_urls[0]!)).text(), /Z no map\n$/)
  assert.deepEqual(
    (await page(platform, game)).map(({ lobby_id }) => lobby_id),
    [failed, running],
  )
  const other = await platform.game()
  const elsewhere = { ...params(running), namespace_id: other.namespace_id, game_id: other.game_id }
  const refusal = await failureOf(platform.client.call(getNamespaceLobby, { params: elsewhere }))
  assert.equal(refusal.code, 'LOBBY_NOT_FOUND')
})

test('a lobby is returned with what it used over its life, and with the request that started it, also when it is over', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner' })
  const { client } = platform
  const game = await talkingGame(platform)
  const lobby_id = await talkingLobby(platform, game)
  const { game_id, namespace_id } = game
  const tell = () => client.call(getNamespaceLobby, { params: { game_id, namespace_id, lobby_id } })

  const { metrics: first, lobby } = await until('its usage has been measured', async () => {
    const answer = await tell()
    return answer.metrics !== undefined && answer
  })
  const { ctx } = platform
  const [region] = ctx.config.regions
  const allocated = region!.tiers.find(({ tier_name_id }) => tier_name_id === region!.default_tier)!.memory * 1024 ** 2
  assert.deepEqual([first!.job, first!.start_ts, first!.step], [lobby_id, lobby.start_ts, STEP_MS_MIN])
  assert.equal(first!.allocated_memory, allocated)
  assert.ok(first!.memory[0]! > 0 && first!.memory[0]! < allocated, `${first!.memory[0]} bytes`)

  platform.advance(10 * STEP_MS_MIN)
  const { metrics: later, perf_lists } = await until('its usage has been measured again', async () => {
    const answer = await tell()
    return answer.metrics!.cpu.length > 10 && answer
  })
  assert.equal(later!.memory.length, later!.cpu.length)
  // A server that does nothing takes a few megabytes, and little processor time. The first measurement may see its start.
  const [memory, cpu] = [Math.max(...later!.memory), Math.max(...later!.cpu)]
  assert.ok(memory > 1e6 && memory < allocated, `${memory} bytes`)
  assert.ok(cpu > 0 && cpu < 8, `${cpu} cores`)
  const services = perf_lists.map(({ svc_name, operation }) => [svc_name, operation])
  assert.deepEqual(services, [
    ['matchmaker', 'lobbies.create'],
    ['runner', 'lobby.start'],
  ])
  const { spans } = perf_lists[1]!
  assert.ok(spans.some(({ label }) => label === 'process'))

  await client.call(deleteMatchmakerLobby, { params: { game_id, lobby_id } })
  await wholeLog(platform, game, lobby_id)
  const unfinished = join(unfinishedFolder(join(platform.data_dir, 'lobbies')), lobby_id)
  await until('it has been put away', () => !existsSync(unfinished))
  const over = (await tell()).metrics!
  assert.ok(over.cpu.length >= later!.cpu.length)
  assert.deepEqual(over.memory.slice(0, 10), later!.memory.slice(0, 10))
})

test('the usage of a lobby has its traffic and its players over time, in steps as long as the caller requests', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  const game = await talkingGame(platform)
  const lobby_id = await talkingLobby(platform, game)
  const { game_id } = game
  const usage = (query: QueryOf<typeof getLobbyUsage> = {}) =>
    platform.client.call(getLobbyUsage, { params: { game_id, lobby_id }, query })
  const sent = 300_000
  const body = JSON.stringify({ text: 'x'.repeat(sent) })
  const response = await fetch(`${platform.edge_url}/lobbies/${lobby_id}/game/std_out`, { method: 'POST', body })
  assert.equal(response.status, 200)

  const sumOf = (points: readonly LobbyUsagePoint[], name: 'bytes_in' | 'bytes_out'): number =>
    points.reduce((sum, point) => sum + (point[name] ?? 0), 0)
  // A sample may have a part of the body. The bytes that arrived together with the head of the request are not counted.
  const { points, step_ms, memory_bytes } = await until('the traffic and the player have been counted', async () => {
    const answer = await usage()
    const has_player = answer.points.some(({ player_count }) => player_count === 1)
    return sumOf(answer.points, 'bytes_in') > sent / 2 && has_player && answer
  })
  assert.equal(step_ms, STEP_MS_MIN)
  const [bytes_in, bytes_out] = [sumOf(points, 'bytes_in'), sumOf(points, 'bytes_out')]
  assert.ok(bytes_in < 2 * sent, `${bytes_in} bytes`)
  assert.ok(bytes_out > 0 && bytes_out < sent, `${bytes_out} bytes`)
  assert.equal(Math.max(...points.map(({ player_count = 0 }) => player_count)), 1)
  assert.ok(points.every((point) => point.memory_bytes <= memory_bytes))

  const longer = await usage({ step_ms: 86_400_000 })
  assert.ok(longer.step_ms >= 86_400_000)
  assert.equal(longer.points.length, 1)
  assert.ok(sumOf(longer.points, 'bytes_in') >= bytes_in)
  const other = await platform.game()
  const elsewhere = platform.client.call(getLobbyUsage, { params: { game_id: other.game_id, lobby_id } })
  assert.equal((await failureOf(elsewhere)).code, 'LOBBY_NOT_FOUND')
})

test('the history of a game is a CSV file of all its namespaces, in which no word of a stranger is a formula', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const { client, ctx } = platform
  const game = await platform.game({
    matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS, taggable: true } } },
  })
  const { game_id, namespace_id } = game
  const { version } = await client.call(getGameVersionById, { params: { game_id, version_id: game.version_id } })
  const display_name = `=HYPERLINK("http://evil.example","x"),'"`
  const { version_id } = await client.call(createGameVersion, {
    params: { game_id },
    body: { display_name, config: version.config },
  })
  await platform.notified(
    client.call(updateGameNamespaceVersion, { params: { game_id, namespace_id }, body: { version_id } }),
  )
  const start_ms = ctx.now()
  const tags = { '=1+1': '@SUM(A1)\r\n"x",y' }
  const seats = [await game.find({ tags }), await game.find({ tags })]
  const [lobby_id] = seats.map(({ lobby }) => lobby.lobby_id)
  await platform.endRun(lobby_id!)
  await until('the end is in the tables', async () => (await page(platform, game))[0]?.status.stopped)
  const { rows, text } = await history(platform, game, start_ms, ctx.now() + 1)
  assert.equal(rows.length, 1)
  const [row] = rows as [Record<string, string>]
  assert.deepEqual([row.lobby_id, row.namespace, row.game_mode, row.region], [lobby_id, 'prod', 'default', 'local'])
  assert.deepEqual([row.version_id, row.version], [version_id, `'${display_name}`])
  assert.deepEqual(JSON.parse(row.tags!), tags)
  assert.deepEqual([row.players, row.stop_reason, row.exit_code, row.failed], ['2', 'exited', '1', 'true'])
  for (const cell of parseCsv(text).flat()) assert.doesNotMatch(cell, /^[=+\-@]/)

  // The window: its first moment is in it, its end is not.
  const create_ms = Date.parse(row.create_ts!)
  assert.equal((await history(platform, game, create_ms, create_ms + 1)).rows.length, 1)
  assert.equal((await history(platform, game, create_ms + 1, create_ms + 1)).rows.length, 0)
  assert.equal((await history(platform, game, 0, create_ms)).rows.length, 0)
  const backwards = await failureOf(history(platform, game, 2, 1))
  assert.deepEqual(
    [backwards.code, (backwards.metadata as { errors: { path: string[] }[] }).errors[0]!.path],
    ['VALIDATION_ERROR', ['query_end']],
  )
  // More than one question's worth, many of them in one moment.
  await insertLobbies(platform, game, 1_500, create_ms + 5_000, 0)
  await insertLobbies(platform, game, 1_100, create_ms + 5_000, 1)
  const many = await history(platform, game, create_ms + 1, create_ms + 60_000)
  assert.equal(new Set(many.rows.map((one) => one.lobby_id)).size, 2_600)
  assert.equal(many.rows.length, 2_600)
})
