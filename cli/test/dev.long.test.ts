// muster dev: a game server of this machine behind the matchmaker, on a platform that runs, and on one that it starts.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import {
  createGameNamespaceTokenPublic,
  getGameById,
  listGameNamespaceTokensDevelopment,
  placeholderNames,
  removeGameSecret,
  setGameSecret,
  VersionConfig,
} from '@musterhost/contract'
import { WebSocket } from 'ws'
import { get } from '../../server/test/edge/get.ts'
import { handshake, openUdp, PLAIN_SERVER } from '../../server/test/edge/seats-server.ts'
import { PROTOCOL_SERVERS } from '../../server/test/runner/protocol-servers.ts'
import { endProcessesOf, isThere, processesOf } from '../../server/test/supervisor/started.ts'
import { type Platform, startPlatform } from '../../server/test/support/platform.ts'
import { unityBrotli } from '../../server/test/support/unity-web.ts'
import { until } from '../../server/test/support/until.ts'
import { createProject, type DeployedProject } from './deploy-steps.ts'
import { openScreen } from './program.ts'

/** One of them has the name of a variable of the version config. */
const SECRETS = { PAYMENT_KEY: 'of $HOME and ${PORT}', MAP: 'secret' }

const PAGE = new URL('../../docs/deploy.md', import.meta.url)

const GAME_SERVER = (greeting: string) => `
const http = process.getBuiltinModule('node:http')
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME } = process.env
const call = async (path, body) => {
  const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN, 'content-type': 'application/json' }
  const response = await fetch(PLATFORM_API_URL + path, { method: 'POST', headers, body: JSON.stringify(body) })
  return response.status
}
const server = http.createServer(async (request, response) => {
  const player_token = new URL(request.url, 'http://x').searchParams.get('token')
  const status = await call('/matchmaker/players/connected', { player_token })
  response.writeHead(status).end('${greeting}')
})
server.listen(Number(PORT_GAME), '127.0.0.1', async () => console.log('ready: ' + (await call('/matchmaker/lobbies/ready', {}))))
`

test('muster dev', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  await t.test('the page gets a seat in the server of this machine, which restarts on a change', (t) =>
    plays(t, platform),
  )
  await t.test('a server starts with the same arguments, variables and files as in a lobby', (t) => same(t, platform))
  await t.test('players are admitted as by the edge of the platform, over every protocol and in every way', (t) =>
    admits(t, platform),
  )
  await t.test('the lobby has the state, the tags and the config that its server and its players give it', (t) =>
    keepsLobby(t, platform),
  )
  await t.test('a server that speaks the protocol of another platform finds it on this machine', (t) =>
    speaks(t, platform),
  )
  await t.test('keys add bots, hide logs and end everything', (t) => keys(t, platform))
  await t.test('after kill -9 the game server and the platform that it started end too', (t) => killed(t, platform))
  await t.test('without a platform it starts one, and Ctrl-C leaves no process', (t) => ownPlatform(t, platform))
})

/** Members of the version config that `muster dev` has no equal of, and why. */
const WITHOUT_EQUAL: Readonly<Record<string, string>> = {
  kv: 'Calls pass to the platform, which has the version that is deployed.',
  'cdn.site_id': 'A deploy fills it in. The page server has the folder.',
  'mode.captcha': 'A development token needs no captcha.',
  'mode.regions': 'The machine of the developer is the only region.',
  'mode.tier': 'The server has the whole machine.',
  'mode.idle_lobbies': 'There is one lobby, which always runs.',
  'mode.idle_grace_ms': 'The lobby ends with the command.',
  'mode.ready_deadline_ms': 'A server that is not ready is seen on the terminal.',
  'docker.image_id': 'A deploy fills it in. The server has the folder.',
  'docker.image': 'No images are run.',
  'docker.entrypoint': 'No images are run.',
  'docker.working_folder': 'No images are run.',
  'docker.user': 'No images are run.',
  'docker.stop_signal': 'No images are run.',
  'docker.network_mode': 'The server has the network of the machine.',
  'docker.network': 'The server has the network of the machine.',
  'docker.standard_input': 'Nobody writes to the input of the server from the hub.',
  'docker.ports.*.port': 'The deployed lobby needs a network of its own. In dev the server listens at this number too.',
  'docker.ports.*.port_range': 'Players connect to the server itself, as on the platform.',
  'docker.ports.*.proxy': 'It only confirms the port range.',
  'mode.matching': 'There is one lobby. `muster matching try` tries the rules on a list of players.',
  'mode.max_spectators': 'Every request for the seat of a spectator gets one, like every find of a player.',
  'mode.ratings': 'The platform rates no player of a development token.',
  'mode.fill_outdated_lobbies': 'The server runs one version.',
  'mode.actions.*.identity_requirement': 'The platform checks no player of a development token.',
  'mode.actions.*.verification': 'The platform checks no player of a development token.',
  'mode.actions.*.verification_config': 'The platform checks no player of a development token.',
  'mode.actions.*.max_lobbies_per_identity': 'There is one lobby.',
}

/** A part of the config under the name that it has wherever it is inherited. */
function memberName(path: string): string {
  return path
    .replace(/^matchmaker\.(game_modes\.\*\.)?/, 'mode.')
    .replace(/^mode\.docker/, 'docker')
    .replace(/^mode\.actions\.(find|join|create)\.(?!enable)/, 'mode.actions.*.')
}

type Schema = {
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
}

/** The members of a schema that have no members themselves. Of maps and arrays, `*` stands for each. */
function membersOf(schema: Schema, path = ''): string[] {
  const inside = (name: string) => (path === '' ? name : `${path}.${name}`)
  const below = [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, part]) => membersOf(part, inside(name))),
    ...Object.values(schema.patternProperties ?? {}).flatMap((part) => membersOf(part, inside('*'))),
    ...(schema.items === undefined ? [] : membersOf(schema.items, inside('*'))),
    ...(schema.anyOf ?? []).flatMap((part) => membersOf(part, path)),
  ]
  return below.length === 0 ? [path] : [...new Set(below)]
}

function isSet(config: unknown, names: readonly string[]): boolean {
  const [name, ...rest] = names
  if (name === undefined) return true
  if (typeof config !== 'object' || config === null) return name === '*'
  const parts = name === '*' ? Object.values(config) : [(config as Record<string, unknown>)[name]]
  return parts.some((part) => part !== undefined && isSet(part, rest))
}

test('each member of the version config is the same in dev and deployed, or has no equal for a reason', () => {
  const configs = [
    { matchmaker: SHOWING, cdn: CDN },
    { matchmaker: ADMITTING },
    { matchmaker: KEEPING },
    SPEAKING,
    MULTIPLAY,
  ]
  const members = membersOf(VersionConfig as Schema)
  const compared = new Set(
    members.filter((path) => configs.some((config) => isSet(config, path.split('.')))).map(memberName),
  )
  const isExcused = (name: string) =>
    Object.keys(WITHOUT_EQUAL).some((known) => name === known || name.startsWith(`${known}.`))
  const names = [...new Set(members.map(memberName))]
  assert.deepEqual(
    names.filter((name) => !compared.has(name) && !isExcused(name)),
    [],
    'a member without a decision: set it in one of the configs that both run, or state why dev has no equal',
  )
  const known = Object.keys(WITHOUT_EQUAL)
  const isThere = (one: string) => names.some((name) => name === one || name.startsWith(`${one}.`))
  assert.deepEqual(
    known.filter((one) => !isThere(one) || compared.has(one)),
    [],
    'these need no reason',
  )
})

async function startDev(t: TestContext, project: DeployedProject, env: Record<string, string> = {}) {
  // The command of docs/deploy.md.
  assert.ok(readFileSync(PAGE, 'utf8').includes('\nmuster dev\n'))
  const child = project.muster.start(['dev'], { cwd: project.folder, env })
  t.after(() => endProcessesOf(project.folder))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
  }
  const closed = once(child, 'close')
  const shows = (pattern: RegExp) =>
    until(`muster dev prints ${pattern}`, () => {
      if (child.exitCode !== null) throw new Error(`muster dev ended: ${output}`)
      return pattern.exec(output)
    })
  const url = (await shows(/^Play: (http:\S+)\/$/m))[1]!
  return {
    url,
    shows,
    output: () => output,
    kill: () => void child.kill('SIGKILL'),
    async end() {
      child.kill('SIGINT')
      const [code] = (await closed) as [number | null]
      return code
    },
  }
}

type Seat = { ports: Record<string, { url: string }>; player: { token: string } }

async function seatOf(url: string): Promise<Seat> {
  const response = await fetch(`${url}/matchmaker/lobbies/find`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url },
    body: JSON.stringify({ game_modes: ['default'] }),
  })
  assert.equal(response.status, 200, await response.clone().text())
  return (await response.json()) as Seat
}

async function greetingOf(url: string): Promise<string> {
  const { ports, player } = await seatOf(url)
  const response = await fetch(`${ports.game!.url}/?token=${player.token}`)
  return `${response.status} ${await response.text()}`
}

async function prodOf(platform: Platform, { game_id }: DeployedProject) {
  const { game } = await platform.client.call(getGameById, { params: { game_id } })
  const { namespace_id } = game.namespaces.find(({ name_id }) => name_id === 'prod')!
  return { game_id, namespace_id }
}

async function tokensOf(platform: Platform, project: DeployedProject) {
  const params = await prodOf(platform, project)
  return (await platform.client.call(listGameNamespaceTokensDevelopment, { params })).tokens
}

async function plays(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, {
    server: { 'server.mjs': GAME_SERVER('one') },
    site: { 'index.html': '<h1>Dev</h1>' },
  })
  const dev = await startDev(t, project)
  await dev.shows(/^ {2}ready: 200$/m)
  const page = await fetch(`${dev.url}/`)
  assert.deepEqual([page.status, await page.text()], [200, '<h1>Dev</h1>'])
  const place = (await (await fetch(`${dev.url}/.well-known/muster.json`)).json()) as { matchmaker_url: string }
  assert.equal(place.matchmaker_url, dev.url)
  assert.equal(await greetingOf(dev.url), '200 one')

  // The token of the developer serves no other page, and no file outside of the folder is served.
  const foreign = await fetch(`${dev.url}/matchmaker/lobbies/find`, {
    method: 'POST',
    headers: { origin: 'http://x.test' },
  })
  assert.equal(foreign.status, 403)
  for (const path of ['/..%2fmuster.yaml', '/%2e%2e/muster.yaml', '/missing', '/%00']) {
    assert.equal((await fetch(`${dev.url}${path}`)).status, 404, path)
  }

  project.write('server/server.mjs', GAME_SERVER('two'))
  await dev.shows(/^server starts \(server\.mjs changed\)$/m)
  await until('the new server', async () => (await greetingOf(dev.url).catch(() => '')) === '200 two')
  project.write('server/server.mjs', 'process.exit(5)')
  await dev.shows(/^server ended with exit code 5; it starts again when a file changes$/m)

  assert.equal((await tokensOf(platform, project)).filter(({ revoke_ts }) => revoke_ts === undefined).length, 1)
  assert.equal(await dev.end(), 0, dev.output())
  assert.deepEqual(processesOf(project.folder), [])
  assert.equal((await tokensOf(platform, project)).filter(({ revoke_ts }) => revoke_ts === undefined).length, 0)
  await assert.rejects(fetch(dev.url))
}

const SHOWING_SERVER = `
const http = process.getBuiltinModule('node:http')
import { readFileSync } from 'node:fs'
// bubblewrap adds PWD.
const { PWD, HOME, PATH, TMPDIR, PORT_GAME, PLATFORM_API_URL, PLATFORM_TOKEN, ...env } = process.env
const files = { 'server.cfg': readFileSync(HOME + '/server.cfg', 'utf8'), 'world/a/map.txt': readFileSync(HOME + '/world/a/map.txt', 'utf8') }
const has = [HOME, PATH, TMPDIR, PLATFORM_API_URL, PLATFORM_TOKEN].map((value) => value !== undefined)
const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
http.createServer().listen(PORT_GAME, '127.0.0.1', async () => {
  await fetch(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers })
  console.log('STARTED ' + JSON.stringify({ args: process.argv.slice(2), has, env: { ...env, PORT_GAME }, files, terminals: [process.stdin, process.stdout, process.stderr].map(({ isTTY }) => isTTY === true) }))
})
`

/** A site that needs cross-origin isolation, with a page that reads the path itself. */
const CDN = {
  not_found: 'index.html',
  routes: [
    { glob: '**', priority: 1, middlewares: headersOf({ 'Cross-Origin-Opener-Policy': 'same-origin' }) },
    { glob: 'Build/**', priority: 2, middlewares: headersOf({ 'Content-Type': 'text/plain', 'X-Build': 'yes' }) },
  ],
}

function headersOf(headers: Record<string, string>) {
  const all = Object.entries(headers).map(([name, value]) => ({ name, value }))
  return [{ kind: { custom_headers: { headers: all } } }]
}

/** What a browser sees, without the headers that say how long it may keep the file. */
async function pagesOf({ hostname, port }: URL) {
  const paths = [
    '/',
    '/notes.md',
    '/model.glb',
    '/any/where',
    '/lobbies',
    '/.well-known/none',
    '/Build/',
    '/docs',
    '/docs/?q',
  ]
  const built = ['/Build/code.js', '/Build/game.wasm', '/Build/game.wasm.br', '/Build/game.data', '/Build/none.js']
  const accents = [
    '/docs?q=//x',
    '//docs',
    '/%2Fdocs',
    '/docs/gr%C3%B6%C3%9Fe.txt',
    '/docs/gro%CC%88%C3%9Fe.txt',
    '/docs/Gr%C3%B6%C3%9Fe.txt',
  ]
  const unity = ['/unity/game.wasm.unityweb', '/unity/game.data.unityweb', '/unity/plain.js.unityweb']
  const shown: Record<string, unknown> = {}
  for (const path of [...paths, ...accents, ...built, ...unity]) {
    for (const accept of ['br', 'gzip', 'gzip, br', 'identity', 'br;q=0', 'gzip, identity;q=0', null]) {
      const headers = { host: `${hostname}:${port}`, ...(accept === null ? {} : { 'accept-encoding': accept }) }
      const { status, headers: got, body } = await get({ port: Number(port) }, path, { headers })
      const names = ['content-type', 'content-encoding', 'vary', 'cross-origin-opener-policy', 'x-build', 'location']
      const kept = status < 400 ? names.map((name) => [name, got[name]]) : []
      shown[`${path} ${accept}`] = [status, ...kept, status < 400 ? body.toString('base64') : '']
    }
  }
  return shown
}

type Shown = {
  args: string[]
  has: boolean[]
  env: Record<string, string>
  files: Record<string, string>
  terminals: boolean[]
}

const PLACEHOLDERS = [
  ...placeholderNames([
    { name: 'game', port_range: null },
    { name: 'my-voice', port_range: null },
  ]),
]
const SHOWING_DOCKER = {
  args: ['node', 'server.mjs', '$${PORT}', ...PLACEHOLDERS.map((name) => `${name}=\${${name}}`)],
  ports: {
    game: { protocol: 'http' },
    'my-voice': { protocol: 'udp' },
  },
  env: { ADDRESS: 'http://${HOST}:${PORT_GAME}/', PORT: '1', MAP: 'shared' },
  files: { 'server.cfg': 'port ${PORT_GAME} of ${GAME_MODE_NAME}', 'world/a/map.txt': '' },
  terminal: true,
}
const SHOWING = {
  game_modes: {
    duel: {
      max_players: 4,
      max_players_direct: 6,
      max_players_party: 5,
      docker: { ...SHOWING_DOCKER, env: { ...SHOWING_DOCKER.env, MAP: 'own' } },
    },
  },
}

async function same(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, {
    server: { 'server.mjs': SHOWING_SERVER },
    site: { 'index.html': '<h1>Page</h1>', 'Build/code.js': 'let a', 'notes.md': '# Notes', 'model.glb': 'glTF' },
    matchmaker: `matchmaker: ${JSON.stringify(SHOWING)}\ncdn: ${JSON.stringify(CDN)}\n`,
  })
  // A tool of macOS may compose accents otherwise than a link does.
  project.write('site/docs/größe.txt'.normalize('NFD'), 'size')
  project.write('site/docs/index.html', '<h1>Docs</h1>')
  project.write('site/Build/game.wasm.br', brotliCompressSync('wasm'))
  project.write('site/Build/game.data.gz', gzipSync('data'))
  project.write('site/unity/game.wasm.unityweb', gzipSync('wasm'))
  project.write('site/unity/game.data.unityweb', unityBrotli('data'))
  project.write('site/unity/plain.js.unityweb', 'let a')
  project.write('site/Build/code.js.gz', gzipSync('let a'))
  const { game_id } = project
  for (const [name, value] of Object.entries(SECRETS))
    await platform.client.call(setGameSecret, { params: { game_id, name }, body: { value } })
  await platform.client.call(setGameSecret, { params: { game_id, name: 'ONLY_THERE' }, body: { value: 'x' } })
  project.write('.env.secrets', `PAYMENT_KEY='${SECRETS.PAYMENT_KEY}'\nMAP=${SECRETS.MAP}\n`)
  const dev = await startDev(t, project, { OF_THE_SHELL: 'must not reach the server' })
  const developed = JSON.parse((await dev.shows(/^ {2}STARTED (.*)$/m))[1]!) as Shown
  await dev.shows(/lacks: ONLY_THERE\. Write NAME=value into \.env\.secrets/)
  await platform.client.call(removeGameSecret, { params: { game_id, name: 'ONLY_THERE' }, query: {} })
  const pages_of_dev = await pagesOf(new URL(dev.url))
  const dataOf = (name: string) => Buffer.from('data').toString('base64') === (pages_of_dev[name] as unknown[]).at(-1)
  assert.deepEqual(['/Build/game.data br', '/unity/game.data.unityweb gzip'].map(dataOf), [true, true])
  assert.equal(await dev.end(), 0, dev.output())

  const { url } = (await project.deploy()) as { url: string }
  assert.deepEqual(pages_of_dev, await pagesOf(new URL(url)))
  const printed = await until('the lobby prints', async () =>
    /STARTED (.*)$/m.exec((await project.run(['logs', '-n', '100'])).stdout),
  )
  const deployed = JSON.parse(printed[1]!) as Shown
  // Values of one lobby or one place differ, but each name that one has the other has too.
  assert.deepEqual(Object.keys(developed.env).sort(), Object.keys(deployed.env).sort())
  assert.deepEqual(developed.has, deployed.has)
  const named = (shown: Shown) => shown.args.map((text) => text.split('=')[0])
  assert.deepEqual(named(developed), named(deployed))
  for (const shown of [developed, deployed]) {
    const { args, env, files } = shown
    for (const text of args.slice(1)) assert.doesNotMatch(text, /\$\{|=$/)
    assert.equal(args[0], '${PORT}')
    assert.deepEqual(shown.terminals, [true, true, true])
    assert.equal(env.ADDRESS, `http://127.0.0.1:${env.PORT_GAME}/`)
    assert.deepEqual([env.PORT, env.HOST, env.MAP], ['1', '127.0.0.1', SECRETS.MAP])
    assert.equal(env.PAYMENT_KEY, SECRETS.PAYMENT_KEY)
    assert.deepEqual(files, { 'server.cfg': `port ${env.PORT_GAME} of duel`, 'world/a/map.txt': '' })
  }
  for (const name of [
    ...['PLATFORM_GAME_MODE_ID', 'PLATFORM_NAMESPACE_ID', 'PLATFORM_NAMESPACE_NAME', 'PLATFORM_MAX_PLAYERS_NORMAL'],
    ...['PLATFORM_MAX_PLAYERS_DIRECT', 'PLATFORM_MAX_PLAYERS_PARTY'],
  ]) {
    assert.equal(developed.env[name], deployed.env[name], name)
  }
}

const ADMITTING_DOCKER = {
  seats: 'edge',
  ready: 'listening',
  hold_ms: 60_000,
  player_addresses: true,
  args: ['node', 'server.mjs'],
  ports: {
    web: { protocol: 'http' },
    named: { protocol: 'http', admit_by: ['header'], token_name: 'key', keep_token: true },
    raw: { protocol: 'tcp', proxy_protocol: true },
    kept: { protocol: 'tcp', keep_token: true, several_connections: true },
    old: { protocol: 'tcp', admit_by: ['address'] },
    voice: { protocol: 'udp', proxy_protocol: true, require_player_token: true, same_number_as: 'raw' },
  },
}

const ADMITTING = {
  game_modes: { default: { player_deadline_ms: 60_000 } },
  docker: ADMITTING_DOCKER,
}

async function admits(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, {
    server: { 'server.mjs': PLAIN_SERVER },
    site: { 'index.html': '' },
    matchmaker: `matchmaker: ${JSON.stringify(ADMITTING)}\n`,
  })
  const dev = await startDev(t, project)
  const developed = await connectAll(t, await seatOf(dev.url))
  const seenOf = (text: string): string[] =>
    text.split('\n').flatMap((line) => /^[^{]*(\{"kind".*\})$/.exec(line)?.[1] ?? [])
  const seen_of_dev = seenOf(dev.output())
  await dev.shows(/^player 1 connected$/m)
  await dev.shows(/^a connection without a player token was refused$/m)
  assert.equal(await dev.end(), 0, dev.output())

  await project.deploy()
  const seat = JSON.parse((await project.run(['find', '--json'])).stdout) as Seat
  assert.deepEqual(developed, await connectAll(t, seat))
  const { stdout } = await project.run(['logs', '-n', '1000'])
  assert.deepEqual(masked(seen_of_dev), masked(seenOf(stdout).filter((line) => !line.includes('"silent"'))))
}

/** Ids of players, their addresses and the numbers of ports differ. Which are the same does not. */
function masked(texts: readonly string[]): string[] {
  const known: Record<string, string[]> = { player: [], address: [], token: [] }
  const nameOf = (kind: string) => (value: string) => {
    const values = known[kind]!
    if (!values.includes(value)) values.push(value)
    return `${kind} ${values.indexOf(value)}`
  }
  return texts.map((text) =>
    text
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, nameOf('player'))
      .replace(/127\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.\d+\.\d+|198\.1[89]\.\d+\.\d+/g, nameOf('address'))
      .replace(/dev_player\.[\w.-]+|player\.[\w.-]+/g, nameOf('token'))
      // Lobbies below a path of the platform get no cookies, because those of the platform are among them.
      .replace(/"sec-websocket-key":"[^"]*"/, 'KEY')
      .replace(/"text":".*\$player/, 'PROXY HEADER $player')
      .replace('"cookie":"a=1; b=2",', '')
      .replace(/(localhost|127\.0\.0\.[12]):\d+/g, 'HOST'),
  )
}

/** Without the addresses and ports of a PROXY header, which differ. */
function fromPlayer(text: string): string {
  return JSON.stringify(text.slice(Math.max(0, text.indexOf('\x05\0\x24'))))
}

/** What clients see who connect with a seat, and without one. */
async function connectAll(t: TestContext, seat: Seat): Promise<string[]> {
  const { token } = seat.player
  const urlOf = (name: string): string => seat.ports[name]!.url
  const kept: Socket[] = []
  const udp = await openUdp()
  t.after(() => udp.close())
  const seen: string[] = []
  const ask = async (path: string, headers: Record<string, string> = {}, method = 'GET', port = 'web') => {
    const response = await fetch(`${urlOf(port)}${path}`, { method, headers })
    const body = await response.text()
    const readable = response.headers.get('access-control-allow-origin')
    const shown = response.status < 300 ? body : (JSON.parse(body) as { code: string }).code
    seen.push(`${method} ${port} ${path} ${Object.keys(headers)}: ${response.status} ${readable} ${shown}`)
  }
  /** Waits for `last`, or the end of the connection. Of a PROXY header only the player is shown. */
  const tcp = async (name: string, first: string, last: string, from = '127.0.0.1') => {
    const { hostname: host, port } = new URL(urlOf(name))
    const socket = connect({ host, port: Number(port), localAddress: from })
    kept.push(socket)
    let text = ''
    const received = new Promise<void>((resolve) => {
      socket.on('error', () => {}).once('close', () => resolve())
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1')
        if (text.endsWith(last)) resolve()
      })
    })
    socket.write(first)
    await received
    seen.push(`${name} from ${from}: ${fromPlayer(text)}`)
    return socket
  }
  await ask('/')
  await ask('/?player_token=forged')
  await ask(`/a?x=1&player_token=${token}&y=2`, { 'x-player-id': 'forged' })
  await ask('/b', { cookie: `a=1; player_token=${token}; b=2` })
  await ask('/c', { 'x-player-token': token })
  await ask('/d', { 'x-player-token': token, 'x-forwarded-for': '203.0.113.7' }, 'POST')
  const asked = { origin: 'https://portal.example', 'access-control-request-method': 'PUT' }
  await ask('/e', asked, 'OPTIONS')
  await ask(`/f?key=${token}`, {}, 'GET', 'named')
  await ask('/g', { 'x-key': token }, 'GET', 'named')
  for (const protocols of [
    ['player_token', token],
    ['player_token', token],
    ['player_token', 'forged'],
  ]) {
    const socket = new WebSocket(urlOf('web').replace('http', 'ws'), protocols)
    t.after(() => socket.terminate())
    const first = await once(socket, 'message').then(
      ([message]) => `${socket.protocol} ${message}`,
      (error: Error) => error.message,
    )
    seen.push(first)
    socket.on('error', () => {})
  }
  await tcp('raw', 'forged\nstranger', 'stranger')
  const earlier = await tcp('raw', `${token}\nplayer`, 'player')
  await tcp('raw', `${token}\nagain`, 'again')
  if (!earlier.closed) await once(earlier, 'close')
  await tcp('kept', `${token}\nplayer`, 'player')
  await tcp('kept', `${token}\nagain`, 'again')
  await tcp('old', 'player', 'player')
  await tcp('old', 'stranger', 'stranger', '127.0.0.9')
  for (const one of kept) one.destroy()
  const voice = new URL(urlOf('voice'))
  seen.push(`one number: ${voice.port === new URL(urlOf('raw')).port}`)
  udp.send('stranger', Number(voice.port), voice.hostname)
  seen.push(`udp forged: ${await handshake(udp, voice.href, `player.${'x'.repeat(64)}`)}`)
  seen.push(`udp: ${await handshake(udp, voice.href, token)}`)
  const heard = once(udp, 'message')
  udp.send('player', Number(voice.port), voice.hostname)
  const [echo] = (await heard) as [Buffer]
  seen.push(`udp: ${fromPlayer(echo.toString('latin1'))}`)
  return masked(seen)
}

const LOBBY_SERVER = `
import { createServer } from 'node:http'
const { PLATFORM_API_URL, PLATFORM_TOKEN, PLATFORM_LOBBY_ID, PLATFORM_LOBBY_TAGS, PLATFORM_LOBBY_CONFIG, PORT } = process.env
const call = async (method, path, body) => {
  const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN, 'content-type': 'application/json' }
  const response = await fetch(PLATFORM_API_URL + '/matchmaker' + path, { method, headers, body: JSON.stringify(body) })
  return response.json()
}
createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://x')
  if (pathname === '/close') await call('PUT', '/lobbies/closed', { is_closed: true })
  if (pathname === '/connected') await call('POST', '/players/connected', { player_token: searchParams.get('token') })
  if (pathname === '/disconnected') await call('POST', '/players/disconnected', { player_token: searchParams.get('token') })
  response.end(await (async () => JSON.stringify(await call('GET', '/lobbies/' + PLATFORM_LOBBY_ID + '/state')))())
}).listen(PORT, '127.0.0.1', async () => {
  await call('PUT', '/lobbies/state', { tags: PLATFORM_LOBBY_TAGS, config: PLATFORM_LOBBY_CONFIG })
  await call('POST', '/lobbies/ready', {})
  console.log('LISTENING')
})
`

const KEEPING = {
  game_modes: {
    default: {
      taggable: true,
      listable: true,
      allow_dynamic_max_players: false,
      actions: {
        find: { enabled: true },
        join: { enabled: true },
        create: { enabled: true, enable_public: true, enable_private: false },
      },
    },
  },
  docker: { args: ['node', 'server.mjs'], ready: { log: '^LISTENING$' }, ports: { game: { protocol: 'http' } } },
}

async function keepsLobby(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, {
    server: { 'server.mjs': LOBBY_SERVER },
    site: { 'index.html': '' },
    matchmaker: `matchmaker: ${JSON.stringify(KEEPING)}\n`,
  })
  /** The status of a call for a seat, and what the server of that seat says after it. */
  const seatIn = async (url: string, game: Record<string, unknown>, then: string[], path = 'find') => {
    const body = JSON.stringify(
      path === 'find' ? { game_modes: ['default'], ...game } : { game_mode: 'default', ...game },
    )
    const headers = {
      'content-type': 'application/json',
      ...(url === platform.edge_url && { authorization: `Bearer ${player}` }),
    }
    const response = await fetch(`${url}/matchmaker/lobbies/${path}`, { method: 'POST', headers, body })
    const seat = (await response.json()) as Seat & { code: string }
    if (response.status !== 200) return seat.code
    let said = ''
    for (const page of ['/', ...then]) {
      said = await (await fetch(`${seat.ports.game!.url}${page}?token=${seat.player.token}`)).text()
    }
    return said
  }
  let player = ''
  const play = async (url: string): Promise<string[]> => [
    await seatIn(url, {}, []),
    await seatIn(url, { tags: { map: 'dust' } }, []),
    await seatIn(url, { tags: { map: 'dust' }, prevent_auto_create_lobby: true }, []),
    await seatIn(url, { tags: { map: 'ice' }, prevent_auto_create_lobby: true }, []),
    await seatIn(url, { lobby_config: { rounds: 3 }, tags: { map: 'own' } }, ['/close'], 'create'),
    await seatIn(url, { tags: { map: 'own' }, prevent_auto_create_lobby: true }, []),
    await seatIn(url, { max_players: 2 }, []),
    await seatIn(url, { publicity: 'private' }, [], 'create'),
  ]
  const dev = await startDev(t, project)
  await dev.shows(/^lobby: state \{\}$/m)
  await dev.shows(/^lobby: ready$/m)
  const developed = await play(dev.url)
  await dev.shows(/^server starts \(new lobby with tags map: dust\)$/m)
  await dev.shows(/^lobby: closed$/m)
  // While players are in the one lobby, there is no other.
  assert.match(await seatIn(dev.url, { tags: { map: 'ice' } }, ['/connected']), /"tags":"\{\\"map\\":\\"ice/)
  assert.equal(await seatIn(dev.url, { tags: { map: 'sand' } }, []), 'MATCHMAKER_NO_AVAILABLE_LOBBIES')
  const listed = await fetch(`${dev.url}/matchmaker/lobbies/list?include_state=true`)
  const { lobbies } = (await listed.json()) as { lobbies: { total_player_count: number; state: { tags: string } }[] }
  assert.deepEqual(
    [lobbies.length, lobbies[0]!.total_player_count, lobbies[0]!.state],
    [1, 1, { tags: '{"map":"ice"}' }],
  )
  assert.equal(await dev.end(), 0, dev.output())

  await project.deploy()
  const params = await prodOf(platform, project)
  player = (await platform.client.call(createGameNamespaceTokenPublic, { params })).token
  assert.deepEqual(developed, await play(platform.edge_url))
}

/** Deployed it runs in server/test/runner/protocols.test.ts, and with all four protocols in dev-protocols.test.ts. */
const SPEAKING = {
  matchmaker: {
    game_modes: { default: { max_players: 4 } },
    docker: {
      args: ['node', 'agones.mjs'],
      protocol: 'agones',
      protocol_options: {
        counters: { rooms: { count: 1, capacity: 10 } },
        room: 'rooms',
        lists: { players: { capacity: 4 }, maps: { values: ['cliff'], capacity: 2 } },
        end_unhealthy: true,
      },
      ports: { game: { protocol: 'http' } },
    },
  },
}

/** dev-protocols.test.ts has such a server. */
const MULTIPLAY = {
  matchmaker: { docker: { protocol: 'multiplay', protocol_options: { metadata: { map: 'cliff' } } } },
}

async function speaks(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, {
    server: PROTOCOL_SERVERS,
    site: { 'index.html': '' },
    matchmaker: `matchmaker: ${JSON.stringify(SPEAKING.matchmaker)}\n`,
  })
  const dev = await startDev(t, project)
  await dev.shows(/^Agones: Ready$/m)
  await dev.shows(/^lobby: ready$/m)
  const { ports } = await seatOf(dev.url)
  await dev.shows(/^Agones: Allocated$/m)
  const { status } = (await (await fetch(ports.game!.url)).json()) as { status: Record<string, unknown> }
  assert.deepEqual(
    [status.state, status.counters, status.ports],
    [
      'Allocated',
      { rooms: { count: '1', capacity: '10' } },
      [{ name: 'game', port: Number(new URL(ports.game!.url).port) }],
    ],
  )
  // Another server is another lobby.
  project.write('server/agones.mjs', `${PROTOCOL_SERVERS['agones.mjs']}\n// changed`)
  await dev.shows(/^server starts \(agones\.mjs changed\)[\s\S]*^Agones: Ready$/m)
  // The server ends itself by its protocol.
  await fetch(`${ports.game!.url}/shutdown`).catch(() => null)
  await dev.shows(/^lobby: ended by its server; the next find starts it again$/m)
  await seatOf(dev.url)
  await dev.shows(/^server starts \(new lobby\)[\s\S]*^Agones: Ready$/m)
  assert.equal(await dev.end(), 0, dev.output())
  assert.deepEqual(processesOf(project.folder), [])
}

async function keys(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, {
    server: { 'server.mjs': GAME_SERVER('one') },
    site: { 'index.html': '' },
  })
  const screen = openScreen(t, { ...project.muster, cwd: project.folder }, ['dev'])
  if (screen === null) return
  t.after(() => endProcessesOf(project.folder))
  await screen.shows('Play: http://localhost:')
  await screen.shows('ready: 200')
  screen.type('l')
  await screen.shows('logs are hidden')
  screen.type('r')
  await screen.shows('server starts (key r)')
  // This server takes no WebSockets.
  screen.type('b')
  await screen.shows('bot 1 could not connect')
  screen.ctrlC()
  assert.equal(await screen.ended, 0)
  assert.ok(screen.text().includes('ending what was started'))
  assert.deepEqual(processesOf(project.folder), [])
}

async function ownPlatform(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, {
    server: { 'server.mjs': GAME_SERVER('own') },
    site: { 'index.html': '' },
  })
  const dev = await startDev(t, project, { MUSTER_URL: '', MUSTER_TOKEN: '' })
  assert.match(dev.output(), /^No platform runs: starting one/)
  await dev.shows(/^ {2}ready: 200$/m)
  assert.equal(await greetingOf(dev.url), '200 own')
  assert.equal(await dev.end(), 0, dev.output())
  assert.deepEqual(processesOf(project.folder), [])
}

async function killed(t: TestContext, platform: Platform): Promise<void> {
  const project = await createProject(t, platform, {
    // It ends at no request, and has to be killed.
    server: {
      'server.mjs': `process.on('SIGTERM', () => {})\nconsole.log('pid ' + process.pid)\n${GAME_SERVER('own')}`,
    },
    site: { 'index.html': '' },
  })
  const dev = await startDev(t, project, { MUSTER_URL: '', MUSTER_TOKEN: '' })
  await dev.shows(/^ {2}ready: 200$/m)
  assert.equal(await greetingOf(dev.url), '200 own')
  const pid = Number((await dev.shows(/^ {2}pid (\d+)$/m))[1])
  t.after(() => isThere(pid) && process.kill(pid, 'SIGKILL'))
  assert.ok(isThere(pid))
  assert.ok(processesOf(project.folder).some(({ command }) => command.includes('postgres')))
  dev.kill()
  await until('everything has ended', () => !isThere(pid) && processesOf(project.folder).length === 0)
}
