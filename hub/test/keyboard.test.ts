// What a person does most, with the keys Tab, Enter, Space, Escape and the arrows alone.
import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { getGameNamespaceById } from '@musterhost/contract'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { until } from '../../server/test/support/until.ts'
import { dialogCloses, dialogOpens, focusOf, press, tabTo } from './keyboard-steps.ts'
import { openHub, openView } from './steps.ts'

/** Longer than a feed waits before it connects again. */
const LATE_MS = 1_500
const MODES = { default: { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS, max_players: 2 } }
test('by keyboard alone a version is deployed and rolled back, and a lobby is stopped', async (t) => {
  const hub = await openHub(t)
  if (hub === null) return
  const { platform } = hub
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const second_id = await platform.deploy(game, { ...MODES, duel: MODES.default })
  const { lobby } = await game.find()
  const params = { game_id: game.game_id, namespace_id: game.namespace_id }
  const deployed = async () => (await platform.client.call(getGameNamespaceById, { params })).namespace.version_id
  const view = await openView(hub)
  const { page } = view

  await t.test('the sign-in', async () => {
    await page.goto(`${hub.url}/sign-in`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page
      .getByLabel('Access token')
      .or(page.getByRole('button', { name: /access token/ }))
      .first()
      .waitFor()
    if ((await page.getByLabel('Access token').count()) === 0) {
      await press(page, /access token$/)
      assert.match((await focusOf(page)).name, /^Access token/, 'the field that appears has the focus')
    }
    await tabTo(page, /^Access token/)
    await page.keyboard.type(platform.token)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
  })

  await t.test('the palette opens the game, and a link the namespace', async () => {
    await page.getByRole('link', { name: 'Game', exact: true }).first().waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('searchbox').waitFor()
    await page.keyboard.press('Escape')
    await dialogCloses(page)
    await page.keyboard.press('Control+k')
    await page.getByRole('searchbox').waitFor()
    await page.keyboard.type('Game')
    await page.getByRole('menuitem', { name: 'Game game' }).waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL(`${hub.url}/games/${game.game_id}`)
    await page.getByRole('heading', { level: 1, name: 'Game' }).waitFor()
    await dialogCloses(page)
    await press(page, /^Production$/)
    await page.getByRole('heading', { level: 1, name: 'Production' }).waitFor()
  })

  await t.test('a version is deployed, and rolled back', async () => {
    await page.getByRole('cell', { name: 'deployed', exact: true }).waitFor()
    await press(page, /^Deploy a version$/)
    await dialogOpens(page)
    await page.keyboard.press('Escape')
    await dialogCloses(page)
    assert.match((await focusOf(page)).name, /^Deploy a version$/, 'the focus is where it was')
    await press(page, /^Deploy a version$/)
    await dialogOpens(page)
    await tabTo(page, /^Version/)
    await page.keyboard.type('1.0.0')
    await tabTo(page, /^Message/)
    await page.keyboard.type('By keyboard')
    await tabTo(page, /^Start a lobby first/)
    await page.keyboard.press('Space')
    await press(page, /^Deploy 1\.0\.0$/)
    await dialogCloses(page)
    assert.equal(await deployed(), game.version_id)
    await page.getByRole('cell', { name: 'By keyboard', exact: true }).waitFor()
    await press(page, /^Roll back$/)
    await dialogOpens(page)
    await press(page, /^Roll back to [^i]/)
    await dialogCloses(page)
    assert.equal(await deployed(), second_id)
  })

  await t.test('a lobby is stopped', async () => {
    await press(page, /^Lobbies$/)
    await page.getByRole('checkbox').first().waitFor()
    await press(page, /^Select lobby/, 'Space')
    await page.getByRole('button', { name: 'Stop 1 lobby' }).waitFor()
    await press(page, /^Stop 1 lobby$/)
    await dialogOpens(page)
    await press(page, /^Stop$/)
    await dialogCloses(page)
    await page.getByText('1 lobby stopped.').waitFor()
    const stopped = await until('the lobby to be stopped', async () => {
      const lobbies = platform.ctx.db.selectFrom('lobbies').select('lobby_id').where('stop_ts', 'is not', null)
      return (await lobbies.execute()).map(({ lobby_id }) => lobby_id)
    })
    assert.deepEqual(stopped, [lobby.lobby_id])
  })

  await t.test('the sign-out, whose response is late', async () => {
    // The platform has closed the feeds of the page by then, which must not connect again with the token of the session.
    await page.route('**/auth/tokens/identity', async (route) => {
      const response = await route.fetch()
      await setTimeout(LATE_MS)
      await route.fulfill({ response })
    })
    await press(page, /^Sign out$/)
    await page.waitForURL(/\/sign-in/)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })
})
