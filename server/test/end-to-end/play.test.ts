import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findLobby } from '@musterhost/contract'
import { until } from '../support/until.ts'
import { startArena } from './arena.ts'
import { movesBefore, openBrowser, type Player, play, playerOf } from './browser.ts'

test('two pages play in one lobby, a third player gets another one, a page that is loaded again keeps its seat, and a closed page frees it', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const arena = await startArena(t, { deploy: ['--max-players', '2', '--idle-grace-ms', '600000'] })

  const ada = await play(browser, arena.play_url, 'Ada')
  const bob = await play(browser, arena.play_url, 'Bob')
  const lobby_id = await ada.lobby_id()
  assert.equal(await bob.lobby_id(), lobby_id, 'both have the same lobby')
  await ada.seesPlayers(2)
  await bob.seesPlayers(2)
  await movesBefore(ada, 'Ada', bob)
  await movesBefore(bob, 'Bob', ada)

  const third = await arena.player.call(findLobby, { body: { game_modes: ['default'] } })
  assert.notEqual(third.lobby.lobby_id, lobby_id, 'beyond the limit there is a second lobby')
  assert.equal((await arena.lobbies()).length, 2)

  const seatOf = ({ page }: Player) => page.evaluate(() => sessionStorage.getItem('muster.seat'))
  const seat = await seatOf(bob)
  await bob.page.reload()
  const again = await playerOf(bob.page)
  assert.equal(await again.lobby_id(), lobby_id, 'a page that is loaded again is back in its lobby')
  assert.equal(await seatOf(again), seat, 'with the same seat')
  await ada.seesPlayers(2)

  await again.leave()
  await ada.seesPlayers(1)
  await until('the seat to be free', async () => {
    const lobby = (await arena.lobbies()).find((item) => item.lobby_id === lobby_id)
    return lobby?.total_player_count === 1
  })
  const fourth = await arena.player.call(findLobby, { body: { game_modes: ['default'] } })
  const fifth = await arena.player.call(findLobby, { body: { game_modes: ['default'] } })
  // Both lobbies have one free place: the older one comes first.
  assert.equal(fourth.lobby.lobby_id, lobby_id)
  assert.equal(fifth.lobby.lobby_id, third.lobby.lobby_id)
})
