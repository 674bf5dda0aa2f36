// What a person does most, with the keys Tab, Enter, Space, Escape and the arrows alone.
import assert from 'node:assert/strict'
import test from 'node:test'
import { getGameNamespaceById } from '@muster/contract'
import type { Page } from 'playwright-core'
import { deploy, find, LONG_MS } from '../../server/test/http/steps.ts'
import { until } from '../../server/test/until.ts'
import { openHub, openView } from './steps.ts'

const MODES = { default: { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS, max_players: 2 } }
/** More elements than any page of the test has. */
const TABS_MAX = 120

type Focus = { name: string; is_lost: boolean; is_visible: boolean }

function focusOf(page: Page): Promise<Focus> {
  return page.evaluate(() => {
    const element = document.activeElement ?? document.body
    const { outlineStyle, outlineWidth } = getComputedStyle(element)
    const label = (element as HTMLInputElement).labels?.[0]?.textContent
    return {
      name: (element.getAttribute('aria-label') ?? label ?? element.textContent ?? '').trim(),
      is_lost: element === document.body,
      is_visible: outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0,
    }
  })
}

/** Presses Tab until the element of this name has the focus. What has the focus on the way is always visible. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  const passed: string[] = []
  for (let tabs = 0; tabs < TABS_MAX; tabs++) {
    const focus = await focusOf(page)
    if (name.test(focus.name) && !focus.is_lost) return
    passed.push(focus.name.slice(0, 40))
    await page.keyboard.press('Tab')
    const next = await focusOf(page)
    assert.ok(next.is_lost || next.is_visible, `the focus is not visible: ${next.name}`)
  }
  assert.fail(`Tab does not lead to ${name}, but to ${passed.join(', ')}.`)
}

async function press(page: Page, name: RegExp, key = 'Enter'): Promise<void> {
  await tabTo(page, name)
  await page.keyboard.press(key)
}

/** The dialog is gone, and the focus is in the page. */
async function dialogCloses(page: Page): Promise<void> {
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await until('the focus to be in the page', async () => !(await focusOf(page)).is_lost)
}

test('by keyboard alone a version is deployed and rolled back, and a lobby is stopped', async (t) => {
  const hub = await openHub(t)
  if (hub === null) return
  const { platform } = hub
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  const second_id = await deploy(platform, game, { ...MODES, duel: MODES.default })
  const { lobby } = await find(game)
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
    await page.getByRole('cell', { name: 'runs', exact: true }).waitFor()
    await press(page, /^Deploy a version$/)
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await dialogCloses(page)
    assert.match((await focusOf(page)).name, /^Deploy a version$/, 'the focus is where it was')
    await press(page, /^Deploy a version$/)
    await page.getByRole('dialog').waitFor()
    await tabTo(page, /^Version/)
    await page.keyboard.type('1.0.0')
    await tabTo(page, /^Message/)
    await page.keyboard.type('By keyboard')
    await press(page, /^Deploy 1\.0\.0$/)
    await dialogCloses(page)
    assert.equal(await deployed(), game.version_id)
    await page.getByRole('cell', { name: 'By keyboard', exact: true }).waitFor()
    await press(page, /^Roll back to it$/)
    await page.getByRole('dialog').waitFor()
    await press(page, /^Roll back to [^i]/)
    await dialogCloses(page)
    assert.equal(await deployed(), second_id)
  })

  await t.test('a lobby is stopped', async () => {
    await press(page, /^Lobbies$/)
    await page.getByRole('checkbox').first().waitFor()
    await press(page, /^Select lobby/, 'Space')
    await page.getByRole('button', { name: 'Stop 1 lobby …' }).waitFor()
    await press(page, /^Stop 1 lobby …$/)
    await page.getByRole('dialog').waitFor()
    await press(page, /^Stop$/)
    await dialogCloses(page)
    await page.getByText('1 lobby stopped.').waitFor()
    const stopped = await until('the lobby to be stopped', async () => {
      const lobbies = platform.ctx.db.selectFrom('lobbies').select('lobby_id').where('stop_ts', 'is not', null)
      return (await lobbies.execute()).map(({ lobby_id }) => lobby_id)
    })
    assert.deepEqual(stopped, [lobby.lobby_id])
  })

  await t.test('the sign-out', async () => {
    await press(page, /^Sign out$/)
    await page.waitForURL(/\/sign-in/)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })
})
