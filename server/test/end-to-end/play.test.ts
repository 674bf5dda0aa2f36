import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { findLobby } from '@musterhost/contract'
import type { Browser } from 'playwright-core'
import { until } from '../support/until.ts'
import { type Arena, startArena } from './arena.ts'
import { movesBefore, openBrowser, openDoor, openPage, type Player, play, playerOf } from './browser.ts'

/** The version of a page, as the SDK finds it. */
const PAGE_VERSION =
  "performance.getEntriesByType('navigation')[0].serverTiming.find(({ name }) => name === 'muster-version').description"
const OPTIONS = ['--max-players', '2', '--idle-grace-ms', '600000']
/** How long a page has no network after it has noticed. Its seat is kept for 30 s. */
const OFFLINE_MS = 10_000

test('pages of the arena', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const arena = await startArena(t, { deploy: OPTIONS })
  await t.test(
    'two pages play in one lobby, a third player gets another one, a page watches, a page that is loaded again keeps its seat, and a closed page frees it',
    () => playTogether(browser, arena),
  )
  await t.test('a page that is older than a deploy is loaded again, once, and plays the deployed version', () =>
    playAfterDeploy(browser, arena),
  )
  await t.test(
    'a page shows how many players are missing, and is back in its seat after a moment and after 10 s without a network',
    () => playAfterOutage(browser, arena),
  )
})

function seatOf({ page }: Player): Promise<string | null> {
  return page.evaluate(() => sessionStorage.getItem('muster.seat'))
}

async function playTogether(browser: Browser, arena: Arena): Promise<void> {
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

  const watcher = await watch(browser, arena, lobby_id, [ada, bob])

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
  // Both lobbies have one free place: the older one comes first.
  await watcher.page.locator('#play-instead').click()
  await ada.seesPlayers(2)
  assert.equal(await watcher.lobby_id(), lobby_id, 'the page that watched plays')
  const fifth = await arena.player.call(findLobby, { body: { game_modes: ['default'] } })
  assert.equal(fifth.lobby.lobby_id, third.lobby.lobby_id)
  await ada.leave()
  await watcher.leave()
}

/** A page that watches both players of a full lobby. */
async function watch(browser: Browser, arena: Arena, lobby_id: string, [ada, bob]: [Player, Player]): Promise<Player> {
  const page = await openPage(browser, `${arena.play_url}?name=Eve`)
  const sent: unknown[] = []
  page.on('websocket', (socket) => socket.on('framesent', ({ payload }) => sent.push(JSON.parse(String(payload)).type)))
  await page.locator('#watch').click()
  const watcher = await playerOf(page)
  assert.equal(await watcher.lobby_id(), lobby_id)
  await page.getByText('You are watching 2 players').waitFor()
  await movesBefore(ada, 'Ada', watcher)
  await movesBefore(bob, 'Bob', watcher)

  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('Space')
  await page.mouse.click(100, 100)
  const count = sent.length
  await until('the page to measure its connection', () => sent.length > count)
  assert.deepEqual(new Set(sent), new Set(['ping']))
  await ada.seesPlayers(2)
  const lobby = (await arena.lobbies()).find((item) => item.lobby_id === lobby_id)
  assert.deepEqual([lobby?.total_player_count, lobby?.spectator_count], [2, 1])
  return watcher
}

async function playAfterDeploy(browser: Browser, arena: Arena): Promise<void> {
  const page = await openPage(browser, `${arena.play_url}?name=Eve`)
  const before = await page.evaluate(PAGE_VERSION)
  await arena.deploy(OPTIONS)
  const { lobby } = await arena.player.call(findLobby, { body: { game_modes: ['default'] } })
  assert.notEqual(lobby.version_id, before)

  const finds: unknown[] = []
  page.on('request', (request) => {
    if (request.url().endsWith(findLobby.path)) finds.push(request.postDataJSON().version_id)
  })
  const loaded = page.waitForEvent('load')
  await page.locator('#play').click()
  await loaded
  assert.equal(await page.evaluate(PAGE_VERSION), lobby.version_id)
  await page.locator('#play').click()
  const eve = await playerOf(page)
  assert.equal(await eve.lobby_id(), lobby.lobby_id)
  assert.deepEqual(finds, [before, lobby.version_id])
}

async function playAfterOutage(browser: Browser, arena: Arena): Promise<void> {
  await arena.deploy([...OPTIONS, '--players-to-begin', '2'])
  const door = await openDoor(browser, arena.play_url, 'Ada')
  await door.getByText('Waiting for 1 more player').waitFor()
  const bob = await play(browser, arena.play_url, 'Bob')
  const ada = await playerOf(door)
  const lobby_id = await ada.lobby_id()
  assert.equal(await bob.lobby_id(), lobby_id)
  await bob.seesPlayers(2)

  const seat = await seatOf(ada)
  const broken = door.locator('#broken.on')
  for (const outage_ms of [0, OFFLINE_MS]) {
    await door.context().setOffline(true)
    await broken.waitFor()
    await sleep(outage_ms)
    await door.context().setOffline(false)
    await broken.waitFor({ state: 'detached' })
    assert.equal(await ada.lobby_id(), lobby_id)
    assert.equal(await seatOf(ada), seat, 'with the same seat')
    await bob.seesPlayers(2)
  }
  await movesBefore(ada, 'Ada', bob)
  await movesBefore(bob, 'Bob', ada)
}
