// A real nginx as a proxy on this machine: it connects to the edge by a unix socket, and is trusted. A lobby shares the
// machine's network and forges headers and addresses, and still counts as one client.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { createServer } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { findLobby } from '@musterhost/contract'
import { ConfigError, readConfig } from '../../src/config/read-config.ts'
import { lacking } from '../run/optional-programs.ts'
import { freePorts } from '../support/free-ports.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { startBackend, startTestEdge } from './platform.ts'

/** The default limit of seats of one client. */
const SEATS_PER_CLIENT = 8
const FORGED_COUNT = 24

/** Creates a folder that lobbies cannot enter, as described in docs/deploying.md. */
function closedFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-socket-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  chmodSync(folder, 0o2750)
  return folder
}

/** Starts nginx with the location of docs/deploying.md. Returns the address of the proxy. */
async function startNginx(t: TestContext, edge_socket: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'muster-nginx-'))
  const [port] = (await freePorts(1)) as [number]
  const docs = readFileSync(new URL('../../../docs/deploying.md', import.meta.url), 'utf8')
  const location = /^ {2}location [\s\S]*?\n {2}\}$/m.exec(docs)![0]
  assert.match(location, /unix:\/run\/muster\/edge\.sock/)
  const config = `
    daemon off; pid ${folder}/pid; error_log ${folder}/error.log;
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    events {}
    http {
      access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
      fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
      server {
        listen 127.0.0.1:${port};
        ${location.replace('/run/muster/edge.sock', edge_socket)}
      }
    }`
  writeFileSync(join(folder, 'nginx.conf'), config)
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  const url = `http://127.0.0.1:${port}`
  await until('nginx responds', () =>
    fetch(url).then(
      async (response) => (await response.text()) !== '',
      () => false,
    ),
  )
  return url
}

type Asked = { socket_path?: string; url?: string; from?: string; headers?: Record<string, string>; body?: object }

async function ask(path: string, { socket_path, url, from, headers = {}, body }: Asked) {
  const to = url === undefined ? { socketPath: socket_path!, path } : { ...addressOf(url), path }
  const req = request({
    ...to,
    method: body === undefined ? 'GET' : 'POST',
    agent: false,
    ...(from !== undefined && { localAddress: from }),
    headers: { host: 'localhost', 'content-type': 'application/json', ...headers },
  })
  req.end(body === undefined ? undefined : JSON.stringify(body))
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  return { status: res.statusCode ?? 0, text: await text(res) }
}

function addressOf(url: string): { host: string; port: string } {
  const { hostname, port } = new URL(url)
  return { host: hostname, port }
}

test('a loopback address in MUSTER_TRUSTED_PROXIES is refused at start', () => {
  const mistakesOf = (MUSTER_TRUSTED_PROXIES: string): readonly string[] => {
    try {
      readConfig({ MUSTER_TRUSTED_PROXIES })
      return []
    } catch (error) {
      if (error instanceof ConfigError) return error.mistakes
      throw error
    }
  }
  const refused = [
    ...['127.0.0.1', '127.0.0.1/32', '127.0.0.0/8', '127.9.9.9', '126.0.0.0/7', '10.0.0.0/8, 127.0.0.1'],
    ...['::1', '::1/128', '::/64', '::ffff:127.0.0.1', '::ffff:127.0.0.0/104', '::ffff:0:0/96', '0.0.0.0/1'],
  ]
  for (const cidrs of refused) {
    assert.match(mistakesOf(cidrs).join(), /loopback address: lobbies share .* MUSTER_EDGE_SOCKET/, cidrs)
  }
  for (const cidrs of ['10.0.0.0/8', '128.0.0.0/1', '192.0.2.1', '2001:db8::/32', 'fe80::/10'])
    assert.deepEqual(mistakesOf(cidrs), [], cidrs)
  assert.match(mistakesOf('10.0.0.0/8,nonsense').join(), /MUSTER_TRUSTED_PROXIES names "nonsense"/)
})

test('over the socket the proxy names the client, and a request without a client is refused', async (t) => {
  const edge_socket = join(closedFolder(t), 'edge.sock')
  const backend = await startBackend(t, 'api')
  await startTestEdge(t, { api_port: backend.port, env: { MUSTER_EDGE_SOCKET: edge_socket } })
  assert.equal(statSync(edge_socket).mode & 0o777, 0o660)
  const seenBy = async (headers: Record<string, string>) => {
    const { status } = await ask('/', { socket_path: edge_socket, headers })
    assert.equal(status, 200)
    return backend.seen.at(-1)!.headers
  }
  assert.equal((await seenBy({ 'x-forwarded-for': '203.0.113.7' }))['x-forwarded-for'], '203.0.113.7')
  // The client's own text stands to the left of the address that the proxy added.
  assert.equal((await seenBy({ 'x-forwarded-for': '1.2.3.4, 203.0.113.8' }))['x-forwarded-for'], '203.0.113.8')
  assert.equal((await seenBy({ 'x-forwarded-for': '2001:DB8::1' }))['x-forwarded-for'], '2001:db8::1')
  const speechless: Record<string, string>[] = [
    {},
    { 'x-forwarded-for': '' },
    { 'x-forwarded-for': 'nobody' },
    { 'x-real-ip': '1.2.3.4' },
  ]
  for (const headers of speechless) {
    const { status, text } = await ask('/', { socket_path: edge_socket, headers })
    assert.equal(status, 400)
    assert.match(text, /needs X-Forwarded-For/)
  }
})

test('a folder that lobbies could enter, a file in the way, and a socket in use are refused', async (t) => {
  const start = (edge_socket: string) => startTestEdge(t, { env: { MUSTER_EDGE_SOCKET: edge_socket } })
  const folder = closedFolder(t)
  for (const mode of [0o755, 0o751, 0o2754, 0o777]) {
    const open = join(folder, mode.toString(8))
    mkdirSync(open)
    chmodSync(open, mode)
    await assert.rejects(start(join(open, 'edge.sock')), { name: 'StartError', message: /open to every user/ })
  }
  await assert.rejects(start(join(folder, 'nothing', 'edge.sock')), { name: 'StartError', message: /is missing/ })
  writeFileSync(join(folder, 'file'), 'mine')
  await assert.rejects(start(join(folder, 'file')), { name: 'StartError', message: /no socket/ })
  const other = createServer().listen(join(folder, 'taken'))
  await once(other, 'listening')
  t.after(() => void other.close())
  await assert.rejects(start(join(folder, 'taken')), { name: 'StartError', message: /another program listens/ })
  // A killed edge leaves a socket without a listener.
  const left = join(folder, 'left')
  spawnSync(process.execPath, [
    '-e',
    `require('net').createServer().listen(${JSON.stringify(left)}, () => process.kill(process.pid, 'SIGKILL'))`,
  ])
  assert.ok(existsSync(left))
  const edge = await start(left)
  assert.equal((await ask('/', { socket_path: left, headers: { 'x-forwarded-for': '203.0.113.7' } })).status, 503)
  await edge.role.stop({ end_lobbies: false })
  assert.ok(!existsSync(left), 'an edge that stops takes its socket along')
  assert.throws(() => readConfig({ MUSTER_EDGE_SOCKET: 'edge.sock' }), /absolute path/)
  assert.throws(() => readConfig({ MUSTER_EDGE_SOCKET: `/${'a'.repeat(107)}` }), /at most 107 bytes/)
})

test('a peer with one of the machine’s own addresses is never a trusted proxy', async (t) => {
  const own = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')
  if (own === undefined) return t.skip('needs an address beside loopback')
  const backend = await startBackend(t, 'api')
  const env = { MUSTER_TRUSTED_PROXIES: `${own.address}/32, 127.0.0.3` }
  const edge = await startTestEdge(t, { api_port: backend.port, env })
  const headers = { 'x-forwarded-for': '203.0.113.7' }
  await ask('/', { url: `http://127.0.0.1:${edge.port}`, from: '127.0.0.3', headers })
  assert.equal(backend.seen.at(-1)!.headers['x-forwarded-for'], '203.0.113.7', 'as from a proxy elsewhere')
  await ask('/', { url: `http://127.0.0.1:${edge.port}`, from: own.address, headers })
  assert.equal(backend.seen.at(-1)!.headers['x-forwarded-for'], own.address)
})

/** A lobby's server that forges requests for seats, and reports the results over HTTP. */
const FORGER = `
import { existsSync } from 'node:fs'
const http = process.getBuiltinModule('node:http')
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME, PUBLIC_TOKEN, EDGE_URL, EDGE_SOCKET } = process.env
const find = (to, headers) => new Promise((resolve) => {
  const req = http.request({ ...to, path: '${findLobby.path}', method: 'POST', agent: false, headers: {
    host: 'localhost', 'content-type': 'application/json', authorization: 'Bearer ' + PUBLIC_TOKEN, ...headers } })
  req.on('response', (res) => { res.resume(); resolve(res.statusCode) })
  req.on('error', (error) => resolve(error.code))
  req.end(JSON.stringify({ game_modes: ['default'] }))
})
async function forge() {
  const { hostname: host, port } = new URL(EDGE_URL)
  const by_address = []
  for (let n = 0; n < ${FORGED_COUNT}; n++) {
    const address = '203.0.113.' + n
    by_address.push(await find({ host, port }, { 'x-forwarded-for': address, 'x-real-ip': address, forwarded: 'for=' + address }))
  }
  const by_socket = await find({ socketPath: EDGE_SOCKET }, { 'x-forwarded-for': '203.0.113.200' })
  return { by_address, by_socket, sees_socket: existsSync(EDGE_SOCKET) }
}
http.createServer((_, res) => forge().then((told) => res.end(JSON.stringify(told)))).listen(Number(PORT_GAME), '127.0.0.1', () => {
  const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
  http.request(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }).end()
})
process.on('SIGTERM', () => process.exit(0))
`

const seatsOf = async (platform: Platform, address: string): Promise<number> => {
  const rows = await platform.ctx.db.selectFrom('players').select('client').where('client', '=', address).execute()
  return rows.length
}

test('behind nginx each player is a client of their own, and a forging lobby is one client', async (t) => {
  const missing = lacking('nginx')
  if (missing !== null) return t.skip(missing)
  const edge_socket = join(closedFolder(t), 'edge.sock')
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,runner,edge',
    has_sandboxes: true,
    // In a network of its own it would not reach the edge at all.
    env: { MUSTER_EDGE_SOCKET: edge_socket, MUSTER_LOBBY_NETWORK: 'machine' },
  })
  const proxy_url = await startNginx(t, edge_socket)
  const plain = await platform.game({ matchmaker: { game_modes: { default: { max_players: 256 } } } })
  const game = await platform.game({
    matchmaker: { game_modes: { default: { max_players: 256 } } },
    files: { 'server.mjs': FORGER },
    docker: { env: { PUBLIC_TOKEN: plain.public_token, EDGE_URL: platform.edge_url, EDGE_SOCKET: edge_socket } },
  })
  const body = { game_modes: ['default'] }
  const findFrom = (from: string, token: string, forged: Record<string, string> = {}) => {
    const headers = { authorization: `Bearer ${token}`, ...forged }
    return ask(findLobby.path, { url: proxy_url, from, headers, body })
  }

  await t.test('a player has their own seats, whatever headers the request contains', async () => {
    for (const from of ['127.0.0.5', '127.0.0.6']) {
      for (let seat = 0; seat < SEATS_PER_CLIENT; seat++) {
        const forged = { 'x-forwarded-for': `203.0.113.${seat}` }
        const found = await findFrom(from, plain.public_token, forged)
        assert.equal(found.status, 200, found.text)
      }
      const more = await findFrom(from, plain.public_token, { 'x-forwarded-for': '203.0.113.99' })
      assert.match(more.text, /MATCHMAKER_TOO_MANY_PLAYERS_FROM_SOURCE/)
    }
  })

  await t.test('a lobby that claims other addresses gets the seats of one client', async (t) => {
    const missing = lacking('bwrap')
    if (missing !== null) return t.skip(missing)
    const found = await findFrom('127.0.0.7', game.public_token)
    assert.equal(found.status, 200, found.text)
    const { lobby } = JSON.parse(found.text) as { lobby: { lobby_id: string } }
    const told = await ask(`/lobbies/${lobby.lobby_id}/game/`, { url: platform.edge_url })
    assert.equal(told.status, 200, told.text)
    const { by_address, by_socket, sees_socket } = JSON.parse(told.text) as {
      by_address: number[]
      by_socket: string | number
      sees_socket: boolean
    }
    assert.equal(by_address.filter((status) => status === 200).length, SEATS_PER_CLIENT)
    assert.equal(by_address.length, FORGED_COUNT)
    assert.ok(['ENOENT', 'EACCES'].includes(String(by_socket)), String(by_socket))
    assert.equal(sees_socket, false)
    for (const forged of ['203.0.113.0', '203.0.113.200']) assert.equal(await seatsOf(platform, forged), 0)
  })
})
