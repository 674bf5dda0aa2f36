import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ApiError, findLobby } from '@musterhost/contract'
import { isThere, roleOf } from '../supervisor/started.ts'
import { until } from '../support/until.ts'
import { type Arena, startArena } from './arena.ts'
import { movesBefore, openBrowser, type Player, play } from './browser.ts'

const find = { body: { game_modes: ['default'] } }

/** Kills the role's process and waits for the one that takes its place. */
async function killRole(arena: Arena, role: string): Promise<void> {
  const pid = await until(`a ${role}`, () => roleOf(arena.folder, role))
  process.kill(pid, 'SIGKILL')
  await until(`another ${role}`, () => {
    const other = roleOf(arena.folder, role)
    return other !== undefined && other !== pid
  })
}

function nullIfNotNow(error: unknown): null {
  if (error instanceof ApiError && error.code === 'API_NOT_AVAILABLE') return null
  throw error
}

/** Both are in the lobby that has exactly their seats, and what one does the other sees. */
async function playOn(arena: Arena, ada: Player, bob: Player, lobby_id: string): Promise<void> {
  await movesBefore(ada, 'Ada', bob)
  await movesBefore(bob, 'Bob', ada)
  const lobbies = await until('the matchmaker to answer', () => arena.lobbies().catch(() => null))
  assert.deepEqual(
    lobbies.map((lobby) => [lobby.lobby_id, lobby.total_player_count]),
    [[lobby_id, 2]],
    'one lobby, two seats: none lost, none counted twice',
  )
  assert.equal(await ada.lobby_id(), lobby_id)
  assert.equal(await bob.lobby_id(), lobby_id)
}

test('api, matchmaker and runner are killed one after the other, and two players play on', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const arena = await startArena(t, { deploy: ['--max-players', '4'] })
  const ada = await play(browser, arena.play_url, 'Ada')
  const bob = await play(browser, arena.play_url, 'Bob')
  const lobby_id = await ada.lobby_id()
  await ada.seesPlayers(2)
  await bob.seesPlayers(2)

  for (const role of ['api', 'matchmaker', 'runner']) {
    await killRole(arena, role)
    await playOn(arena, ada, bob, lobby_id)
  }

  const cid = await play(browser, arena.play_url, 'Cid')
  assert.equal(await cid.lobby_id(), lobby_id, 'a third player finds the same lobby')
  await ada.seesPlayers(3)
  await cid.leave()
  await ada.seesPlayers(2)
  await until('the third seat to be free', async () => (await arena.lobbies())[0]?.total_player_count === 2)
})

test('PostgreSQL is killed while two players play: everything acknowledged is there, and they play on', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const arena = await startArena(t, { deploy: ['--max-players', '4'] })
  const ada = await play(browser, arena.play_url, 'Ada')
  const bob = await play(browser, arena.play_url, 'Bob')
  const lobby_id = await ada.lobby_id()
  await ada.seesPlayers(2)
  const pid = Number(readFileSync(join(arena.folder, 'postgres', 'postmaster.pid'), 'utf8').split('\n', 1)[0])
  process.kill(pid, 'SIGKILL')

  // Asked at the worst moment, it waits for the database. Where that takes longer than it may wait, it is asked again
  // with the same key, as the SDK does: one seat.
  const headers = { 'idempotency-key': 'the-worst-moment' }
  const seat = await until('a seat', () => arena.player.call(findLobby, { ...find, headers }).catch(nullIfNotNow))
  assert.equal(seat.lobby.lobby_id, lobby_id)
  await movesBefore(ada, 'Ada', bob)
  assert.deepEqual(
    (await arena.lobbies()).map((lobby) => [lobby.lobby_id, lobby.total_player_count]),
    [[lobby_id, 3]],
  )
})

test('the supervisor is killed while two players play: after a new start all is as acknowledged', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const arena = await startArena(t, { deploy: ['--max-players', '4'] })
  const ada = await play(browser, arena.play_url, 'Ada')
  const lobby_id = await ada.lobby_id()
  const reserved = await arena.player.call(findLobby, find)
  assert.equal(reserved.lobby.lobby_id, lobby_id)

  arena.started().kill('SIGKILL')
  await arena.startAgain()
  // The edge fell with its supervisor, and the page's connection with it: the lobby server has reported that Ada left.
  await until('the seats to be as acknowledged', async () => {
    const lobbies = await arena.lobbies()
    return lobbies.length === 1 && lobbies[0]?.lobby_id === lobby_id && lobbies[0].total_player_count === 1
  })
  const bob = await play(browser, arena.play_url, 'Bob')
  assert.equal(await bob.lobby_id(), lobby_id, 'the lobby was adopted')
})

test('Ctrl-C ends the platform and its lobbies: nothing is left running', async (t) => {
  const arena = await startArena(t, { deploy: ['--max-players', '4'] })
  await arena.player.call(findLobby, find)
  const pids = ['api', 'matchmaker', 'runner', 'edge'].map((role) => roleOf(arena.folder, role))
  arena.started().signalGroup('SIGINT')
  const { code } = await arena.started().ended
  assert.equal(code, 0, arena.started().output())
  for (const pid of pids) assert.ok(pid === undefined || !isThere(pid))
})
