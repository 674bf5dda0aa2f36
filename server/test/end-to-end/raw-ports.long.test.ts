// Raw TCP and UDP games on the real platform: a build is uploaded, find starts it, and its players speak to it through
// the edge.
import assert from 'node:assert'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { createGameVersion, findLobby } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { RAW_HOST } from '../edge/platform.ts'
import { freeSettings, roleOf, startMuster, temporaryFolder } from '../supervisor/started.ts'
import { placeCluster } from '../support/made-cluster.ts'
import { createTestGame, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { dial, openDatagrams, openLines, RAW_SERVER } from './raw-server.ts'

test('a raw TCP and a raw UDP game are played through the edge at the addresses that find answers', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  const game = await platform.game({
    files: { 'server.mjs': RAW_SERVER },
    docker: { ports: { game: { protocol: 'tcp' }, voice: { protocol: 'udp' } } },
  })
  const seat = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  for (const [name, scheme] of [
    ['game', 'tcp'],
    ['voice', 'udp'],
  ] as const) {
    const { port, ...rest } = seat.ports[name]!
    assert.ok(port !== undefined && port >= 26_000 && port <= 31_999)
    const host = `${RAW_HOST}:${port}`
    assert.deepStrictEqual(rest, { host, hostname: RAW_HOST, is_tls: false, url: `${scheme}://${host}` })
  }

  const stranger = dial(t, seat.ports.game!.url)
  stranger.write('no token')
  assert.strictEqual(await stranger.line(), null)

  const player = dial(t, seat.ports.game!.url)
  player.write(seat.player.token)
  assert.strictEqual(await player.line(), 'welcome')
  player.write('hello')
  assert.strictEqual(await player.line(), 'HELLO')
  // Half closed: what was asked for still comes.
  player.socket.end('last\n')
  assert.deepStrictEqual([await player.line(), await player.line(), await player.line()], ['LAST', 'bye', null])

  const [one, other] = [await openDatagrams(t, seat.ports.voice!.url), await openDatagrams(t, seat.ports.voice!.url)]
  one.send('ping')
  other.send('pong!')
  assert.deepStrictEqual([String(await one.next()), String(await other.next())], ['4:ping', '5:pong!'])
  one.send('')
  assert.strictEqual(String(await one.next()), '0:')
})

test('a raw TCP game is played over TLS, with a certificate that the client has verified', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  const game = await platform.game({
    files: { 'server.mjs': RAW_SERVER },
    docker: { ports: { game: { protocol: 'tcp_tls' }, voice: { protocol: 'udp' } } },
  })
  const seat = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const { hostname, is_tls, url } = seat.ports.game!
  const port = seat.ports.game!.port!
  assert.deepStrictEqual([is_tls, url], [true, `tls://${hostname}:${port}`])

  const ca = await readFile(join(platform.data_dir, 'keys', 'local-authority.crt'), 'utf8')
  await assert.rejects(once(connect({ host: hostname, port }), 'secureConnect'), { code: /SELF_SIGNED|VERIFY|UNABLE/ })
  const plain_socket = connectPlain({ host: hostname, port, allowHalfOpen: true })
  const socket = connect({ socket: plain_socket, host: hostname, ca })
  const player = openLines(t, socket)
  player.write(seat.player.token)
  assert.strictEqual(await player.line(), 'welcome')
  assert.strictEqual(socket.authorized, true)
  player.write('hello')
  assert.strictEqual(await player.line(), 'HELLO')
  socket.end('last\n')
  assert.deepStrictEqual([await player.line(), await player.line(), await player.line()], ['LAST', 'bye', null])

  // Nobody gets in without TLS, and a handshake that fails leaves the port as it was.
  const plain = dial(t, `tcp://${hostname}:${port}`)
  plain.write(seat.player.token)
  assert.notStrictEqual(await plain.line(), 'welcome')
  const stranger = connect({ host: hostname, port, ca, servername: 'game.elsewhere.test' })
  await assert.rejects(once(stranger, 'secureConnect'))
  const again = openLines(t, connect({ host: hostname, port, ca }))
  again.write('no token')
  assert.strictEqual(await again.line(), null)
})

/** Reports what becomes of listening at each address that a line names. */
const GREEDY_SERVER = `
const http = process.getBuiltinModule('node:http')
import net from 'node:net'
const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME, PORT_SSH } = process.env
const listen = ({ port, host }) =>
  new Promise((resolve) => {
    const server = net.createServer()
    server.once('error', ({ code }) => resolve(code))
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve('listening')))
  })
net.createServer((socket) => {
  socket.once('data', async (line) => {
    const found = { own: [Number(PORT_GAME), Number(PORT_SSH)], outcomes: [] }
    for (const address of JSON.parse(line)) found.outcomes.push(await listen(address))
    socket.end(JSON.stringify(found) + '\\n')
  })
}).listen(Number(PORT_GAME), '127.0.0.1', () => {
  const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
  http.request(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }).end()
})
process.on('SIGTERM', () => process.exit(0))
`

test('a lobby in the network of the machine gets numbers of its own, and takes none of the platform', async (t) => {
  const platform = await startPlatform(t, {
    roles: 'api,matchmaker,runner,edge',
    has_sandboxes: true,
    env: { MUSTER_LOBBY_NETWORK: 'machine' },
  })
  const game = await platform.game({
    files: { 'server.mjs': GREEDY_SERVER },
    docker: { ports: { game: { protocol: 'tcp' }, ssh: { protocol: 'tcp' } } },
  })
  const seat = await game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const { api_port, matchmaker_port, edge_http_port, edge_https_port } = platform.ctx.config
  const spare = await platform.ctx.db.selectFrom('edge_ports').select('port').where('transport', '=', 'tcp').execute()
  const theirs = [
    ...[api_port, matchmaker_port, edge_http_port, edge_https_port].map((port) => ({ port, host: '127.0.0.1' })),
    ...spare.map(({ port }) => ({ port, host: RAW_HOST })),
  ]
  assert.ok(spare.length > 16)
  const player = dial(t, seat.ports.game!.url)
  player.socket.write(JSON.stringify(theirs))
  const { own, outcomes } = JSON.parse((await player.line()) ?? '') as { own: number[]; outcomes: string[] }
  assert.ok(
    own.every((port) => port >= 20_000 && port < 26_000),
    String(own),
  )
  assert.deepStrictEqual([...new Set(outcomes)], ['EADDRINUSE'])

  // Numbers of the machine are for network mode host, which the operator allows or not.
  for (const min of [22, 80, 26_000]) {
    const config = {
      game_modes: { default: {} },
      docker: { ports: { game: { protocol: 'udp' as const, port_range: { min, max: min + 9 } } } },
    }
    const refused = platform.client.call(createGameVersion, {
      params: { game_id: game.game_id },
      body: {
        display_name: `from ${min}`,
        config: { matchmaker: { ...config, docker: { ...config.docker, network_mode: 'host' } } },
      },
    })
    await assert.rejects(refused, { code: 'VALIDATION_ERROR' })
  }
})

test('edge, matchmaker and runner are killed one after the other, and the addresses of a lobby stay good', async (t) => {
  const folder = temporaryFolder(t)
  const settings = await freeSettings(folder)
  await placeCluster(folder)
  const started = startMuster(settings)
  await started.ready
  const url = `http://127.0.0.1:${settings.MUSTER_EDGE_HTTP_PORT}`
  const as = (token: string) => createClient({ url, token })
  const client = as((await readFile(join(folder, 'admin-token'), 'utf8')).trim())
  const game = await createTestGame(
    { client, as, api_url: `http://127.0.0.1:${settings.MUSTER_API_PORT}` },
    {
      files: { 'server.mjs': RAW_SERVER },
      docker: { ports: { game: { protocol: 'tcp' }, voice: { protocol: 'udp' } } },
    },
  )
  const find = () => game.player.call(findLobby, { body: { game_modes: ['default'] } })
  const first = await find()

  for (const role of ['edge', 'matchmaker', 'runner', 'edge']) {
    const pid = await until(`a ${role}`, () => roleOf(folder, role))
    process.kill(pid, 'SIGKILL')
    await until(`another ${role}`, () => {
      const other = roleOf(folder, role)
      return other !== undefined && other !== pid
    })
    const seat = await until('a seat', () => find().catch(() => null))
    assert.deepStrictEqual(seat.ports, first.ports)
    const player = dial(t, seat.ports.game!.url)
    player.write(seat.player.token)
    assert.strictEqual(await player.line(), 'welcome')
    const voice = await openDatagrams(t, seat.ports.voice!.url)
    voice.send('ping')
    assert.strictEqual(String(await voice.next()), '4:ping')
  }
  started.signalGroup('SIGINT')
  await started.ended
})
