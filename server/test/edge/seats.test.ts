// Seats that the edge checks, on the real platform: which bytes reach a server that checks none, and what the book knows.
import assert from 'node:assert'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import {
  deleteMatchmakerLobbyPlayer,
  explainRay,
  findLobby,
  joinLobby,
  listMatchmakerLobbyPlayers,
  type ResponseOf,
  type VersionConfig,
} from '@musterhost/contract'
import { WebSocket } from 'ws'
import { startEdge } from '../../src/edge/start.ts'
import { newId } from '../../src/ids.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { lacking } from '../run/optional-programs.ts'
import { NETWORK_NEEDS } from '../runner/network-world.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { ask as askHttp2, connectHttp2 } from './http2/client.ts'
import { echoOf, handshake, type Line, openUdp, PLAIN_SERVER } from './seats-server.ts'

type Docker = NonNullable<NonNullable<VersionConfig['matchmaker']>['docker']>
type Seat = ResponseOf<typeof findLobby>

const PORTS: Docker['ports'] = { web: { protocol: 'http' }, raw: { protocol: 'tcp' }, voice: { protocol: 'udp' } }
const LONG_MS = 3_600_000

async function startGame(
  t: TestContext,
  docker: Docker = {},
  mode = {},
  env: Record<string, string> = {},
): Promise<{ platform: Platform; game: TestGame }> {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true, env })
  const game = await platform.game({
    files: { 'server.mjs': PLAIN_SERVER },
    docker: { ports: PORTS, ready: 'listening', seats: 'edge', ...docker },
    matchmaker: { game_modes: { default: { max_players: 64, idle_grace_ms: LONG_MS, ...mode } } },
    limits: { max_players_per_client: 1_000 },
  })
  return { platform, game }
}

const find = (game: TestGame): Promise<Seat> => game.player.call(findLobby, { body: { game_modes: ['default'] } })

/** What has reached the server of a lobby. */
/** Without the connections by which the platform sees that the server is ready. */
async function seenBy(platform: Platform, seat: Seat): Promise<Line[]> {
  return (await linesOf(platform, seat)).filter(({ kind }) => kind !== 'silent')
}

async function linesOf({ ctx }: Platform, { lobby }: Seat): Promise<Line[]> {
  const { lines } = await ctx.lobby_logs.last(lobby.lobby_id, 'stdout', 10_000)
  return lines.map(({ bytes }) => JSON.parse(bytes.toString()) as Line)
}

/** The players of a lobby that are connected, as the book has them. */
async function connectedIn({ client }: Platform, game: TestGame, { lobby }: Seat): Promise<string[]> {
  const params = { game_id: game.game_id, lobby_id: lobby.lobby_id }
  const { players } = await client.call(listMatchmakerLobbyPlayers, { params })
  return players.filter(({ connect_ts }) => connect_ts != null).map(({ player_id }) => player_id)
}

const playerOf = ({ ctx }: Platform, { player }: Seat): string => {
  const claims = ctx.keys.verify(player.token, ctx.now())
  assert.ok(claims.kind === 'player')
  return claims.player_id
}

test('a thousand connections without a seat reach no server, whatever their token and protocol', async (t) => {
  const { platform, game } = await startGame(t, { hold_ms: 0 })
  const seat = await find(game)
  const { lobby_id } = seat.lobby
  const player_id = newId(platform.ctx.now())
  const { namespace_id } = game
  const issue = (kind: object, lifetime_ms: number | null, now_ms = platform.ctx.now()): string =>
    platform.ctx.keys.issue({ kind: 'player', player_id, lobby_id, namespace_id, ...kind } as never, {
      now_ms,
      lifetime_ms,
    })
  const used = await find(game)
  assert.strictEqual(await echoOf(used.ports.raw!.url, `${used.player.token}\nhello`), 'hello')
  await until('the player has left', async () => (await connectedIn(platform, game, seat)).length === 0)
  const tokens = {
    forged: `${seat.player.token.slice(0, -6)}AAAAAA`,
    foreign: issue({ lobby_id: newId(platform.ctx.now()) }, LONG_MS),
    used: used.player.token,
    unknown: issue({}, LONG_MS),
    expired: issue({}, 1, platform.ctx.now() - 1_000),
    of_lobby: platform.lobbyToken({ lobby_id, namespace_id }),
    missing: '',
  }
  const before = (await linesOf(platform, seat)).length
  const udp = await openUdp()
  t.after(() => udp.close())
  const url = seat.ports.web!.url
  const tryOnce = async (token: string, round: number): Promise<void> => {
    if (round % 3 === 0) assert.strictEqual(await echoOf(seat.ports.raw!.url, `${token}\nstranger`), null)
    else if (round % 3 === 1) {
      const headers: Record<string, string> =
        round % 2 === 0 ? { cookie: `player_token=${token}` } : { 'x-player-token': token }
      const { status } = await fetch(`${url}/${round}?player_token=${token}`, { headers })
      assert.ok(status >= 400 && status < 500, `${status}`)
    } else {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/${round}`, token === '' ? [] : ['player_token', token])
      const [error] = (await once(socket, 'error')) as [Error]
      assert.match(error.message, /^Unexpected server response: 4\d\d/)
    }
    const { hostname, port } = new URL(seat.ports.voice!.url)
    udp.send(token === '' ? 'stranger' : token, Number(port), hostname)
  }
  const all = Object.values(tokens)
  for (let round = 0; round < 1_008; round += 36) {
    await Promise.all(
      Array.from({ length: 36 }, (_, index) => tryOnce(all[(round + index) % all.length]!, round + index)),
    )
  }
  for (const token of all.filter((one) => one !== '')) {
    assert.strictEqual(await handshake(udp, seat.ports.voice!.url, token), 5)
  }
  // What comes after all of them has arrived, and nothing before it.
  assert.strictEqual(await echoOf(seat.ports.raw!.url, `${seat.player.token}\nplayer`), 'player')
  await until('the player is seen', async () => (await linesOf(platform, seat)).length > before)
  assert.deepStrictEqual(
    (await linesOf(platform, seat)).slice(before).map(({ kind }) => kind),
    ['tcp'],
  )
})

test('a player is admitted over every protocol, the server sees who it is, and no token', async (t) => {
  const { platform, game } = await startGame(t, {}, { max_spectators: 4 })
  const seat = await find(game)
  const other = await find(game)
  const { token } = seat.player
  const url = seat.ports.web!.url
  const read = async (path: string, headers: Record<string, string> = {}): Promise<Line> =>
    (await (
      await fetch(`${url}${path}`, { headers: { 'x-player-id': 'forged', 'x-player-role': 'spectator', ...headers } })
    ).json()) as Line
  const seen = [
    await read(`/a?x=1&player_token=${token}&y=2`),
    await read('/b', { cookie: `a=1; player_token=${token}; b=2` }),
    await read('/c', { 'x-player-token': token }),
  ]
  const player_id = playerOf(platform, seat)
  assert.deepStrictEqual(
    seen.map((one) => one.url),
    ['/a?x=1&y=2', '/b', '/c'],
  )
  // From a page of another origin: the preflight shows no token, and the page can read responses and refusals.
  const origin = 'https://portal.example'
  const asked = { 'access-control-request-method': 'PUT', 'access-control-request-headers': 'x-player-token' }
  const preflight = await fetch(`${url}/d`, { method: 'OPTIONS', headers: { origin, ...asked } })
  assert.strictEqual(preflight.status, 204)
  assert.strictEqual(preflight.headers.get('access-control-allow-origin'), '*')
  assert.match(preflight.headers.get('access-control-allow-methods')!, /\bPUT\b/)
  assert.match(preflight.headers.get('access-control-allow-headers')!, /\bx-player-token\b/)
  for (const [sent, status] of [
    [token, 200],
    ['forged', 400],
  ] as const) {
    const response = await fetch(`${url}/e`, { method: 'PUT', headers: { origin, 'x-player-token': sent } })
    assert.strictEqual(response.status, status)
    assert.strictEqual(response.headers.get('access-control-allow-origin'), '*')
    await response.bytes()
  }
  // Any other OPTIONS is a request like all others.
  const options = await fetch(`${url}/d`, { method: 'OPTIONS', headers: { origin } })
  assert.strictEqual(options.status, 400)
  for (const one of seen) {
    assert.strictEqual(one.headers!['x-player-id'], player_id)
    assert.strictEqual(one.headers!['x-player-role'], undefined)
  }
  const socket = new WebSocket(url.replace('http', 'ws'), ['player_token', token])
  await once(socket, 'open')
  assert.strictEqual(socket.protocol, 'player_token')
  assert.deepStrictEqual(await connectedIn(platform, game, seat), [player_id])
  const watching = { lobby_id: seat.lobby.lobby_id, role: 'spectator' } as const
  const spectator = await game.player.call(joinLobby, { body: watching })
  const seen_of_spectator = await read('/s', { 'x-player-token': spectator.player.token, 'x-player-role': 'player' })
  assert.strictEqual(seen_of_spectator.headers!['x-player-role'], 'spectator')

  const kept: Socket[] = []
  t.after(() => kept.forEach((one) => void one.destroy()))
  assert.strictEqual(await echoOf(seat.ports.raw!.url, `${token}\r\none`, { keep: kept }), 'one')
  assert.strictEqual(await echoOf(other.ports.raw!.url, `${other.player.token}\ntwo`, { keep: kept }), 'two')
  const udp = await openUdp()
  t.after(() => udp.close())
  assert.strictEqual(await handshake(udp, seat.ports.voice!.url, token), 4)
  const { hostname, port } = new URL(seat.ports.voice!.url)
  udp.send('three', Number(port), hostname)
  assert.strictEqual(String((await once(udp, 'message'))[0]), 'three')

  const lines = await until('the server has seen all', async () => {
    const found = await seenBy(platform, seat)
    return found.some(({ kind }) => kind === 'udp') ? found : null
  })
  assert.ok(!JSON.stringify(lines).includes(token), 'no token reached the server')
  assert.ok(!lines.some((line) => line.url === '/d'), 'no preflight reached the server')
  socket.terminate()
})

for (const [network, own_address, needs] of [
  ['198.18.0.0/15', /^198\.1[89]\./, NETWORK_NEEDS],
  ['machine', /^127\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./, []],
] as const) {
  test(`each player has an address of its own over all protocols, with MUSTER_LOBBY_NETWORK=${network}`, async (t) => {
    const missing = lacking(...needs)
    if (missing !== null) return t.skip(missing)
    // In a network of its own a server may listen on any number, though it is not root.
    const raw = { protocol: 'tcp' as const, ...(network !== 'machine' && { port: 80 }) }
    const docker = { player_addresses: true, ports: { ...PORTS, raw } }
    const { platform, game } = await startGame(t, docker, {}, { MUSTER_LOBBY_NETWORK: network })
    const seats = [await find(game), await find(game)]
    const kept: Socket[] = []
    t.after(() => kept.forEach((one) => void one.destroy()))
    const udp = await openUdp()
    t.after(() => udp.close())
    for (const [index, { player, ports }] of seats.entries()) {
      const response = await fetch(`${ports.web!.url}/?player_token=${player.token}`)
      assert.strictEqual(response.status, 200)
      await response.bytes()
      assert.strictEqual(await echoOf(ports.raw!.url, `${player.token}\nhello`, { keep: kept }), 'hello')
      if (index > 0) continue
      assert.strictEqual(await handshake(udp, ports.voice!.url, player.token), 4)
      const { hostname, port } = new URL(ports.voice!.url)
      udp.send('hello', Number(port), hostname)
      assert.strictEqual(String((await once(udp, 'message'))[0]), 'hello')
    }
    const lines = await until('the server has seen all', async () => {
      const found = await seenBy(platform, seats[0]!)
      return found.length >= 5 ? found : null
    })
    const addresses = lines.map(({ from }) => from!)
    for (const address of addresses) assert.match(address, own_address)
    const [first, second] = lines.filter(({ kind }) => kind === 'tcp').map(({ from }) => from)
    assert.notStrictEqual(first, second)
    assert.deepStrictEqual(addresses.toSorted(), [first, first, first, second, second].toSorted())
  })
}

test('waits for the admission of players are measured by outcome', async (t) => {
  const { platform, game } = await startGame(t)
  const seat = await find(game)
  const socket = new WebSocket(`${seat.ports.web!.url.replace('http', 'ws')}/?player_token=${seat.player.token}`)
  t.after(() => socket.terminate())
  await once(socket, 'open')
  const { text } = await platform.ctx.metrics.text()
  const count = /^muster_edge_admission_duration_seconds_count\{outcome="admitted"\} (\d+)$/m.exec(text)?.[1]
  assert.strictEqual(count, '1')
})

test('a server that reads PROXY headers learns which player was admitted', async (t) => {
  const ports: Docker['ports'] = { ...PORTS, raw: { protocol: 'tcp', proxy_protocol: true } }
  const { platform, game } = await startGame(t, { ports })
  const seat = await find(game)
  const received = await echoOf(seat.ports.raw!.url, `${seat.player.token}\nhello`)
  assert.match(received!, new RegExp(`\\x05\\0\\x24${playerOf(platform, seat)}`))
})

test('the first connection connects, the last one leaves after the hold, and a removed player is cut off', async (t) => {
  const { platform, game } = await startGame(t, { hold_ms: 60_000 })
  const seat = await find(game)
  const player_id = playerOf(platform, seat)
  const kept: Socket[] = []
  t.after(() => kept.forEach((one) => void one.destroy()))
  const dial = (): Promise<string | null> => echoOf(seat.ports.raw!.url, `${seat.player.token}\nhello`, { keep: kept })
  await dial()
  await dial()
  assert.deepStrictEqual(await connectedIn(platform, game, seat), [player_id])
  for (const socket of kept.splice(0)) socket.destroy()
  await until('the edge has reported the end', async () => {
    const row = await platform.ctx.db.selectFrom('edge_players').select('is_open').executeTakeFirst()
    return row?.is_open === false
  })
  assert.deepStrictEqual(await connectedIn(platform, game, seat), [player_id], 'the seat is held')
  assert.strictEqual(await dial(), 'hello')

  const params = { game_id: game.game_id, lobby_id: seat.lobby.lobby_id, player_id }
  const closed = new Promise((resolve) => void kept[0]!.once('close', resolve))
  await platform.client.call(deleteMatchmakerLobbyPlayer, { params })
  await closed
  assert.strictEqual(await dial(), null)

  const next = await find(game)
  await echoOf(next.ports.raw!.url, `${next.player.token}\nhello`)
  await until('the player has left', async () => {
    platform.advance(10_000)
    return (await connectedIn(platform, game, next)).length === 0
  })
  const reason = await platform.ctx.db
    .selectFrom('players')
    .select('remove_reason')
    .where('player_id', '=', playerOf(platform, next))
  await until('the end is written', async () => (await reason.executeTakeFirst())?.remove_reason === 'disconnected')
})

test('a new connection with the token takes the place of the one before, which the server sees closed first', async (t) => {
  const ports: Docker['ports'] = { ...PORTS, chat: { protocol: 'tcp', several_connections: true } }
  const { platform, game } = await startGame(t, { ports, hold_ms: 0 })
  const seat = await find(game)
  const { token } = seat.player
  const kept: Socket[] = []
  const sockets: WebSocket[] = []
  t.after(() => {
    for (const one of kept) one.destroy()
    for (const one of sockets) one.terminate()
  })
  const openWeb = async (): Promise<string> => {
    const socket = new WebSocket(`${seat.ports.web!.url.replace('http', 'ws')}/?player_token=${token}`)
    sockets.push(socket)
    socket.on('error', () => {})
    return String((await once(socket, 'message'))[0])
  }
  for (let round = 0; round < 5; round++) {
    assert.strictEqual(await echoOf(seat.ports.raw!.url, `${token}\nhow many`, { keep: kept }), '1')
    assert.strictEqual(await openWeb(), '1')
  }
  // The connections of another player, and those to another port, stay.
  const other = await find(game)
  assert.strictEqual(await echoOf(other.ports.raw!.url, `${other.player.token}\nhow many`, { keep: kept }), '2')
  assert.strictEqual(sockets.at(-1)!.readyState, WebSocket.OPEN)
  assert.strictEqual((await connectedIn(platform, game, seat)).length, 2, 'both players still have their seats')
  for (const count of ['1', '2']) {
    assert.strictEqual(await echoOf(seat.ports.chat!.url, `${token}\nhow many`, { keep: kept }), count)
  }
})

test('players without a hold keep their seats through a planned restart of the edge', async (t) => {
  const { platform, game } = await startGame(t, { hold_ms: 0 })
  const seats = [await find(game), await find(game), await find(game)] as const
  const players = seats.map((seat) => playerOf(platform, seat))
  const [raw, voice, web] = seats
  const kept: Socket[] = []
  assert.equal(await echoOf(raw.ports.raw!.url, `${raw.player.token}\nhello`, { keep: kept }), 'hello')
  const udp = await openUdp()
  assert.equal(await handshake(udp, voice.ports.voice!.url, voice.player.token), 4)
  const socket = new WebSocket(web.ports.web!.url.replace('http', 'ws'), ['player_token', web.player.token])
  await once(socket, 'open')
  t.after(() => {
    for (const one of kept) one.destroy()
    udp.close()
    socket.terminate()
  })
  const { ctx } = platform
  const next = await startEdge({ ...ctx, metrics: createMetrics(ctx.config) })
  t.after(() => next.stop({ end_lobbies: false }))
  const edges = ctx.db.selectFrom('edge_players').select('player_id').where('is_open', '=', true)
  await until('only the next edge has the players', async () => (await edges.execute()).length === 3)
  kept[0]!.write('again')
  assert.equal(String((await once(kept[0]!, 'data'))[0]), 'again')
  const { hostname, port } = new URL(voice.ports.voice!.url)
  const heard = once(udp, 'message')
  udp.send('again', Number(port), hostname)
  assert.equal(String((await heard)[0]), 'again')
  assert.equal(socket.readyState, WebSocket.OPEN)
  assert.deepEqual((await connectedIn(platform, game, raw)).toSorted(), players.toSorted())
  const { rows } = await ctx.pool.query('select from players where remove_reason is not null')
  assert.equal(rows.length, 0, 'every player still has the seat')
  kept[0]!.destroy()
  await until('a player who leaves then is seen to leave', async () => {
    return (await connectedIn(platform, game, raw)).length === 2
  })
})

test('by address, each connection of an address gets a player of its own, and other addresses get none', async (t) => {
  const ports: Docker['ports'] = {
    raw: { protocol: 'tcp', admit_by: ['address'] },
    voice: { protocol: 'udp', admit_by: ['address'] },
    web: { protocol: 'http' },
  }
  const { platform, game } = await startGame(t, { ports, player_addresses: true })
  const seat = await find(game)
  await find(game)
  const kept: Socket[] = []
  t.after(() => kept.forEach((one) => void one.destroy()))
  const answers = await Promise.all(['one', 'two'].map((text) => echoOf(seat.ports.raw!.url, text, { keep: kept })))
  assert.deepStrictEqual(answers, ['one', 'two'])
  assert.strictEqual((await connectedIn(platform, game, seat)).length, 2)
  assert.strictEqual(await echoOf(seat.ports.raw!.url, 'stranger', { from: '127.0.0.9' }), null)
  const refused = /1 connection was refused, because the address has no seat .* from 127\.0\.0\.9/
  await until('the log of the lobby names the refused address', async () => {
    const { lines: notes } = await platform.ctx.lobby_logs.last(seat.lobby.lobby_id, 'stderr', 10)
    return notes.some(({ bytes }) => refused.test(bytes.toString()))
  })
  const ray_id = await until('the explanation of the find is written', async () => {
    return (await platform.ctx.db.selectFrom('explanations').select('ray_id').executeTakeFirst())?.ray_id
  })
  const { explanation } = await platform.client.call(explainRay, { params: { ray_id } })
  assert.match(explanation.lobbies.flatMap(({ warnings }) => warnings).join('\n'), refused)
  const udp = await openUdp()
  t.after(() => udp.close())
  const { hostname, port } = new URL(seat.ports.voice!.url)
  udp.send('three', Number(port), hostname)
  assert.strictEqual(String((await once(udp, 'message'))[0]), 'three')
  const lines = await seenBy(platform, seat)
  assert.strictEqual(new Set(lines.map(({ from }) => from)).size, 2)
})

test('over TLS the token admits too: in the first line of a raw port, and in a request of an https port', async (t) => {
  const ports: Docker['ports'] = {
    raw: { protocol: 'tcp_tls' },
    web: { protocol: 'https' },
    voice: { protocol: 'udp' },
  }
  const { platform, game } = await startGame(t, { ports })
  const seat = await find(game)
  const ca = await readFile(join(platform.data_dir, 'keys', 'local-authority.crt'), 'utf8')
  const { hostname: host, port } = seat.ports.raw!
  const sockets: Socket[] = []
  t.after(() => sockets.forEach((one) => void one.destroy()))
  const echo = async (first: string): Promise<string | null> => {
    const socket = connectTls({ host, port: port!, ca })
    sockets.push(socket)
    socket.on('error', () => {})
    socket.write(first)
    return new Promise((resolve) => {
      socket.once('data', (bytes) => resolve(String(bytes))).once('close', () => resolve(null))
    })
  }
  const { token } = seat.player
  assert.strictEqual(await echo(`${token.slice(0, -6)}AAAAAA\nstranger`), null)
  assert.strictEqual(await echo(`${token}\nplayer`), 'player')
  assert.deepStrictEqual(await connectedIn(platform, game, seat), [playerOf(platform, seat)])

  const path = `/lobbies/${seat.lobby.lobby_id}/web/`
  const ask = async (query: string): Promise<{ status: number; body: string }> => {
    const { edge_https_port } = platform.ctx.config
    const sent = request({ host: 'localhost', port: edge_https_port, path: `${path}?player_token=${query}`, ca })
    const [response] = (await once(sent.end(), 'response')) as [IncomingMessage]
    return { status: response.statusCode!, body: await text(response) }
  }
  const refused = await ask('forged')
  assert.strictEqual((JSON.parse(refused.body) as { code: string }).code, 'PLAYER_TOKEN_INVALID')
  const admitted = await ask(token)
  assert.deepStrictEqual([admitted.status, (JSON.parse(admitted.body) as Line).url], [200, '/'])
  const kinds = (await seenBy(platform, seat)).map(({ kind }) => kind)
  assert.deepStrictEqual(kinds, ['tcp', 'http'])

  // Two players of one browser share a connection of HTTP/2, and both are connected as long as it is open.
  const others = [await find(game), await find(game)]
  assert.ok(others.every(({ lobby }) => lobby.lobby_id === seat.lobby.lobby_id))
  const session = await connectHttp2(t, platform.ctx.config.edge_https_port)
  for (let round = 0; round < 2; round++) {
    for (const { player } of others) {
      const { status } = await askHttp2(session, { ':path': `${path}?player_token=${player.token}` })
      assert.strictEqual(status, 200)
    }
  }
  const connected = others.map((one) => playerOf(platform, one))
  assert.deepStrictEqual((await connectedIn(platform, game, seat)).filter((one) => connected.includes(one)).length, 2)
  session.close()
  await until('both are gone', async () =>
    (await connectedIn(platform, game, seat)).every((one) => !connected.includes(one)),
  )
})

test('with keep_token the server receives the token as the player sent it', async (t) => {
  const ports: Docker['ports'] = {
    raw: { protocol: 'tcp', keep_token: true },
    web: { protocol: 'http', keep_token: true },
    voice: { protocol: 'udp', keep_token: true },
  }
  const { platform, game } = await startGame(t, { ports })
  const seat = await find(game)
  const { token } = seat.player
  const url = seat.ports.web!.url
  const headers = { 'x-player-token': token }
  const seen = (await (await fetch(`${url}/?player_token=${token}&x=1`, { headers })).json()) as Line
  assert.strictEqual(seen.url, `/?player_token=${token}&x=1`)
  assert.strictEqual(seen.headers!['x-player-token'], token)
  assert.strictEqual(seen.headers!['x-player-id'], playerOf(platform, seat))
  const sent = `${token}\nhello`
  // The edge may send the token and what follows apart.
  assert.strictEqual(await echoOf(seat.ports.raw!.url, sent, { characters: sent.length }), sent)
  const udp = await openUdp()
  t.after(() => udp.close())
  assert.strictEqual(await handshake(udp, seat.ports.voice!.url, token), 4)
  await until('the token has reached the server over UDP', async () =>
    (await seenBy(platform, seat)).some(({ kind, text: received }) => kind === 'udp' && received === token),
  )
})
