// The real server process, real sockets, and a platform that records its requests.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import WebSocket from 'ws'
import { CLOSE, type FromServer, type Snapshot } from '../game/messages.ts'

const WAIT_MS_MAX = 10_000

type Call = { path: string; token: string | undefined; hold_ms: number | undefined }
type Arena = {
  address: string
  calls: Call[]
  refuse: Map<string, string>
  hold: Map<string, Promise<void>>
  server: ChildProcess
}

/** Until it is true; fails with the name after WAIT_MS_MAX. */
async function until(name: string, isTrue: () => boolean): Promise<void> {
  const end_ms = performance.now() + WAIT_MS_MAX
  while (!isTrue()) {
    assert.ok(performance.now() < end_ms, `never: ${name}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function startArena(t: TestContext): Promise<Arena> {
  const calls: Call[] = []
  const refuse = new Map<string, string>()
  const hold = new Map<string, Promise<void>>()
  const platform = createServer(async (request, response) => {
    let text = ''
    for await (const part of request.setEncoding('utf8')) text += part
    const { player_token: token, hold_ms } = JSON.parse(text) as { player_token?: string; hold_ms?: number }
    calls.push({ path: request.url ?? '', token, hold_ms })
    const isConnected = request.url === '/matchmaker/players/connected'
    if (isConnected) await hold.get(token ?? '')
    const code = isConnected ? refuse.get(token ?? '') : undefined
    response.writeHead(code === undefined ? 200 : 400, { 'content-type': 'application/json' })
    const answer = isConnected && token?.startsWith('watch') ? { role: 'spectator' } : {}
    response.end(JSON.stringify(code === undefined ? answer : { code, message: `Refused: ${code}` }))
  }).listen(0, '127.0.0.1')
  await once(platform, 'listening')
  const port = await freePort()
  const server = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
    env: {
      PLATFORM_API_URL: `http://127.0.0.1:${(platform.address() as AddressInfo).port}`,
      PLATFORM_TOKEN: 'lobby.token',
      PLATFORM_LOBBY_ID: 'the-lobby',
      PLATFORM_MAX_PLAYERS_NORMAL: '2',
      PORT_GAME: String(port),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  t.after(async () => {
    if (server.exitCode === null && server.signalCode === null) {
      server.kill('SIGKILL')
      await once(server, 'exit')
    }
    platform.closeAllConnections()
    platform.close()
  })
  await until('ready', () => calls.some((call) => call.path === '/matchmaker/lobbies/ready'))
  return { address: `ws://127.0.0.1:${port}`, calls, refuse, hold, server }
}

type Player = { socket: WebSocket; heard: FromServer[]; closed: { code: number; reason: string } | null }

function enter(t: TestContext, arena: Arena, query: string): Player {
  const socket = new WebSocket(`${arena.address}/?${query}`)
  const player: Player = { socket, heard: [], closed: null }
  socket.on('message', (data) => player.heard.push(JSON.parse(String(data)) as FromServer))
  socket.on('close', (code, reason) => {
    player.closed = { code, reason: String(reason) }
  })
  socket.on('error', () => {})
  t.after(() => socket.terminate())
  return player
}

const told = (arena: Arena, path: string, token: string) =>
  arena.calls.filter((call) => call.path === path && call.token === token).length
const isIn = (player: Player) => player.heard.some((message) => message.type === 'snapshot')
const newest = (player: Player) => player.heard.findLast((message): message is Snapshot => message.type === 'snapshot')
const DISCONNECTED = '/matchmaker/players/disconnected'

test('two players see each other, and one sees the other move', async (t) => {
  const arena = await startArena(t)
  const ada = enter(t, arena, 'token=a&name=Ada')
  const bob = enter(t, arena, 'token=b&name=Bob')
  await until('both are in', () => newest(ada)?.players.length === 2 && newest(bob)?.players.length === 2)
  const welcome = bob.heard.find((message) => message.type === 'welcome')
  assert.deepEqual(welcome, {
    type: 'welcome',
    lobby_id: 'the-lobby',
    self_id: welcome?.self_id,
    players_max: 2,
    score_to_win: 30,
  })
  const place = (player: Player) => newest(player)?.players.find(({ id }) => id === welcome?.self_id)
  const begin = place(ada)!
  let seq = 0
  await until('moved', () => {
    const x = begin.x > 800 ? -1 : 1
    bob.socket.send(JSON.stringify({ type: 'input', seq: ++seq, x, y: 0, dash: false }))
    return Math.hypot(place(ada)!.x - begin.x, place(ada)!.y - begin.y) > 30
  })
})

test('a spectator sees the players of a full lobby, is none of them, and moves nothing', async (t) => {
  const arena = await startArena(t)
  const ada = enter(t, arena, 'token=a&name=Ada')
  const bob = enter(t, arena, 'token=b&name=Bob')
  await until('both are in', () => newest(ada)?.players.length === 2 && newest(bob)?.players.length === 2)
  const rosters = () => ada.heard.filter(({ type }) => type === 'roster').length
  const before = { players: newest(ada)!.players.map(({ id, x, y }) => ({ id, x, y })), rosters: rosters() }

  const watcher = enter(t, arena, 'token=watch&name=Eve')
  await until('the spectator sees both', () => newest(watcher)?.players.length === 2)
  assert.equal(watcher.heard.find((message) => message.type === 'welcome')?.self_id, null)
  assert.equal(newest(watcher)!.ship, undefined)
  const names = watcher.heard.find((message) => message.type === 'roster')?.players.map(({ name }) => name)
  assert.deepEqual(names, ['Ada', 'Bob'])

  for (let seq = 1; seq <= 5; seq++) watcher.socket.send(JSON.stringify({ type: 'input', seq, x: 1, y: 0, dash: true }))
  watcher.socket.send('{"type":"ping","sent_ms":1}')
  await until('all of it was read', () => watcher.heard.some(({ type }) => type === 'pong'))
  const { tick } = newest(ada)!
  await until('the world went on', () => newest(ada)!.tick > tick + 1)
  const after = { players: newest(ada)!.players.map(({ id, x, y }) => ({ id, x, y })), rosters: rosters() }
  assert.deepEqual(after, before)
})

test('a spectator that sends more than a page which watches loses its seat, and no player does', async (t) => {
  const arena = await startArena(t)
  const ada = enter(t, arena, 'token=a')
  const watcher = enter(t, arena, 'token=watch')
  await until('both are in', () => isIn(ada) && isIn(watcher))
  for (let count = 0; count < 40; count++) {
    for (const { socket } of [ada, watcher]) socket.send('{"type":"ping","sent_ms":1}')
  }
  await until('closed', () => watcher.closed !== null)
  assert.equal(watcher.closed?.code, CLOSE.TOO_FAST)
  await until('the seat is free', () => told(arena, DISCONNECTED, 'watch') === 1)
  await until('the player got all responses', () => ada.heard.filter(({ type }) => type === 'pong').length === 40)
})

test('a socket that the platform refuses hears nothing but the reason', async (t) => {
  const arena = await startArena(t)
  arena.refuse.set('used', 'MATCHMAKER_PLAYER_ALREADY_CONNECTED')
  const ada = enter(t, arena, 'token=used')
  await until('closed', () => ada.closed !== null)
  assert.deepEqual(ada.closed, { code: CLOSE.REFUSED, reason: 'Refused: MATCHMAKER_PLAYER_ALREADY_CONNECTED' })
  assert.equal(ada.heard.length, 0)
  // It would take the seat from the player who used the token first.
  assert.equal(told(arena, DISCONNECTED, 'used'), 0)
})

test('the seat of a player who leaves is returned exactly once', async (t) => {
  const arena = await startArena(t)
  const ada = enter(t, arena, 'token=a')
  const bob = enter(t, arena, 'token=b')
  await until('both are in', () => isIn(ada) && isIn(bob))
  ada.socket.close()
  bob.socket.terminate()
  await until(
    'both returned their seats',
    () => told(arena, DISCONNECTED, 'a') > 0 && told(arena, DISCONNECTED, 'b') > 0,
  )
  const cy = enter(t, arena, 'token=c')
  await until('a third is in', () => newest(cy)?.players.length === 1)
  assert.equal(told(arena, DISCONNECTED, 'a'), 1)
  assert.equal(told(arena, DISCONNECTED, 'b'), 1)
})

test('a player whose connection breaks is back as the same player, also before the server notices', async (t) => {
  const arena = await startArena(t)
  const idOf = (player: Player) => player.heard.find((message) => message.type === 'welcome')?.self_id
  const ada = enter(t, arena, 'token=a&name=Ada')
  const bob = enter(t, arena, 'token=b&name=Bob')
  await until('both are in', () => isIn(ada) && isIn(bob))
  ada.socket.terminate()
  await until('the seat is kept', () => told(arena, DISCONNECTED, 'a') === 1)
  const again = enter(t, arena, 'token=a&name=Ada')
  await until('the player is back', () => isIn(again))
  const elsewhere = enter(t, arena, 'token=a&name=Ada')
  await until('the player is back from another network', () => isIn(elsewhere) && again.closed !== null)
  assert.deepEqual([idOf(again), idOf(elsewhere)], [idOf(ada), idOf(ada)])
  elsewhere.socket.close()
  await until('the player leaves', () => told(arena, DISCONNECTED, 'a') === 3)
  const holds = arena.calls.filter(({ path, token }) => path === DISCONNECTED && token === 'a')
  assert.deepEqual(
    holds.map(({ hold_ms }) => hold_ms),
    [30_000, 30_000, 0],
  )
})

test('the seat of a player who leaves during admission is returned too', async (t) => {
  const arena = await startArena(t)
  let release = () => {}
  arena.hold.set('a', new Promise<void>((resolve) => (release = resolve)))
  const ada = enter(t, arena, 'token=a')
  await until('asked', () => told(arena, '/matchmaker/players/connected', 'a') === 1)
  ada.socket.terminate()
  const bob = enter(t, arena, 'token=b')
  await until('the server has seen more than the goodbye', () => isIn(bob))
  release()
  await until('given back', () => told(arena, DISCONNECTED, 'a') === 1)
  assert.equal(newest(bob)?.players.length, 1)
})

test('before the platform has said yes, nothing that a socket sends does anything', async (t) => {
  const arena = await startArena(t)
  let release = () => {}
  arena.hold.set('a', new Promise<void>((resolve) => (release = resolve)))
  const ada = enter(t, arena, 'token=a')
  await once(ada.socket, 'open')
  ada.socket.send('rubbish')
  ada.socket.send('{"type":"ping","sent_ms":1}')
  await until('asked', () => told(arena, '/matchmaker/players/connected', 'a') === 1)
  assert.equal(ada.heard.length, 0)
  release()
  await until('in', () => isIn(ada))
  assert.ok(!ada.heard.some((message) => message.type === 'pong'))
})

test('rubbish, a flood and a frame too large end the connection, and the seat is free', async (t) => {
  const arena = await startArena(t)
  const send: Record<string, (socket: WebSocket) => void> = {
    rubbish: (socket) => socket.send('{"type":"teleport"}'),
    large: (socket) => socket.send('x'.repeat(4096)),
    flood: (socket) => {
      for (let count = 0; count < 500; count++) socket.send('{"type":"ping","sent_ms":1}')
    },
  }
  for (const [name, act] of Object.entries(send)) {
    const player = enter(t, arena, `token=${name}`)
    await until('in', () => isIn(player))
    act(player.socket)
    await until(`${name} is closed`, () => player.closed !== null)
    await until(`${name} gave back`, () => told(arena, DISCONNECTED, name) === 1)
  }
})

test('sockets that are not yet admitted are limited', async (t) => {
  const arena = await startArena(t)
  const never = new Promise<void>(() => {})
  for (let count = 0; count < 9; count++) arena.hold.set(`s${count}`, never)
  const strangers = Array.from({ length: 8 }, (_, count) => enter(t, arena, `token=s${count}`))
  await until('eight wait', () => strangers.every(({ socket }) => socket.readyState === WebSocket.OPEN))
  const ninth = enter(t, arena, 'token=s8')
  await until('the ninth is refused', () => ninth.closed !== null)
  assert.equal(told(arena, '/matchmaker/players/connected', 's8'), 0)
})

test('a lobby that is stopped notifies its players and ends', async (t) => {
  const arena = await startArena(t)
  const ada = enter(t, arena, 'token=a')
  await until('in', () => isIn(ada))
  const ended = once(arena.server, 'exit')
  arena.server.kill('SIGTERM')
  await until('closed', () => ada.closed !== null)
  assert.equal(ada.closed?.code, CLOSE.STOPPING)
  assert.deepEqual(await ended, [0, null])
})
