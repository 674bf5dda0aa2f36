// The commands that read or change one thing, and those that watch a namespace, against a real platform with a real lobby.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  createCloudToken,
  explainRay,
  findLobby,
  getAnalytics,
  getAnalyticsMatchmakerLive,
  getGameById,
  getGameNamespaceById,
  getGames,
  getGroupMembers,
  getGroupSummary,
  getKvEntry,
  getNamespaceLobby,
  getUsage,
  inspectAuth,
  listGameBuilds,
  listGameCdnSites,
  listGameCloudTokens,
  listGameNamespaceTokensPublic,
  listGameRays,
  listGroupAuditEvents,
  listGroups,
  listKvEntries,
  listNamespaceLobbies,
  listRatings,
  listSchedules,
  type NoticeTarget,
  type Operation,
  type Schedule,
  searchGame,
} from '@musterhost/contract'
import { createShapeCheck } from '@musterhost/contract/schema-check'
import { newId } from '../../server/src/ids.ts'
import { type Platform, startPlatform, type TestGame } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { createMuster, type Muster, openScreen } from './program.ts'

type World = { platform: Platform; game: TestGame; muster: Muster }

/** It writes what a log may have, and then is ready. It writes a line for each request. */
const SERVER = `
const http = process.getBuiltinModule('node:http')
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME } = process.env
console.log('one plain line')
console.log(JSON.stringify({ level: 50, msg: 'a line of pino' }))
console.error('[WARN] something is odd')
process.stdin.on('data', (text) => console.log('read ' + String(text).trim().split('\\n').join(' and read ')))
http.createServer((request, answer) => { console.log('asked for ' + request.url); answer.end('lobby') })
  .listen(Number(PORT_GAME), '127.0.0.1', () => {
    const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
    http.request(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }).end()
  })
process.on('SIGTERM', () => process.exit(0))
`
const DAY_MS = 24 * 60 * 60_000
const LONG_MS = 10 * 60_000

test('commands for games, namespaces and what happens in them', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  const game = await platform.game({
    files: { 'server.mjs': SERVER },
    matchmaker: { game_modes: { default: { idle_grace_ms: LONG_MS } } },
    docker: { standard_input: true },
  })
  const env = { MUSTER_URL: platform.edge_url, MUSTER_TOKEN: platform.token, GAME_ID: game.name_id }
  const world: World = { platform, game, muster: createMuster(t, env, { in_threads: true }) }

  await t.test('games, namespaces and groups are created, shown, renamed and deleted', () => managed(world))
  await t.test('a cloud token expires when it was asked to', () => tokens(world))
  await t.test('limits and entries are read and changed', () => settings(world))
  await t.test('a target of notices keeps its filters until it is set about everything', () => notices(world))
  await t.test('a schedule is set, listed, run, paused and removed', () => schedules(world))
  await t.test('ratings are listed, exported and reset', () => ratings(world))
  await t.test('without a browser, open prints an address that is there, and says so', (t) => opensNothing(t, world))
  await t.test('a domain shows its DNS record, and waiting for it ends with 4', () => domains(world))
  await t.test('a lobby is found, listed, shown and explained', () => lobbies(world))
  await t.test('logs are filtered by time, text and level', () => logs(world))
  await t.test('logs -f prints new lines until Ctrl-C', (t) => follow(t, world))
  await t.test('--json of every reading command has the form of the contract', () => shapes(world))
  await t.test('rays, search and the audit log show what happened', () => happened(world))
  await t.test('doctor examines the platform that is chosen, for its administrators', () => examined(world))
  await t.test('a console writes to the server of a lobby', (t) => console_(t, world))
  await t.test('a version drains, and a lobby stops', () => stopped(world))
  await t.test('what is misspelt, foreign or forbidden is refused with the reason', (t) => refusals(t, world))
  await t.test('nothing is deleted without consent', (t) => consent(t, world))
})

/** Exit code 0, and the text of stdout. */
async function done(muster: Muster, args: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await muster.run(args, input === undefined ? {} : { input })
  assert.equal(code, 0, `muster ${args.join(' ')}: ${stderr}`)
  return stdout
}

async function notices({ muster, game }: World): Promise<void> {
  const set = (...args: string[]): string[] => [
    'notices',
    'set',
    'phone',
    '--kind',
    'ntfy',
    '--events',
    'token_made',
    ...args,
  ]
  const target = async () => {
    const { targets } = (await muster.json(['notices'])) as { targets: NoticeTarget[] }
    return targets.find(({ name }) => name === 'phone')!
  }
  await done(muster, set('--topic', 'muster-8fk2m9x1', '--access-token', '--only-namespace', 'prod'), 'tk_secret')
  assert.deepEqual((await target()).namespace_ids, [game.namespace_id])
  await done(muster, set('--pause'))
  const paused = await target()
  assert.deepEqual([paused.namespace_ids, paused.is_paused], [[game.namespace_id], true])
  await done(muster, set('--only-game', game.name_id))
  assert.deepEqual([(await target()).game_ids, (await target()).namespace_ids], [[game.game_id], undefined])
  await done(muster, set('--everything'))
  assert.equal((await target()).game_ids, undefined)
  const { code, stderr } = await muster.run(set('--only-namespace', 'prodd'))
  assert.deepEqual([code, stderr.includes('There is no namespace prodd. Did you mean prod?')], [1, true])
}

async function schedules({ muster, platform, game }: World): Promise<void> {
  const times = ['--cron', '0 5 * * *', '--zone', 'Europe/Berlin']
  const set = ['schedules', 'set', 'nightly', '--kind', 'restart', ...times, '--deadline', '30m']
  const list = async () =>
    (await platform.client.call(listSchedules, { params: { game_id: game.game_id }, query: {} })).schedules
  await done(muster, [...set, '--before', '15m:Restart in {minutes} minutes', '5m:Soon: {minutes}'])
  const { schedules } = (await muster.json(['schedules'])) as { schedules: Schedule[] }
  const [made] = schedules
  assert.deepEqual(made!.announce_before, [
    { before_s: 900, text: 'Restart in {minutes} minutes' },
    { before_s: 300, text: 'Soon: {minutes}' },
  ])
  assert.deepEqual([made!.deadline_s, made!.is_paused, made!.next.length], [1_800, false, 5])
  await done(muster, ['schedules', 'pause', 'nightly'])
  assert.deepEqual(await list(), [{ ...made, is_paused: true }], 'a pause changes nothing else')
  await done(muster, ['schedules', 'run', 'nightly'])
  await until('the run has ended', async () => (await list())[0]!.last_run?.outcome === 'done')
  const misspelt = await muster.run(['schedules', 'run', 'nigthly'])
  assert.match(misspelt.stderr, /has no schedule nigthly. Did you mean nightly\?/)
  await done(muster, ['schedules', 'remove', 'nightly', '--yes'])
  assert.deepEqual(await list(), [])
}

async function examined({ muster, platform, game }: World): Promise<void> {
  const { stdout, stderr } = await muster.run(['doctor'])
  assert.equal(stderr, `Examining the platform at ${platform.edge_url} (this machine: muster doctor --here)\n`)
  assert.match(stdout, /^ok +data folder /m)
  assert.match(stdout, new RegExp(`\nThe platform at ${platform.edge_url} runs`))
  const checks = (await muster.json(['doctor'])) as { url: string; findings: { check: string }[] }
  assert.equal(checks.url, platform.edge_url)
  assert.ok(checks.findings.some(({ check }) => check === 'database'))
  const { game_id } = game
  const { token } = await platform.client.call(createCloudToken, { params: { game_id }, body: {} })
  const other = await muster.run(['doctor'], { env: { MUSTER_TOKEN: token } })
  assert.equal(other.code, 3)
  assert.match(other.stderr, /are for its administrators\.\nExamine this machine: muster doctor --here/)
}

async function managed({ muster, platform }: World): Promise<void> {
  const { game_id } = (await muster.json(['games', 'create', 'second', '--display-name', 'Second one'])) as {
    game_id: string
  }
  const listed = await done(muster, ['games'])
  assert.match(listed, /^GAME +NAME +GROUP +PLAYERS +CREATED +SITE\n/)
  assert.match(listed, /\nsecond +Second one +Developers +0 +(now|\d+ \w+ ago) +http/)
  await done(muster, ['games', 'rename', 'second', 'Renamed'])
  const second = ['--game', 'second']
  assert.match(
    await done(muster, ['games', 'get', 'second']),
    /name: +Renamed[\s\S]*NAMESPACE[\s\S]*prod[\s\S]*staging|staging[\s\S]*prod/,
  )
  await done(muster, ['namespaces', 'create', 'beta', ...second])
  await done(muster, ['namespaces', 'rename', 'beta', 'For testers', ...second])
  assert.match(await done(muster, ['namespaces', ...second]), /\nbeta +For testers/)
  await done(muster, ['namespaces', 'delete', 'beta', '--yes', ...second])
  await done(muster, ['games', 'delete', game_id, '--yes'])
  assert.ok(!(await done(muster, ['games'])).includes('second'))

  await done(muster, ['groups', 'create', 'Others'])
  await done(muster, ['groups', 'rename', 'Others', 'Friends'])
  assert.match(await done(muster, ['groups', 'get', 'Friends']), /group: +Friends/)
  const { code } = (await muster.json([
    'members',
    'invite',
    '--group',
    'Friends',
    '--role',
    'viewer',
    '--expires',
    '7d',
  ])) as {
    code: string
  }
  assert.match(code, /^[A-Z0-9]{12}$/)
  await done(muster, ['groups', 'delete', 'Friends', '-y'])
  const { groups } = await platform.client.call(listGroups, {})
  assert.deepEqual(
    groups.map(({ display_name }) => display_name),
    ['Developers'],
  )
}

async function tokens({ muster, platform, game }: World): Promise<void> {
  const { token } = (await muster.json(['tokens', 'create', '--expires', '30d'])) as { token: string }
  const { agent } = await platform.as(token).call(inspectAuth, {})
  assert.deepEqual(agent, { game_cloud: { game_id: game.game_id } })
  const { tokens } = await platform.client.call(listGameCloudTokens, { params: { game_id: game.game_id } })
  const { token_id, create_ts, expire_ts } = tokens[0]!
  assert.equal(Date.parse(expire_ts!) - Date.parse(create_ts), 30 * DAY_MS)
  assert.match(await done(muster, ['tokens']), new RegExp(`${token_id} +.* in (29|30) d`))
  await done(muster, ['tokens', 'revoke', token_id])
  await assert.rejects(platform.as(token).call(inspectAuth, {}), { code: 'TOKEN_REVOKED' })
  const refused = await muster.run(['tokens', 'create', '--expires', 'soon'])
  assert.deepEqual([refused.code, refused.stderr.includes('It takes a number with a unit')], [2, true])
  assert.match(await done(muster, ['tokens', 'create', '--kind', 'public']), /^pub_prod\./)
}

async function ratings({ muster, platform, game }: World): Promise<void> {
  const { db, now } = platform.ctx
  const { namespace_id } = game
  const identity_id = newId(now())
  const seen = { create_ts: new Date(now()), seen_ts: new Date(now()) }
  await db
    .insertInto('identities')
    .values({ identity_id, namespace_id, display_name: '=Ada', account_number: 7, ...seen })
    .execute()
  const rating = { game_mode: 'default', mu: 27.5, sigma: 7.5, matches: 2, update_ts: new Date(now()) }
  await db
    .insertInto('ratings')
    .values({ namespace_id, identity_id, ...rating })
    .execute()
  assert.match(
    await done(muster, ['ratings', 'list']),
    new RegExp(`1 +=Ada#7 +5\\.00 +27\\.50 +7\\.50 +2 +${identity_id}\n`),
  )
  assert.match(await done(muster, ['ratings', 'show', identity_id]), /default +5\.00 +27\.50 +7\.50 +2 /)
  // A name is no formula of a spreadsheet.
  const [head, row, ...rest] = (await done(muster, ['ratings', 'export'])).trim().split('\n')
  assert.match(
    `${head}|${row}`,
    new RegExp(`^game_mode,identity_id,.*\\|default,${identity_id},"?'=Ada"?,7,27\\.5,7\\.5,5,2,`),
  )
  assert.deepEqual(rest, [])
  const line = JSON.parse(await done(muster, ['ratings', 'export', '--format', 'ndjson'])) as { mu: number }
  assert.equal(line.mu, 27.5)
  assert.equal((await muster.run(['ratings', 'reset', '--yes'])).code, 2)
  await done(muster, ['ratings', 'reset', '--identity', identity_id, '--yes'])
  assert.equal((await done(muster, ['ratings', 'export'])).trim(), head)
}

async function settings({ muster }: World): Promise<void> {
  assert.match(await done(muster, ['limits', 'set', 'lobby_count_max=20']), /lobby_count_max: +20\n/)
  const misspelt = await muster.run(['limits', 'set', 'lobby_cuont_max=20'])
  assert.deepEqual([misspelt.code, misspelt.stderr.includes('Did you mean lobby_count_max?')], [2, true])
  await done(muster, ['kv', 'put', 'players/ada', '{"score":3}'])
  await done(muster, ['kv', 'put', 'players/bob'], '{"score":4}')
  assert.deepEqual(JSON.parse(await done(muster, ['kv', 'get', 'players/bob'])), { score: 4 })
  assert.match(await done(muster, ['kv', 'list', 'players']), /players\/ada +\{"score":3\}\nplayers\/bob/)
  await done(muster, ['kv', 'delete', 'players/bob'])
  assert.equal((await done(muster, ['kv', 'get', 'players/bob'])).trim(), 'null')
  assert.equal((await muster.run(['kv', 'put', 'x', 'no json'])).code, 2)
  const site = await done(muster, ['open', '--namespace', 'staging'])
  assert.match(site, /^http:\/\/game[\w-]*--staging\.cdn\.localhost:\d+\/?\n$/)
  for (const page of ['docs', 'api']) {
    const url = (await done(muster, ['open', page])).trim()
    const { status, headers } = await fetch(url, { headers: { accept: 'text/html' } })
    assert.deepEqual([page, status, headers.get('content-type')], [page, 200, 'text/html; charset=utf-8'])
  }
}

async function opensNothing(t: TestContext, { muster }: World): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-opener-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  // As xdg-open on a machine without a browser.
  writeFileSync(join(folder, 'xdg-open'), '#!/bin/sh\nexit 3\n', { mode: 0o755 })
  const screen = openScreen(t, muster, ['open', 'docs'], { env: { PATH: `${folder}:${process.env.PATH}` } })
  if (screen === null) return
  assert.equal(await screen.ended, 0)
  assert.match(screen.text(), /^http:\S+\/docs\nNo browser could be started: open the address yourself\.\n$/)
}

async function domains({ muster }: World): Promise<void> {
  const claimed = await muster.run(['domains', 'add', 'play.example.com', '--timeout', '1s'])
  assert.equal(claimed.code, 4, claimed.stderr)
  assert.match(
    claimed.stderr,
    /play\.example\.com needs one of these DNS records:\n( +\S*play\.example\.com\. +(CNAME|TXT) +\S+\n)+/,
  )
  const list = await muster.run(['domains'])
  assert.match(list.stdout, /play\.example\.com +pending/)
  await done(muster, ['domains', 'remove', 'play.example.com', '--yes'])
  assert.equal((await done(muster, ['domains'])).trim(), '')
}

async function lobbies({ muster, platform }: World): Promise<void> {
  const seat = (await muster.json(['find'])) as { lobby: { lobby_id: string }; ports: { game: { url: string } } }
  const { lobby_id } = seat.lobby
  const list = await done(muster, ['lobbies'])
  assert.match(list, new RegExp(`^LOBBY +MODE +REGION +PLAYERS +STATE +AGE\n${lobby_id.slice(-8)} +default +local +1/`))
  assert.match(await done(muster, ['lobby', lobby_id.slice(-8)]), new RegExp(`lobby: +${lobby_id}\nstate: +ready`))
  assert.match(await done(muster, ['players']), new RegExp(`${lobby_id.slice(-8)} +reserved`))
  const { players } = (await muster.json(['players', lobby_id.slice(-8)])) as { players: { player_id: string }[] }
  await done(muster, ['players', 'remove', players[0]!.player_id, '--lobby', lobby_id])
  assert.equal((await done(muster, ['players'])).trim(), '')

  const failed = await muster.run(['find', '--mode', 'nowhere', '--json'])
  assert.equal(failed.code, 1)
  const { error } = JSON.parse(failed.stderr.split('\n').find((line) => line.startsWith('{'))!) as {
    error: { code: string; ray_id: string }
  }
  assert.equal(error.code, 'MATCHMAKER_GAME_MODE_NOT_FOUND')
  await until('the explanation is written', () =>
    platform.client.call(explainRay, { params: { ray_id: error.ray_id } }).catch(() => false),
  )
  assert.match(await done(muster, ['explain', error.ray_id]), /MATCHMAKER_GAME_MODE_NOT_FOUND/)
  assert.match(await done(muster, ['analytics', 'matchmaker_overview']), /LOBBY_COUNT +PLAYER_COUNT\n +1 +0/)
  assert.equal((await muster.run(['lobbies', '--region', 'mars'])).code, 1)
}

async function logs({ muster }: World): Promise<void> {
  const all = await until('the log is there', async () => {
    const text = await done(muster, ['logs'])
    return text.includes('something is odd') && text.includes('a line of pino') ? text : null
  })
  assert.match(all, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} one plain line$/m)
  const lines = async (...args: string[]): Promise<string[]> =>
    (await done(muster, ['logs', '--json', ...args]))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => (JSON.parse(line) as { text: string }).text)
  assert.deepEqual(await lines('--level', 'error'), ['{"level":50,"msg":"a line of pino"}'])
  assert.deepEqual(await lines('--level', 'warn', '--filter', 'ODD'), ['[WARN] something is odd'])
  assert.equal((await lines('--lines', '1')).length, 1)
  assert.deepEqual(await lines('--until', '1h'), [])
  assert.equal((await lines('--since', '1h')).length >= 3, true)
  assert.equal((await muster.run(['logs', '--filter', '('])).code, 2)
}

async function follow(t: TestContext, { muster, platform, game }: World): Promise<void> {
  const screen = openScreen(t, muster, ['logs', '-f'])
  if (screen === null) return
  await screen.shows('one plain line')
  const { ports } = (await platform.client
    .call(createCloudToken, { params: { game_id: game.game_id } })
    .then(({ token }) => muster.json(['find'], { env: { MUSTER_TOKEN: token } }))) as {
    ports: { game: { url: string } }
  }
  await fetch(`${platform.edge_url}${new URL(ports.game.url).pathname}/hello`)
  await screen.shows('asked for ')
  screen.ctrlC()
  assert.equal(await screen.ended, 130)
}

async function shapes({ muster }: World): Promise<void> {
  const { lobbies } = (await muster.json(['lobbies'])) as { lobbies: { lobby_id: string }[] }
  const commands: [string[], Operation, string[]?][] = [
    [['games'], getGames, ['watch']],
    [['games', 'get'], getGameById, ['watch']],
    [['namespaces', 'get'], getGameNamespaceById],
    [['groups'], listGroups, ['watch']],
    [['groups', 'get', 'Developers'], getGroupSummary],
    [['members'], getGroupMembers, ['watch']],
    [['tokens'], listGameCloudTokens],
    [['tokens', '--kind', 'public'], listGameNamespaceTokensPublic],
    [['builds'], listGameBuilds],
    [['sites'], listGameCdnSites],
    [['kv', 'list', 'players'], listKvEntries],
    [['ratings', 'list'], listRatings],
    [['kv', 'get', 'players/ada'], getKvEntry, ['watch']],
    [['analytics'], getAnalytics],
    [['usage'], getUsage],
    [['lobbies'], getAnalyticsMatchmakerLive, ['watch']],
    [['lobbies', '--all'], listNamespaceLobbies],
    [['lobby', lobbies[0]!.lobby_id], getNamespaceLobby],
    [['find'], findLobby],
  ]
  for (const [args, operation, without = []] of commands) {
    // The usage of a lobby is beside the response; cli/test/histories.test.ts checks it.
    const { usage: _, ...value } = (await muster.json(args)) as { usage?: unknown }
    // The position for long polling is left out: each command asks once.
    const filled = { ...value, ...Object.fromEntries(without.map((name) => [name, { index: '0' }])) }
    assert.deepEqual(createShapeCheck(operation.response)(filled), [], args.join(' '))
  }
}

async function happened({ muster, game }: World): Promise<void> {
  const rays = await until('the refused find is listed', async () => {
    const response = await muster.json(['rays', '--code', 'MATCHMAKER_GAME_MODE_NOT_FOUND'])
    return (response as { rays: { ray_id: string }[] }).rays.length > 0 ? response : null
  })
  assert.deepEqual(createShapeCheck(listGameRays.response)(rays), [])
  assert.match(await done(muster, ['rays', '--since', '1h']), /^RAY +WHEN +OPERATION +TOOK +CODE\n/)
  const { lobbies } = (await muster.json(['lobbies'])) as { lobbies: { lobby_id: string }[] }
  const found = await muster.json(['search', lobbies[0]!.lobby_id])
  assert.deepEqual(createShapeCheck(searchGame.response)(found), [])
  assert.match(
    await done(muster, ['search', lobbies[0]!.lobby_id]),
    new RegExp(`${lobbies[0]!.lobby_id} +prod +default`),
  )
  assert.equal((await muster.run(['search', 'nonsense'])).code, 1)
  const events = await muster.json(['audit', '--group', game.group_id])
  assert.deepEqual(createShapeCheck(listGroupAuditEvents.response)(events), [])
  assert.match(
    await done(muster, ['audit', '--operation', 'games.namespaces.updateGameNamespaceMatchmakerConfig']),
    /lobby_count_max: 128 → 20/,
  )
}

async function console_(t: TestContext, { muster }: World): Promise<void> {
  const { lobbies } = (await muster.json(['lobbies'])) as { lobbies: { lobby_id: string }[] }
  const lobby = lobbies[0]!.lobby_id.slice(-8)
  assert.equal((await muster.run(['console', lobby], { input: 'hello\nthere\n' })).code, 0)
  await until('the server has read both lines', async () => (await done(muster, ['logs'])).includes('read there'))
  const screen = openScreen(t, muster, ['console', lobby])
  if (screen === null) return
  await screen.shows('read there')
  screen.type('again\r')
  await screen.shows('read again')
  screen.ctrlC()
  assert.equal(await screen.ended, 130)
}

async function stopped({ muster }: World): Promise<void> {
  await done(muster, ['drain', '1.0.0'])
  const drained = await muster.run(['find'])
  assert.deepEqual([drained.code, drained.stderr.includes('MATCHMAKER_VERSION_DRAINING')], [1, true])
  await done(muster, ['drain', '1.0.0', '--undo'])
  const { lobbies } = (await muster.json(['lobbies'])) as { lobbies: { lobby_id: string }[] }
  for (const { lobby_id } of lobbies) await done(muster, ['stop', lobby_id.slice(-12), '--yes'])
  await until('no lobby runs', async () => (await done(muster, ['lobbies'])).trim() === '')
  assert.match(await done(muster, ['lobbies', '--all']), /stopped (now|\d+ \w+ ago)/)
  assert.match((await muster.run(['logs'])).stderr, /this is the last one that did/)
}

async function refusals(t: TestContext, { platform, game, muster }: World): Promise<void> {
  const misspelt = await muster.run(['namespaces'], { env: { GAME_ID: `${game.name_id}x` } })
  assert.deepEqual([misspelt.code, misspelt.stderr.includes(`Did you mean ${game.name_id}?`)], [1, true])
  const namespace = await muster.run(['limits', '--namespace', 'prodd'])
  assert.deepEqual([namespace.code, namespace.stderr.includes('Did you mean prod?')], [1, true])
  const unknown = await muster.run(['games', 'get', '0199c6a2-7d3e-7b41-9c55-2f8e6a1d4b07'])
  assert.equal(unknown.code, 1)
  assert.match(unknown.stderr, /GAME_NOT_FOUND: http\S+\nRay id: /)
  const { token } = await platform.client.call(createCloudToken, { params: { game_id: game.game_id } })
  const cloud = createMuster(t, { MUSTER_URL: platform.edge_url, MUSTER_TOKEN: token }, { in_threads: true })
  assert.match(await done(cloud, ['namespaces']), /\nprod /)
  const forbidden = await cloud.run(['groups'])
  assert.deepEqual([forbidden.code, forbidden.stderr.includes('API_FORBIDDEN')], [3, true])
  const invalid = await muster.run(['namespaces', 'create', 'Not A Name'])
  assert.equal(invalid.code, 1)
  assert.match(invalid.stderr, /The platform refused the request:\n +name_id: /)
  for (const args of [
    ['lobby', 'xyz'],
    ['games', 'creat'],
    ['lobbies', '--mdoe', 'x'],
  ]) {
    assert.equal((await muster.run(args)).code, 2, args.join(' '))
  }
}

async function consent(t: TestContext, { muster, game }: World): Promise<void> {
  const silent = await muster.run(['namespaces', 'delete', 'staging'])
  assert.deepEqual([silent.code, silent.stderr.includes('Give the option --yes.')], [2, true])
  const screen = openScreen(t, muster, ['namespaces', 'delete', 'staging'])
  if (screen === null) return
  await screen.shows('[y/N]')
  screen.type('n\r')
  assert.equal(await screen.ended, 1, screen.text())
  const wide = openScreen(t, muster, ['namespaces', '--ci'])!
  assert.equal(await wide.ended, 0)
  assert.match(wide.text(), /NAMESPACE +NAME +VERSION +CREATED/)
  assert.match(wide.text(), new RegExp(`Namespaces of ${game.name_id} at `))
}
