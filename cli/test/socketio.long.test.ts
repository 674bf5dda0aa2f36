// The example of Socket.IO: a server that knows nothing of the platform, deployed by its muster.yaml, and two browsers.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Page, WebSocketRoute } from 'playwright-core'
import { openBrowser, openPage } from '../../server/test/end-to-end/browser.ts'
import { startPlatform } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { deployExample } from './example-steps.ts'
import { copyPackages } from './packages.ts'

test('a Socket.IO game plays with nothing but its version config, and no stranger reaches it', async (t) => {
  const browser = await openBrowser(t)
  if (browser === null) return
  const platform = await startPlatform(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true })
  const example = await deployExample(t, platform, 'socketio', {
    game: 'bubbles',
    prepare: (folder) => copyPackages(['socket.io'], join(folder, 'server', 'node_modules')),
  })
  const ada = await openPage(browser, example.url)
  const bob = await browser.newPage()
  const sockets: { page: WebSocketRoute; server: WebSocketRoute }[] = []
  await bob.routeWebSocket(/socket\.io/, (socket) => {
    sockets.push({ page: socket, server: socket.connectToServer() })
  })
  await bob.goto(example.url)
  for (const page of [ada, bob]) await scoresOf(page, ['player', 'you'])
  const lobby_id = await lobbyOf(ada)
  assert.equal(await lobbyOf(bob), lobby_id)
  await until('both to be connected', async () => (await example.connected(lobby_id)) === 2)

  await t.test('both see the same bubble, and who popped it', async () => {
    await ada.getByRole('button', { name: 'Bubble 1', exact: true }).click()
    for (const page of [ada, bob]) await page.getByRole('button', { name: 'Bubble 2', exact: true }).waitFor()
    await bob
      .getByRole('listitem')
      .filter({ hasText: /^player \d: 1$/ })
      .waitFor()
    await bob.getByRole('listitem').filter({ hasText: 'you: 0' }).waitFor()
  })

  await t.test('without a token no request reaches the server, by either transport', async () => {
    const { ports } = await example.takeSeat()
    const game = new URL(ports.game!.url)
    const path = `${game.pathname.replace(/\/$/, '')}/socket.io/?EIO=4`
    for (const token of ['', '&player_token=forged']) {
      const polled = await fetch(new URL(`${path}&transport=polling${token}`, game))
      assert.equal(((await polled.json()) as { code: string }).code, 'PLAYER_TOKEN_INVALID')
      const socket = new WebSocket(new URL(`${path}&transport=websocket${token}`, game))
      await new Promise((resolve) => socket.addEventListener('error', resolve, { once: true }))
    }
  })

  await t.test('a player who loses the connection has the same seat', async () => {
    const seats = await example.seats(lobby_id)
    await until('the page to use a WebSocket', () => sockets.length === 1)
    for (const side of Object.values(sockets[0]!)) await side.close({ code: 4000 })
    await bob.getByText('Trying again').waitFor()
    await bob.getByText(`Lobby ${lobby_id}`).waitFor()
    await scoresOf(bob, ['player', 'you'])
    await until('the page to use another WebSocket', () => sockets.length === 2)
    await until('both to be connected', async () => (await example.connected(lobby_id)) === 2)
    assert.equal(await example.seats(lobby_id), seats)
  })

  await t.test('a player who closes the page leaves', async () => {
    await bob.context().close()
    await until('one to be connected', async () => (await example.connected(lobby_id)) === 1)
    await scoresOf(ada, ['you'])
  })
})

/** Waits until the page lists these, in any order. */
async function scoresOf(page: Page, names: readonly string[]): Promise<void> {
  await until(`the page to list ${names.join(', ')}`, async () => {
    const items = await page.getByRole('listitem').allTextContents()
    return (
      items
        .map((item) => /^[a-z]+/.exec(item)?.[0])
        .sort()
        .join() === [...names].sort().join()
    )
  })
}

async function lobbyOf(page: Page): Promise<string> {
  const text = (await page.getByRole('status').textContent()) ?? ''
  const [, lobby_id] = /^Lobby (\S+)$/.exec(text) ?? []
  assert.ok(lobby_id !== undefined, text)
  return lobby_id
}
