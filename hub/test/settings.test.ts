// Settings with consequences: headers of a site, the expiry of a namespace, and deletion that asks for the name. By mouse
// and by keyboard.
import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import {
  type ApiError,
  createGameNamespaceTokenPublic,
  getGameById,
  getGameVersionById,
  getGroupMembers,
  getStatusPage,
  listGameNamespaceTokensPublic,
  listSchedules,
} from '@musterhost/contract'
import type { Locator, Page } from 'playwright-core'
import { newSite } from '../../server/test/cloud/steps.ts'
import { get } from '../../server/test/edge/get.ts'
import { DISCORD_PATH, startServices } from '../../server/test/notices/services.ts'
import type { TestGame } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { isTooWide, violationsOf } from './axe.ts'
import { dialogCloses, dialogOpens, focusOf, press, tabTo } from './keyboard-steps.ts'
import { type OpenHub, openHub, openView, PHONE, signInAsAdmin, type View } from './steps.ts'

/** Tokens that the page loads at once. */
const TOKENS_PAGE = 100
const DAY_MS = 86_400_000
const HEADER = { name: 'x-frame-options', value: 'SAMEORIGIN' }

type Scene = { hub: OpenHub; game: TestGame; view: View }

test('settings with consequences', async (t) => {
  const hub = await openHub(t, { env: { MUSTER_FETCH_PRIVATE_NETWORKS: '127.0.0.0/8' } })
  if (hub === null) return
  const game = await hub.platform.game()
  const view = await openView(hub)
  await signInAsAdmin(hub, view)
  const scene: Scene = { hub, game, view }
  await t.test('headers of the site are changed in a new version, and the site is served with them', () =>
    changeHeaders(scene),
  )
  await t.test('a list of tokens that is longer than a page says so and loads the rest', () => loadTokens(scene))
  await t.test('by keyboard, a namespace gets an expiry, loses it, and is deleted when it has expired', () =>
    expireNamespace(scene),
  )
  await t.test('by keyboard, a target of notices is added and tested, and its notice is sent again', (t) =>
    setTarget(t, scene),
  )
  await t.test('on a dark phone, axe finds nothing in the dialogs of a target, and nothing scrolls sideways', () =>
    examineTarget(scene),
  )
  await t.test('by keyboard, a schedule is added, shown with its times in both zones, run, paused and deleted', () =>
    setSchedule(scene),
  )
  await t.test('by keyboard, the status page is turned on, and an incident is written and resolved', () =>
    writeIncident(scene),
  )
  await t.test('on a phone, in both themes, axe finds nothing on the status page of players and of the hub', () =>
    examineStatus(scene),
  )
  await t.test('a group with games is not deleted, and says why', () => refuseDeletion(scene))
  await t.test('by keyboard, a game is deleted by its name and by no other', () => deleteGame(scene))
  await t.test('a group without games is deleted by its name', () => deleteGroup(scene))
  assert.deepEqual(view.faults, [])
  await view.context.close()
})

const gameUrl = ({ hub, game }: Scene): string => `${hub.url}/games/${game.game_id}`
const settingsUrl = (scene: Scene): string => `${gameUrl(scene)}/namespaces/${scene.game.namespace_id}/settings`

async function changeHeaders(scene: Scene): Promise<void> {
  const {
    hub: { platform },
    game,
    view: { page },
  } = scene
  const { game_id, version_id } = game
  const site_id = await newSite(platform, game_id)
  await page.goto(settingsUrl(scene))
  const section = page.getByRole('region', { name: 'Headers of the site' })
  await section.getByText('The version adds no header.').waitFor()
  await section.getByRole('link', { name: 'Change them in a new version' }).click()
  const editor = page.getByRole('textbox', { name: /^Config, as JSON/ })
  await editor.getByText('"matchmaker"').first().waitFor()
  const { version } = await platform.client.call(getGameVersionById, { params: { game_id, version_id } })
  const middlewares = [{ kind: { custom_headers: { headers: [HEADER] } } }]
  const cdn = { site_id, routes: [{ glob: '**/*.html', priority: 3, middlewares }] }
  await editor.fill(JSON.stringify({ ...version.config, cdn }, null, 2))
  await page.getByLabel('Name of the version').fill('framed')
  await page.getByRole('button', { name: 'Create the version' }).click()
  await page.getByRole('heading', { level: 1, name: 'framed' }).waitFor()
  await page.getByRole('button', { name: 'Deploy to Production' }).click()
  const dialog = page.getByRole('dialog')
  // This platform has no runner.
  await dialog.getByLabel('Start a lobby first').uncheck()
  await dialog.getByRole('button', { name: 'Deploy framed' }).click()
  await page.getByText('Production runs framed from now on.').waitFor()
  const opened = page.context().waitForEvent('page')
  await page.getByRole('link', { name: 'Open the site' }).click()
  const site = await opened
  await site.getByText('hi', { exact: true }).waitFor()
  assert.equal(new URL(site.url()).hostname, `${game.name_id}.${platform.ctx.config.domains.cdn}`)
  await site.close()
  await page.goto(settingsUrl(scene))
  const row = section.getByRole('row').filter({ hasText: '**/*.html' })
  for (const text of [HEADER.name, HEADER.value, '3'])
    await row.getByRole('cell', { name: text, exact: true }).waitFor()
  const { domains, edge_http_port } = platform.ctx.config
  const served = await until('the edge to serve the new version', async () => {
    const headers = { host: `${game.name_id}.${domains.cdn}` }
    const response = await get({ port: edge_http_port }, '/', { headers })
    return response.status === 200 && response
  })
  assert.equal(served.headers[HEADER.name], HEADER.value)
}

/** The target stays for examineTarget. */
async function setTarget(t: TestContext, { hub, game, view: { page } }: Scene): Promise<void> {
  const services = await startServices(t)
  await page.goto(`${hub.url}/games/${game.game_id}/notices`)
  await page.getByText('There is no target. Nothing is sent.').waitFor()
  await press(page, /^Add a target$/)
  await dialogOpens(page)
  await tabTo(page, /^Name/)
  await page.keyboard.type('team-chat')
  await tabTo(page, /^Address/)
  await page.keyboard.type(`${services.url}${DISCORD_PATH}`)
  await press(page, /^token_made/, 'Space')
  await press(page, /^Save$/)
  await dialogCloses(page)
  const row = page.getByRole('row').filter({ hasText: 'team-chat' })
  await row.getByText('never').waitFor()

  await press(page, /^Test team-chat$/)
  await page.getByText('team-chat took the test notice.').waitFor()
  assert.deepEqual(
    services.received.map(({ status, faults }) => ({ status, faults })),
    [{ status: 204, faults: [] }],
  )
  await press(page, /^Deliveries of team-chat$/)
  await dialogOpens(page)
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('row').filter({ hasText: 'A test notice' }).getByText('delivered').waitFor()
  await press(page, /^Send again: A test notice$/)
  await until('the notice to come again', () => services.received.length === 2)
  const ids = services.received.map(({ body }) => /test · ([0-9a-f-]{36})/.exec(body)?.[1])
  assert.equal(ids[0], ids[1])
  await page.keyboard.press('Escape')
  await dialogCloses(page)
}

async function examineTarget(scene: Scene): Promise<void> {
  const { hub } = scene
  const view = await openView(hub, { viewport: PHONE, colorScheme: 'dark', bypassCSP: true })
  const { page } = view
  await signInAsAdmin(hub, view)
  await page.goto(`${gameUrl(scene)}/notices`)
  await examineDialogs(page, ['Add a target', 'Change team-chat', 'Deliveries of team-chat', 'Delete team-chat'])
  await view.context.close()
}

/** Opens each dialog by the button of its name, and closes it. */
async function examineDialogs(page: Page, names: readonly string[]): Promise<void> {
  const dialog = page.getByRole('dialog')
  for (const name of names) {
    await page.getByRole('button', { name, exact: true }).click()
    await dialog.waitFor()
    assert.deepEqual(await violationsOf(page), [], name)
    assert.equal(await isTooWide(page), false, name)
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
  }
}

/** The second half is on a dark phone. */
async function setSchedule(scene: Scene): Promise<void> {
  const { hub, game, view } = scene
  const { page } = view
  await page.goto(`${gameUrl(scene)}/schedules`)
  await page.getByText('There is no schedule. Nothing is planned.').waitFor()
  await press(page, /^Add a schedule$/)
  await dialogOpens(page)
  await tabTo(page, /^Name/)
  await page.keyboard.type('nightly')
  await tabTo(page, /^Time zone/)
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type('Asia/Kolkata')
  await tabTo(page, /^Deadline/)
  await page.keyboard.type('30 minutes')
  await page.getByText('30 minutes is no time. Use a number with a unit').waitFor()
  await page.keyboard.press('ControlOrMeta+A')
  await page.keyboard.type('30m')
  await tabTo(page, /^Line 15 minutes before/)
  await page.keyboard.type('Restart in {minutes}')
  await press(page, /^Save$/)
  await dialogCloses(page)
  const row = page.getByRole('row').filter({ hasText: 'nightly' })
  await row.getByText('05:00').waitFor()

  await press(page, /^Run nightly now$/)
  await dialogOpens(page)
  await press(page, /^Run now$/)
  await dialogCloses(page)
  await row.getByText('done').waitFor()
  await press(page, /^Times and runs of nightly$/)
  await dialogOpens(page)
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('columnheader', { name: 'Next, in Asia/Kolkata' }).waitFor()
  assert.equal(await dialog.getByRole('cell', { name: /05:00$/ }).count(), 5)
  await dialog.getByRole('row').filter({ hasText: 'by hand' }).getByText('done').waitFor()
  await page.keyboard.press('Escape')
  await dialogCloses(page)
  await press(page, /^Pause nightly$/)
  await row.getByText('paused').waitFor()
  const { schedules } = await hub.platform.client.call(listSchedules, { params: { game_id: game.game_id }, query: {} })
  const { announce_before, deadline_s, is_paused } = schedules[0]!
  assert.deepEqual(announce_before, [{ before_s: 900, text: 'Restart in {minutes}' }])
  assert.deepEqual([deadline_s, is_paused], [1_800, true])

  const phone = await openView(hub, { viewport: PHONE, colorScheme: 'dark', bypassCSP: true })
  await signInAsAdmin(hub, phone)
  await phone.page.goto(`${gameUrl(scene)}/schedules`)
  const names = ['Add a schedule', 'Times and runs of nightly', 'Change nightly', 'Delete nightly']
  await examineDialogs(phone.page, names)
  await phone.page.getByRole('button', { name: 'Delete nightly', exact: true }).click()
  await phone.page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
  await phone.page.getByText('There is no schedule.').waitFor()
  await phone.context.close()
}

/** The incident stays for examineStatus. */
async function writeIncident({ hub, game, view: { page } }: Scene): Promise<void> {
  const port = hub.platform.ctx.config.edge_http_port
  const params = { game_id: game.game_id }
  const shown = async () => {
    const { status_page } = await hub.platform.client.call(getStatusPage, { params })
    const host = new URL(status_page.url).hostname
    return (await get({ port }, '/status', { headers: { host } })).body.toString()
  }
  await page.goto(`${hub.url}/games/${game.game_id}/status`)
  await page.getByText('The page is off').waitFor()
  await press(page, /^Change the page$/)
  await dialogOpens(page)
  await press(page, /^Serve the page/, 'Space')
  await tabTo(page, /^Title/)
  await page.keyboard.type('Is it up?')
  await press(page, /^Save$/)
  await dialogCloses(page)
  await page.getByRole('link', { name: /\/status$/ }).waitFor()
  await until('players see the page', async () => (await shown()).includes('<h1>Is it up?</h1>'))

  await press(page, /^Write an incident$/)
  await dialogOpens(page)
  await tabTo(page, /^Title/)
  await page.keyboard.type('Slow starts')
  await tabTo(page, /^What players should know/)
  await page.keyboard.type('We look into it.')
  await press(page, /^Write$/)
  await dialogCloses(page)
  await until('players see the incident', async () => (await shown()).includes('We look into it.'))
  await press(page, /^Resolve Slow starts$/)
  await dialogOpens(page)
  await tabTo(page, /^What players should know/)
  await page.keyboard.type('A disk was slow.')
  await press(page, /^Resolve$/)
  await dialogCloses(page)
  await page.getByRole('row').filter({ hasText: 'Slow starts' }).getByText('resolved').waitFor()
  await until('players see that it is over', async () => (await shown()).includes('A disk was slow.'))
}

async function examineStatus(scene: Scene): Promise<void> {
  const { hub, game } = scene
  const params = { game_id: game.game_id }
  const { url } = (await hub.platform.client.call(getStatusPage, { params })).status_page
  for (const colorScheme of ['light', 'dark'] as const) {
    const view = await openView(hub, { viewport: PHONE, colorScheme, bypassCSP: true })
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${gameUrl(scene)}/status`)
    await examineDialogs(page, [
      ...['Change the page', 'Write an incident'],
      ...['Write an update of Slow starts', 'Delete Slow starts'],
    ])
    await page.goto(url)
    await page.getByRole('heading', { level: 1, name: 'Is it up?' }).waitFor()
    assert.deepEqual(await violationsOf(page), [], `the page of players, ${colorScheme}`)
    assert.equal(await isTooWide(page), false)
    await view.context.close()
  }
}

async function loadTokens(scene: Scene): Promise<void> {
  const {
    hub: { platform },
    game: { game_id, namespace_id, name_id },
    view: { page },
  } = scene
  const params = { game_id, namespace_id }
  // The game has one already.
  for (let count = 0; count < TOKENS_PAGE; count++)
    await platform.client.call(createGameNamespaceTokenPublic, { params })
  await page.goto(`${gameUrl(scene)}/tokens`)
  const section = page.getByRole('region', { name: 'Public tokens' })
  await page.getByLabel('Namespace of the tokens below').selectOption('Production')
  await section.getByText(`${TOKENS_PAGE} tokens so far`).waitFor()
  await section.getByRole('button', { name: 'Load more' }).click()
  await section.getByText(`${TOKENS_PAGE + 1} tokens`, { exact: true }).waitFor()
  const revoke = section.getByRole('button', { name: /^Revoke the public token/ })
  assert.equal(await revoke.count(), TOKENS_PAGE + 1)
  await revoke.last().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Copy as …' }).click()
  await page
    .getByText(new RegExp(`^muster tokens revoke \\S+ --kind public --game ${name_id} --namespace prod$`))
    .waitFor()
  await page.keyboard.press('Escape')
  await dialog.getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByText('The token is revoked.').waitFor()
  await section.getByText('revoked', { exact: true }).waitFor()
  const { tokens } = await platform.client.call(listGameNamespaceTokensPublic, { params })
  assert.deepEqual(
    tokens.map(({ revoke_ts }) => revoke_ts !== undefined),
    [...tokens.slice(1).map(() => false), true],
    'the oldest alone',
  )
}

async function namespaceNames({ hub, game }: Scene): Promise<string[]> {
  const params = { game_id: game.game_id }
  return (await hub.platform.client.call(getGameById, { params })).game.namespaces.map(({ name_id }) => name_id)
}

/** Moves a selection to an option with the arrow keys. */
async function choose(page: Page, label: RegExp, option: string): Promise<void> {
  await tabTo(page, label)
  await page.keyboard.type(option)
  await until(`${option} to be chosen`, () =>
    page.evaluate(
      (text) => (document.activeElement as HTMLSelectElement).selectedOptions[0]?.textContent === text,
      option,
    ),
  )
}

async function expireNamespace(scene: Scene): Promise<void> {
  const {
    hub: { platform },
    view: { page },
  } = scene
  await page.goto(settingsUrl(scene))
  const section = page.getByRole('region', { name: 'Expiry' })
  await section.getByText('It does not expire.').waitFor()
  await choose(page, /^Expires/, 'in 1 day')
  await press(page, /^Set the expiry$/)
  await section.getByText(/^It expires in 24 h/).waitFor()
  await choose(page, /^Expires/, 'never')
  await press(page, /^Set the expiry$/)
  await section.getByText('It does not expire.').waitFor()
  await choose(page, /^Expires/, 'in 1 day')
  await press(page, /^Set the expiry$/)
  await page.getByRole('link', { name: 'Deploys', exact: true }).click()
  await page.getByText(/^This namespace expires in .*: then its lobbies stop, and it is deleted\.$/).waitFor()
  // A page with a live feed would show its end, and Chromium would log it as an error.
  await page.goto(`${gameUrl(scene)}/settings`)
  platform.stepWallClock(DAY_MS)
  await until('the namespace to be deleted', async () => {
    platform.stepWallClock(1_000)
    return !(await namespaceNames(scene)).includes('prod')
  })
  await page.goto(settingsUrl(scene))
  await page.getByRole('alert').getByText('There is no such namespace.').waitFor()
  await page.goto(gameUrl(scene))
  await page.getByRole('link', { name: 'Staging' }).first().waitFor()
  assert.equal(await page.getByRole('link', { name: 'Production' }).count(), 0)
}

const confirmOf = (page: Page, name: string): { field: Locator; button: Locator } => {
  const dialog = page.getByRole('dialog')
  return { field: dialog.getByRole('textbox'), button: dialog.getByRole('button', { name, exact: true }) }
}

async function refuseDeletion({ hub, game, view: { page } }: Scene): Promise<void> {
  await page.goto(`${hub.url}/groups/${game.group_id}`)
  await page.getByRole('button', { name: 'Delete the group' }).click()
  const { field, button } = confirmOf(page, 'Delete the group')
  assert.equal(await button.isDisabled(), true)
  await field.fill('developers')
  assert.equal(await button.isDisabled(), true, 'the name has a capital letter')
  await field.fill('Developers')
  await button.click()
  await page.getByRole('dialog').getByRole('alert').getByText(/game/).waitFor()
  assert.equal((await focusOf(page)).name, 'Delete the group', 'the focus stays at the button')
  await page.keyboard.press('Escape')
  await dialogCloses(page)
}

async function deleteGame(scene: Scene): Promise<void> {
  const {
    hub: { platform },
    game,
    view: { page },
  } = scene
  await page.goto(`${gameUrl(scene)}/settings`)
  await page.getByRole('button', { name: 'Delete the game' }).waitFor()
  await press(page, /^Delete the game$/)
  const { field, button } = confirmOf(page, 'Delete the game')
  await field.waitFor()
  await tabTo(page, /^Type .* to confirm/)
  await page.keyboard.type('another-game')
  assert.equal(await button.isDisabled(), true)
  await page.keyboard.press('Enter')
  const params = { game_id: game.game_id }
  await platform.client.call(getGameById, { params })
  await field.fill('')
  await page.keyboard.type(game.name_id)
  await page.keyboard.press('Enter')
  await page.getByText('The game Game is deleted.').waitFor()
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
  const code = await platform.client.call(getGameById, { params }).catch((error: ApiError) => error.code)
  assert.equal(code, 'GAME_NOT_FOUND')
}

async function deleteGroup({ hub, game, view: { page } }: Scene): Promise<void> {
  const params = { group_id: game.group_id }
  await page.goto(`${hub.url}/groups/${game.group_id}`)
  await page.getByRole('button', { name: 'Delete the group' }).click()
  const { field, button } = confirmOf(page, 'Delete the group')
  await field.fill('Developers')
  await button.click()
  await page.getByText('The group Developers is deleted.').waitFor()
  await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
  const code = await hub.platform.client.call(getGroupMembers, { params }).catch((error: ApiError) => error.code)
  assert.equal(code, 'GROUP_NOT_FOUND')
}
