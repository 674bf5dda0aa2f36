// A few clients try to exhaust the edge: with requests that wait, bodies that do not arrive, and idle connections. Finds and
// other requests of the other clients are served all the time.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findLobby, getGames, setupIdentity, watchEvents } from '@musterhost/contract'
import { LONG_MS } from '../http/steps.ts'
import { createDatabase } from '../support/database.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { rawClient, startBackend } from './platform.ts'
import { addressOf, SMALL_LIMITS, startSmallEdge } from './pools.ts'

const HONEST = 5_000
/** An identity may have 8 listeners. */
const WATCHES_PER_IDENTITY = 8

async function world(t: TestContext) {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({
    matchmaker: { max_players: 256, game_modes: { default: { idle_grace_ms: LONG_MS } } } as never,
    limits: { max_players_per_client: 1_000 },
  })
  const edge = await startSmallEdge(t, platform)
  const find = (client: number) =>
    edge.ask({
      ...{ client, method: 'POST', path: findLobby.path, token: game.public_token },
      body: { game_modes: ['default'] },
    })
  assert.equal((await find(HONEST)).status, 200)
  return { platform, game, edge, find }
}

const head = (method: string, path: string, token: string, more = ''): string =>
  `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n${more}\r\n`

/** All requests must be served. */
async function requireServed(asks: readonly Promise<{ status: number; body: string }>[]): Promise<void> {
  for (const { status, body } of await Promise.all(asks)) assert.equal(status, 200, body)
}

async function watchFrom({ edge, game }: Awaited<ReturnType<typeof world>>, clients: number, each: number) {
  const tokens: string[] = []
  for (let count = 0; count < (clients * each) / WATCHES_PER_IDENTITY; count++) {
    tokens.push((await game.player.call(setupIdentity, { body: {} })).identity_token)
  }
  const sockets: Socket[] = []
  // As many at once as may hold connections before they are parked.
  const { slots_max, client_max } = SMALL_LIMITS.role_pools.wait
  const at_once = Math.min(client_max, Math.floor(slots_max / clients))
  while (sockets.length < clients * each) {
    for (let i = 0; i < clients * at_once && sockets.length < clients * each; i++) {
      const client = sockets.length % clients
      const token = tokens[Math.floor(sockets.length / WATCHES_PER_IDENTITY)]!
      sockets.push(edge.open(client, head('GET', `${watchEvents.path}?watch_index=0`, token)))
    }
    // Parked requests free their connections for the next ones, until all places for parked requests are taken.
    const expected = Math.min(sockets.length, SMALL_LIMITS.role_pools.parked.slots_max)
    await until('the requests are parked', async () => sumOf(await edge.places(), 'parked') === expected)
  }
  return sockets
}

const sumOf = (places: Record<string, number>, pool: string): number =>
  (places[`api ${pool}`] ?? 0) + (places[`matchmaker ${pool}`] ?? 0)

test('long polls of guests from 18 addresses do not delay the finds of other clients', async (t) => {
  const [CLIENTS, EACH] = [18, 60]
  const at = await world(t)
  const { edge, find } = at
  const { slots_max, client_max } = SMALL_LIMITS.role_pools.parked
  assert.ok(CLIENTS * EACH > slots_max && EACH < client_max)
  const sockets = await watchFrom(at, CLIENTS, EACH)
  await until('no waiting request holds a connection', async () => sumOf(await edge.places(), 'wait') === 0)

  await requireServed(Array.from({ length: 50 }, (_, i) => find(HONEST + i)))
  await requireServed(Array.from({ length: 20 }, () => find(HONEST)))
  // A guest of another address takes the place of one of them.
  const { identity_token } = await at.game.player.call(setupIdentity, { body: {} })
  const other = edge.open(HONEST, head('GET', `${watchEvents.path}?watch_index=0`, identity_token))
  let heard = ''
  other.on('data', (bytes) => {
    heard += String(bytes)
  })
  const refusedCount = (): number => sockets.filter(({ bytesRead }) => bytesRead > 0).length
  await until('one of them was displaced', () => refusedCount() > CLIENTS * EACH - slots_max)
  assert.equal(heard, '')
})

test('incomplete bodies from 7 addresses do not delay the requests of other clients', async (t) => {
  const [CLIENTS, EACH] = [7, 20]
  const { platform, game, edge, find } = await world(t)
  const { slots_max } = SMALL_LIMITS.arriving_pool
  assert.ok(CLIENTS * EACH > slots_max)
  for (const [path, token] of [
    ['/cloud/games', platform.token],
    [findLobby.path, game.public_token],
  ] as const) {
    const more = 'Content-Type: application/json\r\nContent-Length: 1000\r\n'
    const sockets: Socket[] = []
    for (let count = 0; count < EACH; count++) {
      for (let client = 0; client < CLIENTS; client++) {
        sockets.push(edge.open(client, `${head('POST', path, token, more)}{`))
      }
    }
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    await until('more requests than places have arrived', () => sockets.some(({ bytesRead }) => bytesRead > 0))
    const places = await edge.places()
    assert.equal(sumOf(places, 'call') + sumOf(places, 'seat'), 0, 'no role has been asked')
    const games = () => edge.ask({ client: HONEST, path: getGames.path, token: platform.token })
    await requireServed(Array.from({ length: 10 }, () => games()))
    await requireServed(Array.from({ length: 30 }, (_, i) => find(HONEST + i)))
    // A body that arrives in two pieces displaces one of them.
    const slow = rawClient(t, edge.port)
    const body = JSON.stringify({ game_modes: ['default'] })
    const head_text = head(
      'POST',
      findLobby.path,
      game.public_token,
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`,
    )
    slow.write(head_text + body.slice(0, 5))
    await new Promise(setImmediate)
    slow.write(body.slice(5))
    await slow.read((bytes) => bytes.startsWith('HTTP/1.1 200'))
    for (const socket of sockets) socket.destroy()
  }
})

test('a client that has its share is refused with 429, which names the pool', async (t) => {
  const at = await world(t)
  const { client_max } = SMALL_LIMITS.role_pools.parked
  await watchFrom(at, 1, client_max)
  const { identity_token: token } = await at.game.player.call(setupIdentity, { body: {} })
  const { status, headers, body } = await at.edge.ask({ client: 0, path: `${watchEvents.path}?watch_index=0`, token })
  const { code, metadata } = JSON.parse(body) as { code: string; metadata: { full: string } }
  assert.deepEqual([status, headers['retry-after'], code, metadata.full], [429, '1', 'API_RATE_LIMIT', 'parked'])
  await requireServed([at.find(0)])
})

test('when all connections are taken, a new client displaces one of the client that holds most', async (t: TestContext) => {
  if (process.platform !== 'linux') return t.skip('the limit of descriptors is only known on Linux')
  // 300 descriptors leave room for 22 connections, half of them for one address.
  const [DESCRIPTORS, EACH] = [300, 11]
  const { port, child } = await startEdgeWith(t, DESCRIPTORS)
  const flood = [1, 2].map((client) =>
    Array.from({ length: EACH }, () => connect({ port, host: '127.0.0.1', localAddress: addressOf(client) })),
  )
  let cut = 0
  for (const socket of flood.flat()) {
    socket.on('error', () => {})
    socket.once('close', () => cut++)
    await once(socket, 'connect')
  }
  for (let count = 1; count <= 3; count++) {
    const other = rawClient(t, port)
    other.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await other.read((bytes) => bytes.endsWith('api'))
    await until('one of the other connections is closed', () => cut === count)
  }
  for (const socket of flood.flat()) socket.destroy()
  child.stdin!.end()
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

async function startEdgeWith(t: TestContext, descriptors: number) {
  const api = await startBackend(t, 'api')
  const data_dir = await mkdtemp(join(tmpdir(), 'muster-edge-'))
  t.after(() => rm(data_dir, { recursive: true, force: true }))
  const program = join(import.meta.dirname, 'small-edge.ts')
  const child = spawn('sh', ['-c', `ulimit -n ${descriptors}; exec "$0" "$1"`, process.execPath, program], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {
      MUSTER_DATA: data_dir,
      DATABASE_URL: await createDatabase(t),
      MUSTER_EDGE_HTTP_PORT: '0',
      MUSTER_EDGE_HTTPS_PORT: '0',
      MUSTER_API_PORT: String(api.port),
      MUSTER_LOG_LEVEL: 'silent',
    },
  })
  t.after(() => void child.kill('SIGKILL'))
  return { port: Number(String((await once(child.stdout, 'data'))[0])), child }
}
