// Servers that do not respond: suspended (as by a debugger, a freezer or a swapping machine), in an endless loop, or
// deadlocked. Real servers under the real runner.
import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { type ApiError, findLobby, listLobbies, playerConnected } from '@musterhost/contract'
import { readStat } from '../../src/node/procfs.ts'
import { startArena } from '../end-to-end/arena.ts'
import { LONG_MS } from '../http/steps.ts'
import { lacking } from '../run/optional-programs.ts'
import { processesOf, roleOf } from '../supervisor/started.ts'
import { type Platform, startPlatform, type TestGame } from '../support/platform.ts'
import type { Seat } from '../support/platform-verbs.ts'
import { until } from '../support/until.ts'
import { needsOf, SANDBOXES, type Sandbox } from './driver-fixture.ts'

/** How often a player sends a datagram. */
const SEND_MS = 100

/**
 * The main thread serves players. A second thread, on its own port, blocks it on command: `spin` makes it loop, `wait` makes
 * it wait, any other word releases it. The response comes when that is the case.
 */
const BLOCKABLE_SERVER = `
import { createSocket } from 'node:dgram'
const http = process.getBuiltinModule('node:http')
import { createServer } from 'node:net'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME, PORT_RAW, PORT_CONTROL } = process.env
if (isMainThread) {
  const held = new Int32Array(new SharedArrayBuffer(8))
  const holder = new Worker(new URL(import.meta.url), { workerData: held })
  await new Promise((resolve) => holder.once('message', resolve))
  setInterval(() => {
    if (Atomics.load(held, 0) === 0) return
    Atomics.store(held, 1, 1)
    Atomics.notify(held, 1)
    while (Atomics.load(held, 0) === 1);
    Atomics.wait(held, 0, 2)
    Atomics.store(held, 1, 0)
  }, 10)
  const udp = createSocket('udp4', (message, { port, address }) => udp.send(message, port, address))
  udp.bind(Number(PORT_RAW), '127.0.0.1')
  http.createServer((_, answer) => answer.end('lobby')).listen(Number(PORT_GAME), '127.0.0.1', () => {
    const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
    http.request(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }).end()
  })
} else {
  createServer((socket) => socket.on('data', (word) => {
    Atomics.store(workerData, 0, { spin: 1, wait: 2 }[word] ?? 0)
    Atomics.notify(workerData, 0)
    if (Atomics.load(workerData, 0) > 0) Atomics.wait(workerData, 1, 0)
    socket.end('done')
  })).listen(Number(PORT_CONTROL), '127.0.0.1', () => parentPort.postMessage('listening'))
}
process.on('SIGTERM', () => process.exit(0))
`
const PORTS = {
  game: { protocol: 'http' as const },
  raw: { protocol: 'udp' as const },
  control: { protocol: 'http' as const },
}

function promise(name: string, run: (t: TestContext, sandbox: Sandbox) => Promise<void>): void {
  for (const sandbox of SANDBOXES) {
    test(`${name} (${sandbox === 'off' ? 'without a sandbox' : 'in bubblewrap'})`, async (t) => {
      const missing = lacking(...needsOf(sandbox))
      return missing === null ? run(t, sandbox) : t.skip(missing)
    })
  }
}

type Played = { platform: Platform; game: TestGame; seat: Seat; lobby_id: string }

/** A connected player in a lobby with a free seat. */
async function play(t: TestContext, sandbox: Sandbox, files?: Record<string, string>): Promise<Played> {
  const roles = 'api,matchmaker,runner,edge'
  const platform = await startPlatform(t, { roles, env: { MUSTER_SANDBOX: sandbox } })
  const matchmaker = { game_modes: { default: { idle_grace_ms: LONG_MS } } }
  const game = await platform.game(
    files === undefined ? { matchmaker } : { matchmaker, files, docker: { ports: PORTS } },
  )
  const seat = await game.find()
  const { lobby_id } = seat.lobby
  const server = platform.serverOf(game, lobby_id)
  await server.call(playerConnected, { body: { player_token: seat.player.token } })
  return { platform, game, seat, lobby_id }
}

/** The server's own process, below its monitors. */
const programOf = (lobby_id: string): number =>
  processesOf(lobby_id).find(({ command }) => command.split(' ', 1)[0]!.endsWith('node'))!.pid

async function listOf({ player }: Pick<TestGame, 'player'>) {
  const { lobbies } = await player.call(listLobbies, {})
  return lobbies.map(({ lobby_id, total_player_count, is_stalled }) => [lobby_id, total_player_count, is_stalled])
}

const isListed = ({ player }: Pick<TestGame, 'player'>, lobby_id: string, is_stalled?: boolean) =>
  until(`the list to say that the lobby ${is_stalled ? 'stalls' : 'responds'}`, async () => {
    const { lobbies } = await player.call(listLobbies, {})
    return lobbies.some((lobby) => lobby.lobby_id === lobby_id && lobby.is_stalled === is_stalled)
  })

/** The lobby admits no player, keeps its own, and the next player gets another lobby. */
async function requireClosed({ game, lobby_id }: Played): Promise<string> {
  const refusal = (error: ApiError) => error.code
  assert.equal(await game.join(lobby_id).then(() => null, refusal), 'MATCHMAKER_LOBBY_CLOSED')
  const none = game.find({ prevent_auto_create_lobby: true })
  assert.equal(await none.then(() => null, refusal), 'MATCHMAKER_NO_AVAILABLE_LOBBIES')
  const other = await game.find()
  assert.notEqual(other.lobby.lobby_id, lobby_id)
  assert.deepEqual(await listOf(game), [
    [lobby_id, 1, true],
    [other.lobby.lobby_id, 1, undefined],
  ])
  return other.lobby.lobby_id
}

/** The lobby admits players again. */
async function requireOpen({ platform, game, lobby_id }: Played, other: string): Promise<void> {
  await isListed(game, lobby_id)
  assert.equal((await game.join(lobby_id)).lobby.lobby_id, lobby_id)
  assert.equal((await game.find()).lobby.lobby_id, lobby_id, 'the fullest')
  assert.deepEqual(await listOf(game), [
    [lobby_id, 3, undefined],
    [other, 1, undefined],
  ])
  const { start_ts, exit_ts, stall_ts } = await runOf(platform, lobby_id)
  assert.ok(start_ts !== null && exit_ts === null && stall_ts === null, 'the same run')
}

const runOf = ({ ctx }: Platform, lobby_id: string) =>
  ctx.db.selectFrom('lobby_runs').where('lobby_id', '=', lobby_id).selectAll().executeTakeFirstOrThrow()

promise('a server suspended for 20 s admits no player, keeps its own, and then continues', async (t, sandbox) => {
  const played = await play(t, sandbox)
  const { platform, game, seat, lobby_id } = played
  const pid = programOf(lobby_id)
  process.kill(pid, 'SIGSTOP')
  await until('the server to be suspended', () => readStat(pid)?.state === 'T')
  const asked = fetch(seat.ports.game!.url!)
  await isListed(game, lobby_id, true)
  platform.advance(20_000)
  const other = await requireClosed(played)
  process.kill(pid, 'SIGCONT')
  assert.equal(await (await asked).text(), 'lobby')
  await requireOpen(played, other)
})

async function command(platform: Platform, lobby_id: string, word: 'spin' | 'wait' | 'go on'): Promise<void> {
  const { hostname, port } = (await runOf(platform, lobby_id)).ports.control!
  const socket = connect(port, hostname, () => socket.write(word))
  await new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject))
}

promise('a server in an endless loop admits no player once a connection waits', async (t, sandbox) => {
  const played = await play(t, sandbox, { 'server.mjs': BLOCKABLE_SERVER })
  const { platform, game, seat, lobby_id } = played
  await command(platform, lobby_id, 'spin')
  const asked = fetch(seat.ports.game!.url!)
  await isListed(game, lobby_id, true)
  const other = await requireClosed(played)
  await command(platform, lobby_id, 'go on')
  assert.equal(await (await asked).text(), 'lobby')
  await requireOpen(played, other)
})

promise(
  'a deadlocked server admits no player once its datagrams gather, and does again when it reads',
  async (t, sandbox) => {
    const played = await play(t, sandbox, { 'server.mjs': BLOCKABLE_SERVER })
    const { platform, game, lobby_id } = played
    const { port, hostname } = (await runOf(platform, lobby_id)).ports.raw!
    const player = createSocket('udp4')
    let responses = 0
    player.on('message', () => responses++)
    const sending = setInterval(() => player.send('here I am', port, hostname), SEND_MS)
    t.after(() => {
      clearInterval(sending)
      player.close()
    })
    await until('the server to respond', () => responses > 0)
    await command(platform, lobby_id, 'wait')
    await isListed(game, lobby_id, true)
    const other = await requireClosed(played)
    await command(platform, lobby_id, 'go on')
    await requireOpen(played, other)
  },
)

test('a suspended server stays stalled for the next runner and matchmaker, which also see it continue', async (t) => {
  const arena = await startArena(t, { deploy: ['--max-players', '4'] })
  const { lobby_id } = await lobbyOf()
  const pid = programOf(lobby_id)
  process.kill(pid, 'SIGSTOP')
  await isListed(arena, lobby_id, true)
  for (const role of ['runner', 'matchmaker']) {
    const killed = roleOf(arena.folder, role)!
    process.kill(killed, 'SIGKILL')
    await until(`another ${role}`, () => arena.started().output().includes(`${role} is back`))
    assert.deepEqual(
      (await until('the matchmaker to respond', () => listOf(arena).catch(() => null))).map(([id, , stalls]) => [
        id,
        stalls,
      ]),
      [[lobby_id, true]],
    )
  }
  const killed = roleOf(arena.folder, 'runner')!
  process.kill(killed, 'SIGKILL')
  process.kill(pid, 'SIGCONT')
  await isListed(arena, lobby_id)
  assert.equal((await lobbyOf()).lobby_id, lobby_id)

  async function lobbyOf() {
    return (await arena.player.call(findLobby, { body: { game_modes: ['default'] } })).lobby
  }
})
