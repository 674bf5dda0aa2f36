// The pages of a game with thousands of running lobbies, by mouse and by keyboard alone, and as a person of another group.
import assert from 'node:assert/strict'
import test from 'node:test'
import { createLobby, setLobbyReady } from '@musterhost/contract'
import type { Page } from 'playwright-core'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { startMailServer } from '../../server/test/identity/mail-server.ts'
import type { Platform, TestGame } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { violationsOf } from './axe.ts'
import { dialogCloses, dialogOpens, focusOf, press, tabTo } from './keyboard-steps.ts'
import { joined } from './people.ts'
import {
  figureOf,
  useSession as giveSession,
  type OpenHub,
  openHub,
  openView,
  signInAsAdmin,
  type View,
} from './steps.ts'

const LOBBIES = 3_000
/** Of these, so many are of the game mode duel. */
const DUELS = 40
const CALLS_AT_ONCE = 32
/** A virtual table draws what is visible, and a few rows around it. */
const DRAWN_ROWS_MAX = 100
const STOPPED_BY_MOUSE = 3

const actions = { create: { enabled: true, enable_public: true } }
const mode = { max_players: 4, idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS, actions }
const MODES = { default: mode, duel: mode }
const LIMITS = { max_players_per_client: 1_000_000, lobby_count_max: 1_000_000 }

type Scene = {
  hub: OpenHub
  game: TestGame
  /** Of the namespace. */
  url: string
}

/** Opens lobbies by create: each has one player. */
async function openManyLobbies(game: TestGame): Promise<void> {
  let left = LOBBIES
  await Promise.all(
    Array.from({ length: CALLS_AT_ONCE }, async () => {
      for (let number = left--; number > 0; number = left--) {
        await game.player.call(createLobby, { body: { game_mode: number <= DUELS ? 'duel' : 'default' } })
      }
    }),
  )
}

/** Acts as the servers of all lobbies that start. Returns a function that ends it. */
function readyAll(platform: Platform, game: TestGame): () => Promise<void> {
  const seen = new Set<string>()
  let is_over = false
  const looking = (async () => {
    while (!is_over) {
      const rows = await platform.ctx.db
        .selectFrom('lobbies')
        .where('ready_ts', 'is', null)
        .where('stop_ts', 'is', null)
        .select('lobby_id')
        .execute()
      const fresh = rows.filter(({ lobby_id }) => !seen.has(lobby_id))
      for (const { lobby_id } of fresh) seen.add(lobby_id)
      await Promise.all(fresh.map(({ lobby_id }) => platform.serverOf(game, lobby_id).call(setLobbyReady, {})))
    }
  })()
  return async () => {
    is_over = true
    await looking
  }
}

const rowsOf = (page: Page) => page.getByRole('table', { name: 'Running lobbies' }).locator('tbody tr:has(td)')
const linkOf = (page: Page, row = 0) => rowsOf(page).nth(row).getByRole('link')

async function lobbyAt(page: Page, row = 0): Promise<string> {
  return (await linkOf(page, row).getAttribute('title')) ?? ''
}

async function openLobbies({ hub, url }: Scene, query = ''): Promise<View> {
  const view = await openView(hub)
  await signInAsAdmin(hub, view)
  await view.page.goto(`${url}/lobbies${query}`)
  await view.page.getByText('live', { exact: true }).waitFor()
  return view
}

/** The ids of lobbies that were stopped, oldest first. */
async function stoppedOf({ hub }: Scene): Promise<string[]> {
  const { rows } = await hub.platform.ctx.pool.query<{ lobby_id: string }>(
    'select lobby_id from lobbies where stop_ts is not null order by lobby_id',
  )
  return rows.map(({ lobby_id }) => lobby_id)
}

test('a game with thousands of lobbies', async (t) => {
  const mail = await startMailServer(t)
  const hub = await openHub(t, { env: { MUSTER_SMTP_URL: mail.url, MUSTER_ACCESS: 'public' } })
  if (hub === null) return
  const { platform } = hub
  const game = await platform.game({ matchmaker: { game_modes: MODES }, limits: LIMITS })
  const end = readyAll(platform, game)
  await openManyLobbies(game)
  await end()
  const scene: Scene = { hub, game, url: `${hub.url}/games/${game.game_id}/namespaces/${game.namespace_id}` }

  await t.test('by mouse: filtered, sorted, opened, and Back to the same view', () => byMouse(scene))
  await t.test('by mouse: some are selected and stopped, and no others', () => stopByMouse(scene))
  await t.test('by keyboard alone: found, opened, Back, selected and stopped', () => byKeyboard(scene))
  await t.test('home, matchmaker and search have all of them', () => elsewhere(scene))
  await t.test('a member of another group sees none of them', async () => {
    const other = await platform.game({ matchmaker: { game_modes: MODES } })
    const { group_id } = other
    const person = await joined(platform, mail, { group_id, role: 'developer', email: 'other@example.com' })
    await asMemberOf(other, scene, person.cookie)
  })
  for (const colorScheme of ['light', 'dark'] as const) {
    await t.test(`${colorScheme}: axe finds nothing`, () => checkWithAxe(scene, colorScheme))
  }
})

async function byMouse(scene: Scene): Promise<void> {
  const view = await openLobbies(scene)
  const { page } = view
  await page.getByText('3,000 lobbies', { exact: true }).waitFor()
  const table = page.getByRole('table', { name: 'Running lobbies' })
  assert.equal(await table.getAttribute('aria-rowcount'), String(LOBBIES + 1))
  assert.ok((await rowsOf(page).count()) < DRAWN_ROWS_MAX, 'only visible rows are drawn')
  const oldest = await lobbyAt(page)
  await page.getByLabel('Game mode').selectOption('duel')
  await page.getByText(`${DUELS} of 3,000 lobbies`).waitFor()
  await page.getByRole('button', { name: 'Age', exact: true }).click()
  await page.waitForURL(/order=down/)
  const newest = await lobbyAt(page)
  assert.notEqual(newest, oldest)
  // One lobby has more players than the others, and comes first.
  await scene.game.join(newest)
  await page.getByRole('button', { name: 'Players', exact: true }).click()
  await until('the fullest lobby to be the last', async () => (await lobbyAt(page, DUELS - 1)) === newest)
  await page.getByRole('button', { name: 'Players', exact: true }).click()
  await until('the fullest lobby to be the first', async () => (await lobbyAt(page)) === newest)
  await linkOf(page).click()
  await page.getByRole('heading', { level: 1, name: `Lobby ${newest.slice(-8)}` }).waitFor()
  await page.goBack()
  await page.getByText(`${DUELS} of 3,000 lobbies`).waitFor()
  assert.equal(await lobbyAt(page), newest)
  await page.getByRole('button', { name: 'Show all' }).click()
  await page.getByText('3,000 lobbies', { exact: true }).waitFor()
  await page.getByRole('group', { name: 'Running lobbies' }).evaluate((element) => element.scrollTo(0, 1e6))
  await page.locator(`tr[aria-rowindex="${LOBBIES + 1}"]`).waitFor()
  assert.deepEqual(view.faults, [])
  await view.context.close()
}

async function stopByMouse(scene: Scene): Promise<void> {
  const view = await openLobbies(scene, '?mode=duel')
  const { page } = view
  await page.getByText(`${DUELS} of 3,000 lobbies`).waitFor()
  const chosen: string[] = []
  for (let row = 0; row < STOPPED_BY_MOUSE; row++) {
    chosen.push(await lobbyAt(page, row))
    await rowsOf(page).nth(row).getByRole('checkbox').check()
  }
  await page.getByText(`${STOPPED_BY_MOUSE} selected`).waitFor()
  await page.getByRole('button', { name: `Select all ${DUELS} shown` }).click()
  await page.getByText(`${DUELS} selected`).waitFor()
  await page.getByRole('button', { name: 'Select none' }).click()
  for (let row = 0; row < STOPPED_BY_MOUSE; row++) await rowsOf(page).nth(row).getByRole('checkbox').check()
  await page.getByRole('button', { name: `Stop ${STOPPED_BY_MOUSE} lobbies` }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Stop', exact: true }).click()
  await page.getByText(`${STOPPED_BY_MOUSE} lobbies stopped.`).waitFor()
  await page.getByText(`${DUELS - STOPPED_BY_MOUSE} of 2,997 lobbies`).waitFor()
  await until('the tables to say so', async () => (await stoppedOf(scene)).length === STOPPED_BY_MOUSE)
  assert.deepEqual(await stoppedOf(scene), chosen.sort())
  assert.deepEqual(view.faults, [])
  await view.context.close()
}

async function byKeyboard(scene: Scene): Promise<void> {
  const view = await openLobbies(scene)
  const { page } = view
  const before = await stoppedOf(scene)
  const lobby_id = await lobbyAt(page, 1)
  await tabTo(page, /^Lobby or mode contains/)
  await page.keyboard.type(lobby_id)
  await page.getByText('1 of 2,997 lobbies').waitFor()
  await tabTo(page, new RegExp(`^${lobby_id.slice(-8)}$`))
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: `Lobby ${lobby_id.slice(-8)}` }).waitFor()
  // The key for Back belongs to the browser's own bar, which a headless Chromium does not have.
  await page.goBack()
  await page.getByText('1 of 2,997 lobbies').waitFor()
  await press(page, /^Select lobby/, 'Space')
  await page.getByRole('button', { name: 'Stop 1 lobby' }).waitFor()
  await tabTo(page, /^Stop 1 lobby$/, 'Shift+Tab')
  await page.keyboard.press('Enter')
  await dialogOpens(page)
  await press(page, /^Stop$/)
  await dialogCloses(page)
  await page.getByText('No running lobby passes the filters.').waitFor()
  await until('the tables to say so', async () => (await stoppedOf(scene)).length === before.length + 1)
  assert.ok((await stoppedOf(scene)).includes(lobby_id))
  await tabTo(page, /^Show all$/, 'Shift+Tab')
  await page.keyboard.press('Enter')
  await page.getByText('2,996 lobbies', { exact: true }).waitFor()
  assert.equal((await focusOf(page)).is_lost, false)
  assert.deepEqual(view.faults, [])
  await view.context.close()
}

async function elsewhere(scene: Scene): Promise<void> {
  const { hub, game, url } = scene
  const view = await openLobbies(scene)
  const { page } = view
  const running = LOBBIES - (await stoppedOf(scene)).length
  const lobby_id = await lobbyAt(page)
  await page.goto(hub.url)
  await figureOf(page, 'Lobbies now', running.toLocaleString('en')).waitFor()
  await page.getByRole('link', { name: `${running.toLocaleString('en')} lobbies` }).click()
  await page.getByText(`${running.toLocaleString('en')} lobbies`, { exact: true }).waitFor()
  await page.goto(`${url}/matchmaker`)
  await page
    .getByRole('table', { name: 'Lobbies' })
    .getByText(/more in the list of lobbies/)
    .waitFor()
  await page.goto(`${hub.url}/games/${game.game_id}/search`)
  await page.getByLabel('Id or address').fill(lobby_id)
  await page.keyboard.press('Enter')
  await page.getByRole('table', { name: 'Lobbies' }).getByRole('row').nth(1).waitFor()
  assert.equal(await page.getByRole('table', { name: 'Lobbies' }).getByRole('row').count(), 2)
  assert.deepEqual(view.faults, [])
  await view.context.close()
}

async function asMemberOf(other: TestGame, { hub, game, url }: Scene, cookie: string): Promise<void> {
  const view = await openView(hub)
  const { page } = view
  await giveSession(hub, view, cookie)
  await page.goto(hub.url)
  await figureOf(page, 'Lobbies now', '0').waitFor()
  await page.goto(`${hub.url}/games/${other.game_id}/namespaces/${other.namespace_id}/lobbies`)
  await page.getByText('No lobby runs.').waitFor()
  for (const path of ['/lobbies', '/lobbies/history', '/matchmaker']) {
    await page.goto(url + path)
    await page.getByRole('alert').waitFor()
    assert.equal(await page.getByRole('table').count(), 0, path)
  }
  await page.goto(`${hub.url}/games/${game.game_id}/search`)
  await page.getByRole('alert').waitFor()
  assert.deepEqual(view.faults, [])
  await view.context.close()
}

async function checkWithAxe({ hub, game, url }: Scene, colorScheme: 'light' | 'dark'): Promise<void> {
  const view = await openView(hub, { colorScheme, bypassCSP: true, reducedMotion: 'reduce' })
  const { page } = view
  await signInAsAdmin(hub, view)
  const pages = [
    [hub.url, figureOf(page, 'Games', '2')],
    [`${url}/lobbies`, page.getByRole('table', { name: 'Running lobbies' })],
    [`${url}/matchmaker`, page.getByText(/more in the list of lobbies/).first()],
    [`${hub.url}/games/${game.game_id}/search?text=127.0.0.1`, page.getByText(/There are more/).first()],
  ] as const
  for (const [address, shown] of pages) {
    await page.goto(address)
    await shown.waitFor()
    assert.deepEqual(await violationsOf(page), [], address)
  }
  assert.deepEqual(view.faults, [])
  await view.context.close()
}
