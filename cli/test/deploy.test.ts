// muster deploy, versions, diff and rollback, as processes on a real platform with a runner and an edge.
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import {
  createGameNamespaceTokenPublic,
  findLobby,
  getAnalyticsMatchmakerLive,
  getGameById,
  getGameNamespaceVersionHistoryList,
  getGameVersionById,
  listGameBuilds,
  listGameCloudTokens,
} from '@musterhost/contract'
import { WebSocket } from 'ws'
import { get } from '../../server/test/edge/get.ts'
import { LEAST_SERVER } from '../../server/test/support/builds.ts'
import { type Platform, startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { createProject, type DeployedProject } from './deploy-steps.ts'
import { openScreen } from './program.ts'

/** A server that sends its version to each player, and never ends a connection. */
const VERSIONED_SERVER = (version: string) => `
const http = process.getBuiltinModule('node:http')
import { createHash } from 'node:crypto'
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME } = process.env
const call = (path, body) => new Promise((resolve) => {
  const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN, 'content-type': 'application/json' }
  http.request(PLATFORM_API_URL + path, { method: 'POST', headers }, (response) => response.resume().on('end', resolve)).end(JSON.stringify(body))
})
const server = http.createServer((_, response) => response.end('${version}'))
server.on('upgrade', async (request, socket) => {
  await call('/matchmaker/players/connected', { player_token: new URL(request.url, 'http://x').searchParams.get('token') })
  const accept = createHash('sha1').update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64')
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + accept + '\\r\\n\\r\\n')
  const text = Buffer.from('${version}')
  const send = () => socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]))
  send()
  socket.on('data', send)
  socket.on('error', () => {})
})
server.listen(Number(PORT_GAME), '127.0.0.1', () => call('/matchmaker/lobbies/ready', {}))
`

test('deploys of the command line', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge' })
  await t.test('a deploy ends with a lobby that is ready and the address of the page', (t) => firstDeploy(t, platform))
  await t.test('a deploy without any change sends nothing and creates no version', (t) => unchanged(t, platform))
  await t.test('a deploy during play disconnects nobody, and new players get the new version', (t) =>
    duringPlay(t, platform),
  )
  await t.test('rollback returns to the last version that worked, and says what it leaves', (t) =>
    rollback(t, platform),
  )
  await t.test('a roll-out is for a part of the clients, until it is promoted or rolled back', (t) =>
    rollout(t, platform),
  )
  await t.test('a server that fails is never switched to: the deploy ends with 1 and its last lines', (t) =>
    failingServer(t, platform),
  )
  await t.test('a deploy says what it sees of a server that is not ready, and Ctrl-C leaves nothing', (t) =>
    waitingServer(t, platform),
  )
  await t.test('versions and diff say what was deployed and what differs', (t) => versionsAndDiff(t, platform))
  await t.test('refused files are named, with the remedy, and nothing is switched', (t) => refusedFiles(t, platform))
  await t.test('refusals name the line, the missing right and the address', (t) => refusals(t, platform))
  await t.test('a site without a first page is deployed with the name of the page that it has', (t) =>
    firstPage(t, platform),
  )
  await t.test('names with accents of each Unicode form are one name, and twins are refused', (t) =>
    accents(t, platform),
  )
  await t.test('screens of a pseudo-terminal are as they were kept', (t) => screens(t, platform))
  await t.test('without a page or with --no-site the address and the site stay', (t) => noSite(t, platform))
})

async function prodOf(platform: Platform, { game_id }: DeployedProject) {
  const { game } = await platform.client.call(getGameById, { params: { game_id } })
  const { namespace_id, version_id } = game.namespaces.find(({ name_id }) => name_id === 'prod')!
  return { game, version_id, params: { game_id, namespace_id } }
}

async function firstDeploy(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, { game: 'first', site: { 'index.html': '<h1>Game</h1>' } })
  const { code, stdout, stderr } = await project.run(['deploy', '-m', 'The first one'])
  assert.equal(code, 0, stderr)
  const lines = stderr.trimEnd().split('\n')
  assert.equal(lines[0], `Deploying first to prod on ${platform.edge_url}`)
  assert.match(lines.at(-2)!, /^first lobby ready in \d+ ms$/)
  assert.equal(lines.at(-1), 'prod runs version v1 from now on. Running lobbies keep theirs.')
  const url = /^Play: (http:\/\/first\.cdn\.localhost:\d+\/)\n$/.exec(stdout)?.[1]
  assert.ok(url !== undefined, stdout)
  // Names below localhost resolve in browsers only.
  const { host, port } = new URL(url)
  const page = await get({ port: Number(port) }, '/', { headers: { host } })
  assert.deepEqual([page.status, page.body.toString()], [200, '<h1>Game</h1>'])

  const { params } = await prodOf(platform, project)
  const newest = async () => (await platform.client.call(getGameNamespaceVersionHistoryList, { params })).versions[0]!
  await until('the record of its lobby is written', async () => (await newest()).first_ready_ts !== undefined)
  const { message, first_ready_ts, deploy_ts } = await newest()
  assert.equal(message, 'The first one')
  assert.equal(first_ready_ts, deploy_ts, 'its lobby was ready before the switch')
  // The seat of the check was given back, so the lobby is empty.
  const { lobbies } = await platform.client.call(getAnalyticsMatchmakerLive, { params })
  assert.deepEqual(
    lobbies.map(({ total_player_count }) => total_player_count),
    [0],
  )
}

async function unchanged(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, { site: { 'index.html': 'a', 'sub/b.js': 'b' } })
  const first = await project.deploy()
  assert.equal(first.is_new, true)
  assert.equal(typeof first.first_lobby_ms, 'number')
  const again = await project.deploy()
  assert.deepEqual(
    [again.is_new, again.sent_bytes, again.version_id, again.build_id, again.site_id],
    [false, 0, first.version_id, first.build_id, first.site_id],
  )
  // The time of a file is not its content.
  project.write('server/server.mjs', LEAST_SERVER)
  assert.equal((await project.deploy()).sent_bytes, 0)
  project.write('muster.yaml', `${readYaml(project)}  idle_lobbies: { min: 1, max: 1 }\n`)
  const configured = await project.run(['deploy', '--json'])
  assert.equal(configured.code, 0, configured.stderr)
  assert.ok(configured.stderr.includes('  + matchmaker.idle_lobbies: {"min":1,"max":1}\n'), configured.stderr)
  const result = JSON.parse(configured.stdout)
  assert.deepEqual([result.is_new, result.sent_bytes], [true, 0])
  // The platform starts this lobby ahead.
  assert.equal(typeof result.lobby_id, 'string')
  const { builds } = await platform.client.call(listGameBuilds, { params: { game_id: project.game_id }, query: {} })
  assert.equal(builds.length, 1)
}

function readYaml({ folder }: DeployedProject): string {
  return readFileSync(join(folder, 'muster.yaml'), 'utf8')
}

async function duringPlay(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, { server: { 'server.mjs': VERSIONED_SERVER('one') } })
  await project.deploy()
  const { params } = await prodOf(platform, project)
  const { token } = await platform.client.call(createGameNamespaceTokenPublic, { params })
  const players: WebSocket[] = []
  t.after(() => {
    for (const player of players) player.terminate()
  })
  const play = async () => {
    const { ports, player } = await platform.as(token).call(findLobby, { body: { game_modes: ['default'] } })
    const { pathname } = new URL(ports.game!.url)
    const socket = new WebSocket(
      `${platform.edge_url.replace('http', 'ws')}${pathname.replace(/\/$/, '')}/?token=${player.token}`,
    )
    players.push(socket)
    return { socket, version: await nextMessage(socket) }
  }
  const [first, second] = [await play(), await play()]
  assert.deepEqual([first.version, second.version], ['one', 'one'])

  project.write('server/server.mjs', VERSIONED_SERVER('two'))
  assert.equal((await project.deploy()).is_new, true)
  const third = await play()
  assert.equal(third.version, 'two')
  for (const { socket } of [first, second]) {
    const message = nextMessage(socket)
    socket.send('still there?')
    assert.equal(await message, 'one')
  }
}

function nextMessage(socket: WebSocket): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once('message', (data) => resolve(String(data)))
    socket.once('error', reject)
    socket.once('close', (code) => reject(new Error(`closed with ${code}`)))
  })
}

async function rollout(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform)
  const none = await project.run(['rollout'])
  assert.match(none.stderr, /No roll-out is under way on prod, and none has been\./)
  const one = await project.deploy()
  const change = (players: number): void =>
    project.write('muster.yaml', readYaml(project).replace(/max_players: \d/, `max_players: ${players}`))
  change(5)
  const begun = await project.run(['deploy', '--percent', '20', '--max-failed-lobbies', '30', '--json'])
  assert.equal(begun.code, 0, begun.stderr)
  assert.match(begun.stderr, /prod gives version \S+ to 20 % of the clients from now on: muster rollout/)
  const two = JSON.parse(begun.stdout) as { version_id: string; display_name: string }
  assert.equal((await prodOf(platform, project)).version_id, one.version_id)

  const more = await project.run(['rollout', '--percent', '40'])
  assert.match(more.stderr, /gives version \S+ to 40 % of the clients/)
  assert.match(more.stderr, /rolled back when more than 30 % of its lobbies fail/)
  assert.match(more.stdout, /VERSION +CLIENTS +LOBBIES +FAILED +FINDS +REFUSED\n\S+ +40 % +\d+ +0 +0 +0\n\S+ +60 % +/)

  const back = await project.run(['rollback', '--yes'])
  assert.match(back.stderr, new RegExp(`All clients of prod get version ${one.display_name} from now on`))
  assert.match((await project.run(['rollout'])).stderr, /The last one, of version \S+, was rolled back/)

  change(6)
  const again = await project.run(['deploy', '--percent', '1', '--detach', '--json'])
  const three = JSON.parse(again.stdout) as { version_id: string }
  assert.notEqual(three.version_id, two.version_id)
  const promoted = await project.run(['promote', '-m', 'It works', '--json'])
  assert.equal(JSON.parse(promoted.stdout).version_id, three.version_id)
  const { params, version_id } = await prodOf(platform, project)
  assert.equal(version_id, three.version_id)
  const { versions } = await platform.client.call(getGameNamespaceVersionHistoryList, { params })
  assert.equal(versions[0]!.message, 'It works')
}

async function rollback(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform)
  const early = await project.run(['rollback', '--yes'])
  assert.deepEqual([early.code, /No earlier version .* is known to have worked/.test(early.stderr)], [1, true])
  const one = await project.deploy()
  const { params } = await prodOf(platform, project)
  await firstLobbyIsListed(platform, params)
  // Two versions that never had a lobby.
  for (const players of [5, 6]) {
    project.write('muster.yaml', readYaml(project).replace(/max_players: \d/, `max_players: ${players}`))
    await project.deploy('--detach')
  }
  const asked = await project.run(['rollback'])
  assert.deepEqual([asked.code, asked.stderr.includes('--yes')], [2, true])

  const begin_ms = performance.now()
  const back = await project.run(['rollback', '--yes', '--json', '-m', 'Rounds are too slow'])
  const command_ms = performance.now() - begin_ms
  assert.equal(back.code, 0, back.stderr)
  const result = JSON.parse(back.stdout)
  assert.deepEqual([result.version_id, result.message], [one.version_id, 'Rounds are too slow'])
  t.diagnostic(`rollback: ${result.duration_ms} ms for the switch, ${Math.round(command_ms)} ms for the whole command`)
  assert.ok(command_ms < 60_000)
  assert.ok(back.stderr.includes('~ matchmaker.game_modes.default.max_players: 6 -> 4\n'), back.stderr)
  assert.ok(back.stderr.includes('Not rolled back: stored data (kv)'))
  assert.equal((await prodOf(platform, project)).version_id, one.version_id)
  const { versions } = await platform.client.call(getGameNamespaceVersionHistoryList, { params })
  assert.equal(versions[0]!.message, 'Rounds are too slow')

  // The version that was rolled back is marked, and a second rollback does not return to it.
  const [, left] = versions
  assert.deepEqual([left!.rolled_back_ts, versions[0]!.rolled_back_ts], [versions[0]!.deploy_ts, undefined])
  assert.match((await project.run(['versions'])).stdout, /none ready, rolled back/)
  project.write('muster.yaml', readYaml(project).replace(/max_players: \d/, 'max_players: 7'))
  const seven = await project.deploy()
  await until('the record of its lobby is written', async () => {
    const history = await platform.client.call(getGameNamespaceVersionHistoryList, { params })
    return history.versions[0]!.first_ready_ts !== undefined
  })
  const again = await project.run(['rollback', '--yes', '--json'])
  assert.equal(JSON.parse(again.stdout).version_id, one.version_id, again.stderr)
  const twice = await project.run(['rollback', '--yes', '--json'])
  assert.deepEqual([twice.code, /No earlier version/.test(twice.stderr)], [1, true], 'not back to the bad version')
  assert.notEqual((await prodOf(platform, project)).version_id, seven.version_id)

  const same = await project.run(['rollback', String(one.display_name), '--yes'])
  assert.deepEqual([same.code, same.stderr.includes('already')], [2, true])
  const unknown = await project.run(['rollback', 'v99', '--yes'])
  assert.deepEqual([unknown.code, unknown.stderr.includes('The game has no version v99.')], [2, true])

  const screen = openScreen(t, { ...project.muster, cwd: project.folder }, ['rollback', 'v2'])
  if (screen === null) return
  await screen.shows('Roll back prod? [y/N]')
  screen.type('n\r')
  assert.equal(await screen.ended, 1)
  assert.ok(screen.text().includes('Nothing was changed.'))
  assert.equal((await prodOf(platform, project)).version_id, one.version_id)
}

/** The table of lobbies is written within a second. */
async function firstLobbyIsListed(
  platform: Platform,
  params: { game_id: string; namespace_id: string },
): Promise<void> {
  await until('the first lobby in the history', async () => {
    const { versions } = await platform.client.call(getGameNamespaceVersionHistoryList, { params })
    return versions[0]!.first_ready_ts !== undefined
  })
}

const FAILING_SERVER = 'console.log("the map is missing"); process.exit(3)'

async function failingServer(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, { server: { 'server.mjs': VERSIONED_SERVER('one') } })
  const empty = (await prodOf(platform, project)).version_id
  project.write('server/server.mjs', FAILING_SERVER)
  const first = await project.run(['deploy'])
  assert.equal(first.code, 1)
  assert.ok(first.stderr.includes('Nothing was switched: prod still runs version 0.0.0.'), first.stderr)
  assert.equal((await prodOf(platform, project)).version_id, empty)

  project.write('server/server.mjs', VERSIONED_SERVER('one'))
  const { version_id } = await project.deploy()
  const { params } = await prodOf(platform, project)
  const { token } = await platform.client.call(createGameNamespaceTokenPublic, { params })
  project.write('server/server.mjs', FAILING_SERVER)
  const failed = await project.run(['deploy'])
  assert.equal(failed.code, 1)
  assert.match(failed.stderr, /The first lobby of version v3 did not start: .* exited with code 3\./)
  assert.match(failed.stderr, /Nothing was switched: prod still runs version v2\./)
  assert.match(failed.stderr, /log: .*the map is missing/)
  assert.equal(failed.stderr.split('the map is missing').length - 1, 1, 'each line of the log is printed once')
  assert.match(failed.stderr, /muster deploy --no-check\.\nRay id: /)
  assert.equal((await prodOf(platform, project)).version_id, version_id)
  const { lobby } = await platform.as(token).call(findLobby, { body: { game_modes: ['default'] } })
  assert.equal(lobby.version_id, version_id)

  const unchecked = await project.run(['deploy', '--no-check'])
  assert.equal(unchecked.code, 1)
  assert.match(unchecked.stderr, /The first lobby of the new version did not start: /)
  assert.match(unchecked.stderr, /log: .*the map is missing/)
  assert.match(unchecked.stderr, /go back: muster rollback\nRay id: /)
  assert.notEqual((await prodOf(platform, project)).version_id, version_id)
  const { tokens } = await platform.client.call(listGameCloudTokens, { params })
  assert.deepEqual(
    tokens.map(({ revoke_ts }) => typeof revoke_ts),
    ['string'],
    'the token of the request for a seat is revoked',
  )

  // Where the platform starts lobbies ahead, their ends are found without a request for a seat.
  project.write('muster.yaml', `${readYaml(project)}  idle_lobbies: { min: 1, max: 1 }\n`)
  const ahead = await project.run(['deploy', '--no-check'])
  assert.equal(ahead.code, 1, ahead.stderr)
  assert.match(
    ahead.stderr,
    /3 lobbies of the new version ended before they were ready\. The last one had exit code 3\./,
  )
  assert.match(ahead.stderr, /log: .*the map is missing/)
}

async function waitingServer(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform)
  await project.deploy('--detach')
  const before = (await prodOf(platform, project)).version_id
  project.write('server/server.mjs', `console.log('hello'); (await import('node:http')).createServer().listen(0)`)
  const screen = openScreen(t, { ...project.muster, cwd: project.folder }, ['deploy'])
  if (screen === null) return
  await screen.shows('waiting for the first lobby: Its server does not listen on PORT_GAME. It listens on')
  await screen.shows('log: hello')
  screen.type('\u0003')
  assert.equal(await screen.ended, 130)
  assert.ok(screen.text().includes('Nothing was switched: prod still runs version'), screen.text())
  const { params, version_id } = await prodOf(platform, project)
  assert.equal(version_id, before)
  await until('the lobby of the check is over', async () => {
    const { lobbies } = await platform.client.call(getAnalyticsMatchmakerLive, { params })
    return lobbies.every(({ version_id }) => version_id === before)
  })
}

async function versionsAndDiff(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, { game: 'history' })
  const one = await project.deploy('-m', 'One')
  project.write('server/more.txt', 'more')
  const two = await project.deploy('--detach', '-m', 'Two')
  const json = JSON.parse((await project.run(['versions', '--json'])).stdout)
  assert.deepEqual(
    json.versions.map(({ display_name, message }: Record<string, unknown>) => [display_name, message]).slice(0, 2),
    [
      [two.display_name, 'Two'],
      [one.display_name, 'One'],
    ],
  )
  const { stdout } = await project.run(['versions', '--lines', '2'])
  const [titles, first, second, ...others] = stdout.trimEnd().split('\n')
  assert.match(titles!, /VERSION +DEPLOYED +BY +FIRST LOBBY +MESSAGE/)
  assert.match(first!, /^\* +v2 .* none ready +Two$/)
  assert.match(second!, /^ +v1 .*One$/)
  assert.deepEqual(others, [])

  const diff = await project.run(['diff', 'v1', 'v2'])
  assert.equal(diff.stdout, `server: build ${one.build_id} -> build ${two.build_id}\n`)
  assert.equal((await project.run(['diff', 'v1'])).stdout, diff.stdout)
  assert.equal((await project.run(['diff', 'v2', 'v2'])).stdout, 'They do not differ.\n')
  project.write('muster.yaml', readYaml(project).replace('matchmaker:', 'site: { folder: site }\nmatchmaker:'))
  for (const path of ['index.html', 'same.txt', 'old.txt']) project.write(`site/${path}`, path)
  await project.deploy('--detach')
  rmSync(join(project.folder, 'site/old.txt'))
  project.write('site/index.html', 'INDEX.html')
  project.write('site/sub/new.txt', 'new')
  await project.deploy('--detach')
  const sites = await project.run(['diff', 'v3', 'v4'])
  assert.equal(sites.stdout, '~ site/index.html\n- site/old.txt\n+ site/sub/new.txt\n', sites.stderr)

  const { build_ids } = JSON.parse((await project.run(['diff', 'v1', 'v2', '--json'])).stdout)
  assert.deepEqual(build_ids, { before: [one.build_id], after: [two.build_id] })
}

/** Tools of macOS may write names in another Unicode form than people write links in. */
async function accents(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, { site: { 'index.html': 'a' } })
  project.write('site/Größe/é.txt'.normalize('NFD'), 'found')
  project.write('site/left-öut.txt'.normalize('NFD'), 'left out')
  project.write('site/.musterignore', 'left-öut.txt'.normalize('NFC'))
  const { url } = (await project.deploy('--detach')) as { url: string }
  const { host, port } = new URL(url)
  const fetched = (path: string) => get({ port: Number(port) }, encodeURI(path), { headers: { host } })
  for (const form of ['NFC', 'NFD'])
    assert.equal((await fetched('/Größe/é.txt'.normalize(form))).body.toString(), 'found')
  assert.equal((await fetched('/left-öut.txt')).status, 404)
  assert.equal(((await project.deploy('--detach')) as { is_new: boolean }).is_new, false)
  project.write('site/Größe/é.txt'.normalize('NFC'), 'twin')
  const { code, stderr } = await project.run(['deploy', '--detach'])
  assert.equal(code, 1, stderr)
  assert.match(stderr, /Two files of the site are called Größe\/é\.txt: only the Unicode forms/)
  assert.match(stderr, /Gr\\u00f6\\u00dfe\/\\u00e9\.txt/)
}

async function firstPage(t: TestContext, platform: Platform): Promise<void> {
  const site = { 'game/web/index.html': 'game', 'game/web/docs/index.html': 'docs', 'notes.txt': 'notes' }
  const project = await createProject(t, platform, { site })
  const hintOf = async (): Promise<string | undefined> => {
    const { code, stderr } = await project.run(['deploy', '--detach'])
    assert.equal(code, 0, stderr)
    return stderr
      .split('\n')
      .find((line) => line.startsWith('The site has no index.html, so its address shows "Not found".'))
  }
  assert.match(
    (await hintOf())!,
    /It has game\/web\/index\.html\. If that is the page, write this in muster\.yaml: site: \{ folder: site\/game\/web \}$/,
  )
  project.write('site/Index.html', 'page')
  assert.match((await hintOf())!, /It has Index\.html: rename it to index\.html\.$/)
  project.write('site/index.html.gz', gzipSync('page'))
  assert.equal(await hintOf(), undefined)
}

async function refusedFiles(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform)
  await project.deploy('--detach')
  const before = (await prodOf(platform, project)).version_id
  const refused = async (words: RegExp, exit_code = 1) => {
    const { code, stderr } = await project.run(['deploy', '--detach'])
    assert.deepEqual([code, words.test(stderr)], [exit_code, true], stderr)
    assert.equal((await prodOf(platform, project)).version_id, before)
  }
  const server = join(project.folder, 'server')
  symlinkSync('/etc/hostname', join(server, 'outside'))
  await refused(/outside is a link that leaves the folder: .*\n.*\/outside in \.musterignore/)
  project.write('server/.musterignore', '/outside\n')
  symlinkSync('nowhere', join(server, 'dangling'))
  await refused(/dangling is a link to a file that does not exist/)
  project.write('server/.musterignore', '/outside\n/dangling\n')
  mkdirSync(join(server, 'folder'))
  symlinkSync('folder', join(server, 'other-folder'))
  await refused(/other-folder is a link to a folder/)
  project.write('server/.musterignore', '/outside\n/dangling\n/other-folder\n/secret.txt\n')
  // A link to a file of the folder is that file.
  symlinkSync('server.mjs', join(server, 'main.mjs'))
  project.write('server/secret.txt', 'not for the platform')
  assert.equal((await project.deploy('--detach')).is_new, true)
  const { builds } = await platform.client.call(listGameBuilds, { params: { game_id: project.game_id }, query: {} })
  assert.equal(builds.length, 2)
  if (process.getuid?.() !== 0) {
    project.write('server/locked.txt', 'for its owner')
    chmodSync(join(server, 'locked.txt'), 0)
    const { code, stderr } = await project.run(['deploy', '--detach'])
    assert.deepEqual([code, stderr.includes('locked.txt cannot be read: permission denied.')], [1, true], stderr)
    rmSync(join(server, 'locked.txt'))
  } else t.diagnostic('run by root, who can read every file')
  assert.ok(
    !existsSync(join(project.folder, '.muster/deploy')) ||
      readdirSync(join(project.folder, '.muster/deploy')).length === 0,
  )

  project.write(
    'muster.yaml',
    readYaml(project).replace('folder: server', 'folder: server, build: "echo it breaks; exit 7"'),
  )
  const failed = await project.run(['deploy'])
  assert.deepEqual([failed.code, failed.stderr.includes('it breaks\n')], [1, true])
  assert.match(failed.stderr, /The build command of the server failed: it ended with exit code 7\./)
}

async function refusals(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform)
  const yaml = readYaml(project)
  project.write('muster.yaml', yaml.replace('game_modes', 'game_mode'))
  const misspelt = await project.run(['deploy'])
  assert.deepEqual(
    [misspelt.code, /\n {2}4:3 matchmaker\.game_mode: .*Did you mean game_modes\?/.test(misspelt.stderr)],
    [2, true],
    misspelt.stderr,
  )
  project.write('muster.yaml', yaml)
  const nobody = await project.run(['deploy'], { MUSTER_TOKEN: 'cloud.nonsense' })
  assert.deepEqual([nobody.code, nobody.stderr.includes('Ray id: ')], [3, true], nobody.stderr)
  const away = await project.run(['deploy'], { MUSTER_URL: 'http://127.0.0.1:9' })
  assert.deepEqual([away.code, away.stderr.includes('http://127.0.0.1:9 cannot be reached')], [1, true], away.stderr)
  const elsewhere = await project.run(['deploy', '--namespace', 'prodd'])
  assert.deepEqual([elsewhere.code, elsewhere.stderr.includes('Did you mean prod?')], [1, true], elsewhere.stderr)
  const nothing = await project.muster.run(['deploy'])
  assert.deepEqual([nothing.code, nothing.stderr.includes('There is no muster.yaml')], [2, true])
}

async function noSite(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, { site: { 'index.html': 'first' } })
  const first = await project.deploy('--detach')
  project.write('site/index.html', 'second')
  const kept = await project.deploy('--detach', '--no-site')
  assert.deepEqual([kept.site_id, kept.is_new], [first.site_id, false])
  const sent = await project.deploy('--detach')
  assert.notEqual(sent.site_id, first.site_id)
  const { version } = await platform.client.call(getGameVersionById, {
    params: { game_id: project.game_id, version_id: String(sent.version_id) },
  })
  assert.equal(version.config.cdn?.site_id, sent.site_id)
}

/** The screens in the order in which a person sees them. What differs from run to run is a letter. */
async function screens(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, {
    game: 'screens',
    site: Object.fromEntries(
      Array.from({ length: 12 }, (_, index) => [index === 0 ? 'index.html' : `${index}.txt`, `file ${index}`]),
    ),
  })
  const show = async (name: string, args: readonly string[], keys: { after: string; type: string } | null = null) => {
    const screen = openScreen(t, { ...project.muster, cwd: project.folder }, args)
    if (screen === null) return
    if (keys !== null) {
      await screen.shows(keys.after)
      screen.type(keys.type)
    }
    assert.equal(await screen.ended, 0, screen.text())
    const kept = readFileSync(new URL(`screens/${name}.txt`, import.meta.url), 'utf8')
    assert.equal(withoutFigures(screen.text()), kept, `the screen of muster ${args.join(' ')}`)
  }
  await show('deploy', ['deploy', '-m', 'First'])
  project.write('site/3.txt', 'changed')
  project.write('muster.yaml', readYaml(project).replace('max_players: 4', 'max_players: 8'))
  await show('deploy-changed', ['deploy', '-m', 'Larger'])
  await firstLobbyIsListed(platform, (await prodOf(platform, project)).params)
  await show('versions', ['versions', '--lines', '2'])
  await show('diff', ['diff', 'v1', 'v2'])
  await show('rollback', ['rollback', 'v1'], { after: '[y/N]', type: 'y\r' })
}

/** Without the line of a loaded machine, whose lobby needs more than the 2 s after which the command says what it sees. */
function withoutFigures(screen: string): string {
  return screen
    .replaceAll(/(?:pack|send) \w+ \[[^\]]*\] \d+% of [\d.]+ (?:[KMGT]i)?B/g, '')
    .replaceAll(/^waiting for the first lobby: Its server runs\.\n/gm, '')
    .replaceAll(/:\d{4,5}\b/g, ':PORT')
    .replaceAll(/\d+ ms\b/g, 'N ms')
    .replaceAll(/\d+\.\d s\b/g, 'N s')
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, 'TIME               ')
    .replaceAll(/ +$/gm, '')
    .replaceAll(/\n{2,}/g, '\n')
}
