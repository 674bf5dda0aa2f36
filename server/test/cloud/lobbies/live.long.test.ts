// The lobbies that run, as they are now, and what a page of the hub hears of them: always what the list says.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import {
  deleteMatchmakerLobby,
  getAnalyticsMatchmakerLive,
  type LiveMessage,
  type LobbySummaryAnalytics,
  playerConnected,
  playerDisconnected,
  setLobbyClosed,
} from '@musterhost/contract'
import fc from 'fast-check'
import { WebSocket } from 'ws'
import { mainUrl } from '../../../src/config/addresses.ts'
import { idOfName } from '../../../src/ids.ts'
import { shardOf } from '../../../src/journal/pages.ts'
import { LONG_MS } from '../../http/steps.ts'
import { createWorld } from '../../http/world.ts'
import { LEAST_SERVER } from '../../support/builds.ts'
import { type Platform, startPlatform, type TestGame } from '../../support/platform.ts'
import type { Seat } from '../../support/platform-verbs.ts'
import { until } from '../../support/until.ts'
import { talkingGame, talkingLobby } from './talking-server.ts'

const MODES = { default: { max_players: 3, idle_grace_ms: LONG_MS } }

/** Uses more memory from second to second. */
const GROWING_SERVER = `${LEAST_SERVER}
const blocks = []
setInterval(() => blocks.length < 200 && blocks.push(Buffer.alloc(2 ** 20, 1)), 500)
`

async function list({ client }: Platform, { game_id, namespace_id }: TestGame): Promise<LobbySummaryAnalytics[]> {
  return (await client.call(getAnalyticsMatchmakerLive, { params: { game_id, namespace_id } })).lobbies
}

const livePath = ({ game_id, namespace_id }: TestGame): string =>
  `/cloud/games/${game_id}/namespaces/${namespace_id}/analytics/matchmaker/live`

function address(
  platform: Platform,
  path: string,
  query: Record<string, string> = {},
  base = platform.api_url,
): string {
  return `${base.replace('http', 'ws')}${path}?${new URLSearchParams({ token: platform.token, ...query })}`
}

/** What a page makes of the messages that it receives. */
function openPage(url: string, origin?: string) {
  const socket = new WebSocket(url, origin === undefined ? {} : { origin })
  const lobbies = new Map<string, LobbySummaryAnalytics>()
  const page = { socket, lobbies, index: '', kinds: [] as string[] }
  socket.on('message', (data) => {
    const message = JSON.parse(String(data)) as LiveMessage
    const [seq = 0, before = 0] = [message.index, page.index].map((index) => Number(index.split('.')[0]))
    assert.ok(seq >= before, 'in the order of the journal')
    page.index = message.index
    page.kinds.push(message.kind)
    if (message.kind === 'heartbeat') return
    if (message.kind === 'snapshot') lobbies.clear()
    for (const lobby of message.lobbies) lobbies.set(lobby.lobby_id, lobby)
    if (message.kind === 'changes') for (const lobby_id of message.stopped_lobby_ids) lobbies.delete(lobby_id)
  })
  socket.on('error', () => {})
  const closed = new Promise<number>((resolve) => socket.on('close', resolve))
  const refused = new Promise<number>((resolve) =>
    socket.on('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0)),
  )
  return Object.assign(page, { closed, refused })
}
type Page = ReturnType<typeof openPage>

const byId = (lobbies: Iterable<LobbySummaryAnalytics>) =>
  [...lobbies].sort((a, b) => (a.lobby_id < b.lobby_id ? -1 : 1))

async function requireSame(platform: Platform, game: TestGame, page: Page): Promise<void> {
  // The list is asked each time: a lobby without players ends after a while, also between the list and the page.
  await until('the page shows what the list says', async () => {
    const wanted = byId(await list(platform, game))
    assert.notEqual(page.socket.readyState, WebSocket.CLOSED, 'the page has lost its connection')
    return JSON.stringify(byId(page.lobbies.values())) === JSON.stringify(wanted)
  })
}

test('what has been answered is in the list at once: seats, who has connected, ready, closed, outdated, stopped', async (t) => {
  const platform = await startPlatform(t)
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const finding = game.find()
  const [starting] = await until('a lobby is there', async () => {
    const lobbies = await list(platform, game)
    return lobbies.length > 0 && lobbies
  })
  const { lobby_id } = starting!
  const { create_ts, limits, ...rest } = starting!
  assert.match(create_ts, /Z$/)
  assert.equal(limits.cpu_cores, 1)
  assert.ok(limits.memory_bytes > 0)
  assert.deepEqual(rest, {
    lobby_id,
    lobby_group_id: idOfName(`${game.version_id}/default`),
    lobby_group_name_id: 'default',
    version_id: game.version_id,
    region_id: idOfName('local'),
    is_ready: false,
    is_idle: false,
    is_closed: false,
    is_stalled: false,
    is_outdated: false,
    max_players_normal: 3,
    max_players_direct: 3,
    max_players_party: 3,
    total_player_count: 1,
    registered_player_count: 0,
  })
  const one = async () => (await list(platform, game)).find((lobby) => lobby.lobby_id === lobby_id)
  await platform.makeReady(game, lobby_id)
  assert.equal((await one())?.is_ready, true)
  const seat = await finding
  const server = platform.serverOf(game, lobby_id)
  const body = { player_token: seat.player.token }
  await server.call(playerConnected, { body })
  assert.equal((await one())?.registered_player_count, 1)
  await game.find()
  assert.equal((await one())?.total_player_count, 2)
  await server.call(setLobbyClosed, { body: { is_closed: true } })
  assert.equal((await one())?.is_closed, true)
  assert.equal((await one())?.is_stalled, false)
  await platform.stallRun(lobby_id)
  assert.equal((await one())?.is_stalled, true)
  await server.call(playerDisconnected, { body: { ...body, hold_ms: 60_000 } })
  assert.deepEqual([(await one())?.total_player_count, (await one())?.registered_player_count], [2, 0])
  await platform.deploy(game, MODES)
  assert.equal((await one())?.is_outdated, true)
  const { game_id } = game
  await platform.client.call(deleteMatchmakerLobby, { params: { game_id, lobby_id } })
  assert.equal(await one(), undefined)
})

test('a snapshot and what follows it are what the list says at every quiet moment, also for who comes back with an index', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const limits = { max_players_per_client: 1_000, lobby_count_max: 1_000 }
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits })
  const beside = await platform.game({ matchmaker: { game_modes: MODES }, limits })
  let page = openPage(address(platform, livePath(game)))
  await until('the snapshot', () => page.kinds.length > 0)
  const seats: Seat[] = []
  const seatOf = (pick: number): Seat | undefined => seats[pick % Math.max(1, seats.length)]
  const commands: Record<string, (pick: number) => Promise<unknown>> = {
    find: async () => void seats.push(await game.find()),
    elsewhere: () => beside.find(),
    connect: (pick) => onSeat(pick, (server, body) => server.call(playerConnected, { body })),
    hold: (pick) =>
      onSeat(pick, (server, body) => server.call(playerDisconnected, { body: { ...body, hold_ms: 60_000 } })),
    leave: (pick) => onSeat(pick, (server, body) => server.call(playerDisconnected, { body })),
    close: (pick) => onSeat(pick, (server) => server.call(setLobbyClosed, { body: { is_closed: pick % 2 === 0 } })),
    deploy: () => platform.deploy(game, MODES),
    stop: async (pick) => {
      const seat = seatOf(pick)
      if (seat === undefined) return
      const params = { game_id: game.game_id, lobby_id: seat.lobby.lobby_id }
      await platform.client.call(deleteMatchmakerLobby, { params })
    },
    return: async () => {
      page.socket.terminate()
      await page.closed
      const { index, lobbies } = page
      page = openPage(address(platform, livePath(game), { watch_index: index }))
      page.index = index
      for (const [lobby_id, lobby] of lobbies) page.lobbies.set(lobby_id, lobby)
    },
    look: () => requireSame(platform, game, page),
  }
  async function onSeat(
    pick: number,
    act: (server: ReturnType<Platform['serverOf']>, body: { player_token: string }) => Promise<unknown>,
  ) {
    const seat = seatOf(pick)
    // Who has left, or whose lobby has stopped, is refused: that changes nothing either.
    if (seat !== undefined)
      await act(platform.serverOf(game, seat.lobby.lobby_id), { player_token: seat.player.token }).catch(() => {})
  }
  const names = Object.keys(commands)
  const weights = [...names, 'find', 'find', 'find', 'connect', 'connect', 'leave', 'close', 'look']
  const steps = fc.sample(fc.tuple(fc.constantFrom(...weights), fc.nat(1_000)), 150)
  for (const [name, pick] of steps) await commands[name]!(pick)
  await requireSame(platform, game, page)
  assert.ok(seats.length > 0)
})

test('what a real lobby uses appears within its limits, changes, and is gone with the lobby', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  const game = await platform.game({ matchmaker: { game_modes: MODES }, files: { 'server.mjs': GROWING_SERVER } })
  const page = openPage(address(platform, livePath(game)))
  const { lobby_id } = (await game.find()).lobby
  const usageOf = () => page.lobbies.get(lobby_id)?.usage
  // A sample may be older than the program in the lobby.
  const first = await until('a sample of the running program is shown', () => {
    const usage = usageOf()
    return usage !== undefined && usage.memory_bytes > 2 ** 20 ? usage : undefined
  })
  assert.ok(first.memory_bytes < page.lobbies.get(lobby_id)!.limits.memory_bytes)
  await requireSame(platform, game, page)
  const { index } = page
  await until('another sample is shown', () => JSON.stringify(usageOf()) !== JSON.stringify(first))
  const again = openPage(address(platform, livePath(game), { watch_index: index }))
  await until(
    'a page that comes back shows it too',
    () => JSON.stringify(again.lobbies.get(lobby_id)?.usage) === JSON.stringify(usageOf()),
  )
  await platform.client.call(deleteMatchmakerLobby, { params: { game_id: game.game_id, lobby_id } })
  await until('the row of the ended lobby is removed', async () => {
    const { rows } = await platform.ctx.pool.query('select from lobby_usage where lobby_id = $1', [lobby_id])
    return rows.length === 0
  })
})

test('a page that comes back receives what changed, or all where that is not known any more', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  await game.find()
  const page = openPage(address(platform, livePath(game)))
  await until('the snapshot', () => page.kinds.length > 0)
  assert.deepEqual(page.kinds[0], 'snapshot')
  const known = page.index
  await game.find()
  await until('the change', () => page.index !== known)
  const again = openPage(address(platform, livePath(game), { watch_index: known }))
  await until('what changed', () => again.kinds.length > 0)
  assert.equal(again.kinds[0], 'changes')
  assert.equal(again.lobbies.size, 1)
  for (const index of [`0.${game.version_id}`, `${known.split('.')[0]}.${game.game_id}`]) {
    const lost = openPage(address(platform, livePath(game), { watch_index: index }))
    await until('all of it', () => lost.kinds.length > 0)
    assert.equal(lost.kinds[0], 'snapshot')
  }
  const { close } = platform
  await close()
  assert.equal(await page.closed, 1001)
})

test('where the journal has no next row any more, all is read anew', async (t) => {
  const platform = await startPlatform(t)
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  await game.find()
  const page = openPage(address(platform, livePath(game)))
  await until('the snapshot', () => page.kinds.length > 0)
  const { pool, listener } = platform.ctx
  const shard = shardOf(game.namespace_id)
  await until('the tables say all of it', async () => {
    const { rows } = await pool.query(
      'select from shards where shard = $1 and projected_seq = (select max(seq) from journal where shard = $1)',
      [shard],
    )
    return rows.length === 1
  })
  await pool.query(
    `with gone as (update shards set projected_seq = projected_seq + 9 where shard = $1),
      stopped as (update lobbies set stop_ts = now() where namespace_id = $2)
      insert into journal (shard, seq, writer, payload)
      select shard, seq + 9, writer, payload from journal where shard = $1 order by seq desc limit 1`,
    [shard, game.namespace_id],
  )
  await listener.notify('journal', String(shard))
  await until('another snapshot', () => page.kinds.filter((kind) => kind === 'snapshot').length === 2)
  assert.equal(page.lobbies.size, 0)
})

test('only people and tokens of the game may listen, and of pages only the hub', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,edge' })
  const { game, other, seat, tokens } = await createWorld(platform)
  const path = livePath(game)
  const log = `/cloud/games/${game.game_id}/matchmaker/lobbies/${seat.lobby.lobby_id}/logs`
  const base = platform.edge_url
  const outcome = async (url: string, origin?: string): Promise<number> => {
    const page = openPage(url, origin)
    const code = await Promise.race([page.refused, once(page.socket, 'open').then(() => 101)])
    page.socket.terminate()
    return code
  }
  const as = (token: string | null, to = path, query: Record<string, string> = {}) =>
    outcome(address(platform, to, { ...query, token: token ?? '' }, base))
  for (const caller of ['admin', 'cloud', 'owner', 'developer', 'viewer'] as const) {
    assert.equal(await as(tokens[caller]), 101, caller)
    const expected = caller === 'viewer' ? 403 : 101
    assert.equal(await as(tokens[caller], log, { stream: 'std_out' }), expected, caller)
  }
  for (const caller of ['stranger', 'other_cloud'] as const) {
    assert.equal(await as(tokens[caller]), 404, caller)
    assert.equal(await as(tokens[caller], log, { stream: 'std_out' }), 404, caller)
  }
  for (const caller of ['namespace', 'lobby', 'player', 'identity'] as const)
    assert.equal(await as(tokens[caller]), 403, caller)
  for (const caller of ['garbage', 'expired', 'revoked', 'none'] as const)
    assert.equal(await as(tokens[caller]), 401, caller)
  assert.equal(await as(tokens.admin, livePath({ ...game, namespace_id: other.namespace_id })), 404)
  assert.equal(await as(tokens.admin, log.replace(seat.lobby.lobby_id, game.game_id), { stream: 'std_out' }), 404)
  assert.equal(await as(tokens.admin, log), 400, 'a stream must be named')
  assert.equal(await as(tokens.admin, log, { stream: 'std_out', watch_index: 'x' }), 400)
  assert.equal(await as(tokens.admin, path, { watch_index: 'x' }), 400)
  assert.equal(await as(tokens.admin, path, { more: 'x' }), 400)
  assert.equal(await as(tokens.admin, path.replace(game.namespace_id, 'x')), 400)
  assert.notEqual(await as(tokens.admin, '/cloud/games'), 101)

  const own = address(platform, path, {}, base)
  assert.equal(await outcome(own, mainUrl(platform.ctx.config)), 101)
  for (const origin of ['http://evil.example', `http://${game.name_id}.cdn.localhost:${new URL(base).port}`, 'null']) {
    assert.equal(await outcome(own, origin), 403, origin)
  }
  const talkative = openPage(own)
  await once(talkative.socket, 'open')
  for (let count = 0; count < 40; count++) talkative.socket.send('hello')
  assert.equal(await talkative.closed, 1008)
})

test('a log is followed by WebSocket to its end, in words that drive no terminal', async (t) => {
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  const game = await talkingGame(platform)
  const script = { std_out: `first\u009b31m\0\u202e\n${'more\n'.repeat(300)}last`, exit_code: 0 }
  const lobby_id = await talkingLobby(platform, game, script)
  const path = `/cloud/games/${game.game_id}/matchmaker/lobbies/${lobby_id}/logs`
  const told = await listenToEnd(address(platform, path, { stream: 'std_out', watch_index: '0.0' }, platform.edge_url))
  assert.equal(told.code, 1000)
  assert.deepEqual(
    told.lines.map(({ text }) => text),
    ['first\\x9b31m\\x00\\u{202e}', ...Array.from({ length: 300 }, () => 'more'), 'last'],
  )
  const again = await listenToEnd(address(platform, path, { stream: 'std_out', watch_index: told.index }))
  assert.deepEqual([again.code, again.lines], [1000, []])
})

async function listenToEnd(url: string) {
  const socket = new WebSocket(url)
  const lines: { ts: string; text: string }[] = []
  let index = ''
  socket.on('message', (data) => {
    const message = JSON.parse(String(data)) as { index: string; lines?: typeof lines }
    lines.push(...(message.lines ?? []))
    index = message.index
  })
  const [code] = (await once(socket, 'close')) as [number]
  return { code, lines, index }
}

test('a connection that does not read its messages is ended, and costs no more than a piece of them', {
  timeout: 120_000,
}, async (t: TestContext) => {
  const platform = await startPlatform(t)
  const game = await platform.game()
  await platform.ctx.pool.query(
    `insert into lobbies (lobby_id, namespace_id, shard, version_id, game_mode, region, publicity, is_custom, is_closed,
        max_players_normal, max_players_direct, max_players_party, tags, player_count, player_deadline_ms, idle_grace_ms,
        create_ts, ready_deadline_ts)
      select gen_random_uuid(), $1, $2, $3, 'default', 'local', 'public', false, false, 1, 1, 1, '{}', 0, 1, 1, now(), now()
      from generate_series(1, 20000)`,
    [game.namespace_id, shardOf(game.namespace_id), game.version_id],
  )
  const url = address(platform, livePath(game))
  const quick = openPage(url)
  await until('a page has all of it', () => quick.lobbies.size === 20_000)
  const before = process.memoryUsage().arrayBuffers
  const slow = Array.from({ length: 20 }, () => {
    const socket = new WebSocket(url)
    socket.on('error', () => {})
    socket.on('open', () => connectionOf(socket).pause())
    return socket
  })
  await Promise.all(slow.map((socket) => once(socket, 'open')))
  // A client that reads nothing does not see its end either, so the test waits. The memory is checked all along.
  const [start_ms, over_ms] = [performance.now(), 12_000]
  await until('they have been ended', () => {
    const held = process.memoryUsage().arrayBuffers - before
    assert.ok(held < 60 * 1_024 * 1_024, `${held} bytes for 20 who take nothing of 9 MB each`)
    return performance.now() - start_ms > over_ms
  })
  const codes = await Promise.all(
    slow.map(async (socket) => {
      connectionOf(socket).resume()
      const [code] = (await once(socket, 'close')) as [number]
      return code
    }),
  )
  assert.ok(
    codes.every((code) => code === 1006 || code === 1013),
    codes.join(),
  )
  assert.equal(quick.socket.readyState, quick.socket.OPEN)
})

const connectionOf = (socket: WebSocket): Socket => (socket as unknown as { _socket: Socket })._socket
