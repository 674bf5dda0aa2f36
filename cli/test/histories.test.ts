// What happened over time: the usage of a lobby, the audit log as CSV, and logs that are longer than one response.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  findLobby,
  getLobbyUsage,
  listGroupAuditEvents,
  type ResponseOf,
  updateGameNamespaceMatchmakerConfig,
} from '@musterhost/contract'
import { createShapeCheck } from '@musterhost/contract/schema-check'
import { LEAST_SERVER } from '../../server/test/support/builds.ts'
import { type Platform, startPlatform, type TestGame } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { bars } from '../src/watch/usage.ts'
import { createMuster, type Muster } from './program.ts'

type World = { platform: Platform; game: TestGame; muster: Muster }

const LINES = 20_000
const SERVER = `
const http = process.getBuiltinModule('node:http')
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME } = process.env
for (let line = 0; line < ${LINES}; line++) console.log('line ' + line)
console.log('the last line')
http.createServer((request, answer) => answer.end('lobby')).listen(Number(PORT_GAME), '127.0.0.1', () => {
  const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
  http.request(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }).end()
})
`
/** More than the events of two responses. */
const EVENTS = 410

test('bars show the course of numbers, the highest of several where there are more than fit', () => {
  assert.equal(bars([0, 1, 2, 4, 8]), '▁▂▃▅█')
  assert.equal(bars([0, 0]), '▁▁')
  assert.equal(bars([undefined, 3]), ' █')
  const many = bars(Array.from({ length: 240 }, (_, index) => (index === 100 ? 9 : 0)))
  assert.equal(many.length, 15)
  assert.equal([...many].filter((bar) => bar === '█').length, 1)
})

test('histories of the command line', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  const game = await platform.game({
    files: { 'server.mjs': SERVER },
    matchmaker: { game_modes: { default: { idle_grace_ms: 600_000 } } },
  })
  const env = { MUSTER_URL: platform.edge_url, MUSTER_TOKEN: platform.token, GAME_ID: game.name_id }
  const world: World = { platform, game, muster: createMuster(t, env, { in_threads: true }) }
  const { lobby } = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  await t.test('a lobby shows its usage over time, with the names of the API as JSON', () =>
    usage(world, lobby.lobby_id),
  )
  await t.test('the last lines are found in a log that is longer than a response', () => longLog(world))
  await t.test('lobbies are listed by both names, and a lobby is named by its id alone', async () => {
    for (const args of [['lobbies'], ['lobbies', 'list'], ['lobbies', 'list', '--mode', 'default']]) {
      const { stdout, code, stderr } = await world.muster.run(args)
      assert.deepEqual(
        [code, stdout.includes(lobby.lobby_id.slice(-6))],
        [0, true],
        `${args.join(' ')}: ${stderr}${stdout}`,
      )
    }
    for (const args of [[lobby.lobby_id], [lobby.lobby_id.slice(-12)], ['--lobby', lobby.lobby_id]]) {
      const { stdout, code, stderr } = await world.muster.run(['logs', ...args, '-n', '1'])
      assert.deepEqual([code, stdout.trimEnd().endsWith('the last line')], [0, true], `${stderr}${stdout}`)
    }
  })
  await t.test('a lobby that has ended without a word says so, and one that runs may still write', async () => {
    const silent = await platform.game({ files: { 'server.mjs': LEAST_SERVER } })
    const run = (args: readonly string[]) => world.muster.run(args, { env: { GAME_ID: silent.name_id } })
    const seat = await silent.player.call(findLobby, { body: { game_modes: ['default'] } })
    assert.match((await run(['logs', seat.lobby.lobby_id])).stderr, /^Nothing was written yet\.$/m)
    assert.equal((await run(['stop', '--yes', seat.lobby.lobby_id])).code, 0)
    await until('the log has ended', async () =>
      /^Nothing was written\.$/m.test((await run(['logs', seat.lobby.lobby_id])).stderr),
    )
  })
  await t.test('the audit log is CSV through all its pages, with the columns of an exported file', () => csv(world))
})

async function usage({ muster, platform, game }: World, lobby_id: string): Promise<void> {
  const params = { game_id: game.game_id, lobby_id }
  await until('usage was measured', async () => {
    const { points } = await platform.client.call(getLobbyUsage, { params, query: {} })
    return points.some(({ player_count }) => player_count === 1)
  })
  const shown = (await muster.json(['lobby', lobby_id])) as { usage: ResponseOf<typeof getLobbyUsage> }
  assert.deepEqual(createShapeCheck(getLobbyUsage.response)(shown.usage), [])
  const { code, stdout, stderr } = await muster.run(['lobby', lobby_id])
  assert.equal(code, 0, stderr)
  const rows = stdout.slice(stdout.indexOf('OVER ')).trimEnd().split('\n')
  assert.match(rows[0]!, /^OVER \d+ (s|min) +LAST +MEAN +PEAK +LIMIT +COURSE$/)
  const names = rows.slice(1).map((row) => row.slice(0, rows[0]!.indexOf('LAST') - 2).trim())
  for (const name of ['CPU', 'memory', 'from players', 'to players', 'players']) {
    assert.ok(
      names.some((one) => one.startsWith(name)),
      stdout,
    )
  }
  assert.match(stdout, /^CPU .* cores +\d+\.\d\d cores +\d+\.\d\d cores +\d+\.\d\d cores +[▁-█]+$/m)
  assert.match(stdout, /^players +(\d|-) +[\d.]+ +1 +[▁-█ ]+$/m)
}

async function longLog({ muster }: World): Promise<void> {
  await until('the log is whole', async () => {
    const { stdout } = await muster.run(['logs', '-n', '1'])
    return stdout.includes('the last line')
  })
  const { stdout, code, stderr } = await muster.run(['logs', '--json', '--filter', '^line 1[0-9]*$', '-n', '3'])
  assert.equal(code, 0, stderr)
  const lines = stdout.trimEnd().split('\n')
  assert.deepEqual(
    lines.map((line) => (JSON.parse(line) as { text: string }).text),
    ['line 19997', 'line 19998', 'line 19999'],
  )
}

async function csv({ muster, platform, game }: World): Promise<void> {
  const params = { game_id: game.game_id, namespace_id: game.namespace_id }
  for (let count = 0; count < EVENTS; count++) {
    const body = { lobby_count_max: 10 + count }
    await platform.client.call(updateGameNamespaceMatchmakerConfig, { params, body })
  }
  const operation = 'games.namespaces.updateGameNamespaceMatchmakerConfig'
  const audit = (...args: string[]) => muster.run(['audit', '--group', game.group_id, ...args])
  const { code, stdout, stderr } = await audit('--csv', '--operation', operation)
  assert.equal(code, 0, stderr)
  const [head, ...rows] = stdout.trimEnd().split('\n')
  assert.equal(
    head,
    'event_id,create_ts,group_id,game_id,namespace_id,actor_kind,user_id,name,token_id,client_ip,ray_id,operation,outcome,code,changes,dropped_count',
  )
  assert.equal(rows.length, EVENTS)
  const { events } = await platform.client.call(listGroupAuditEvents, {
    params: { group_id: game.group_id },
    query: { operation, limit: 1 },
  })
  assert.ok(
    String(rows[0]).includes(events[0]!.event_id) && String(rows[0]).includes(`""after"":""${9 + EVENTS}""`),
    `${rows[0]}`,
  )
  const some = await audit('--csv', '-n', '205')
  assert.equal(some.stdout.trimEnd().split('\n').length, 206)
  assert.match(some.stderr, /There are older events/)
  const both = await audit('--csv', '--json')
  assert.deepEqual([both.code, both.stderr.includes('--csv and --json exclude each other')], [2, true])
}
