// The first hour of a person: the sign-in by a code, a group, a game and its checklist, and a version that crashes.
import assert from 'node:assert/strict'
import test from 'node:test'
import {
  addNamespaceDomain,
  createGameNamespaceTokenPublic,
  createGameVersion,
  getGameById,
  getGameNamespaceById,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import type { Page } from 'playwright-core'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { type MailServer, startMailServer } from '../../server/test/identity/mail-server.ts'
import { codeIn } from '../../server/test/identity/people.ts'
import { LEAST_SERVER, uploadBuild } from '../../server/test/support/builds.ts'
import { GAME_VERBS } from '../../server/test/support/game-verbs.ts'
import type { TestGame } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { dialogCloses, press, tabTo } from './keyboard-steps.ts'
import { type OpenHub, openHub, openView, type View } from './steps.ts'

const EMAIL = 'ada@example.com'
const CRASHING_SERVER = 'process.exitCode = 3\n'
const MODES = { default: { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } }

type Scene = { hub: OpenHub; mail: MailServer; view: View }

test('the first hour of a person', async (t) => {
  const mail = await startMailServer(t)
  const env = { MUSTER_SMTP_URL: mail.url, MUSTER_ACCESS: 'public' }
  const hub = await openHub(t, { roles: 'api,matchmaker,runner,edge', has_sandboxes: true, env })
  if (hub === null) return
  const view = await openView(hub)
  const scene: Scene = { hub, mail, view }

  await t.test('by keyboard: a wrong code is refused, the right one leads to the page that was asked for', () =>
    signInByCode(scene),
  )
  await t.test('a group and a game are made, and the checklist ticks what is done without a reload', () =>
    makeFirstGame(scene),
  )
  await t.test('a version that crashes comes first, and its button rolls back', () => rollBackFromHome(scene))
  await t.test('an unproven domain comes with the way to its DNS record', () => proveDomain(scene))
  assert.deepEqual(view.faults, [])
  await view.context.close()
})

async function signInByCode({ hub, mail, view: { page } }: Scene): Promise<void> {
  await page.goto(`${hub.url}/account`)
  await page.getByLabel('E-mail address').waitFor()
  await tabTo(page, /^E-mail address/)
  await page.keyboard.type(EMAIL)
  await page.keyboard.press('Enter')
  await page.getByText('A code is on its way to').waitFor()
  const field = page.getByLabel('Code from the e-mail')
  await until('the field of the code to have the focus', () =>
    field.evaluate((element) => element === document.activeElement),
  )
  const code = codeIn(mail, EMAIL)
  await page.keyboard.type((code.startsWith('A') ? 'B' : 'A') + code.slice(1))
  await page.keyboard.press('Enter')
  await page.getByText('This is not the code.').waitFor()
  await field.fill(code.toLowerCase())
  await field.press('Enter')
  await page.waitForURL(`${hub.url}/account`)
  await page.getByRole('heading', { level: 1 }).waitFor()
}

const stepOf = (page: Page, text: string) => page.getByRole('listitem').filter({ hasText: text })

async function makeFirstGame({ hub, view: { page } }: Scene): Promise<void> {
  await page.goto(hub.url)
  await page.getByText('Create a group first').waitFor()
  await press(page, /^New group$/)
  await page.getByRole('dialog').getByLabel('Name').waitFor()
  await tabTo(page, /^Name/)
  await page.keyboard.type('Moon people')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Moon people' }).waitFor()
  await dialogCloses(page)
  await page.getByRole('link', { name: 'Muster' }).click()
  await page.getByRole('heading', { level: 2, name: 'First steps of Moon people' }).waitFor()
  await page.getByText(`npm install --global ${hub.url}/cli.tgz`, { exact: true }).waitFor()
  await page.getByText(`muster login ${hub.url}`, { exact: true }).waitFor()
  assert.equal(await page.getByText('(not done yet)').count(), 4)
  await page.getByRole('button', { name: 'New game' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name', { exact: true }).fill('Moon Race')
  assert.equal(await dialog.getByLabel('Short name').inputValue(), 'moon-race')
  await dialog.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Moon Race' }).waitFor()
  await page.getByRole('link', { name: 'Muster' }).click()
  await stepOf(page, 'Make a game from a template (done)').waitFor()
  await stepOf(page, 'Let the first player in (not done yet)').waitFor()
  await page.getByText('muster deploy --game moon-race', { exact: true }).waitFor()
  await page.getByText('muster find --game moon-race --namespace prod', { exact: true }).waitFor()
  const game = await firstGame(hub, page)
  await deployServer(hub, game, '1.0.0', LEAST_SERVER)
  await stepOf(page, 'Upload its server and its page, and deploy them (done)').waitFor()
  await game.find()
  await page.getByRole('heading', { name: 'First steps of Moon people' }).waitFor({ state: 'detached' })
}

/** The game of the link on the home page. */
async function firstGame({ platform }: OpenHub, page: Page): Promise<TestGame> {
  const link = page.getByRole('table', { name: 'Games' }).getByRole('link', { name: 'Moon Race' })
  const game_id = (await link.getAttribute('href'))?.split('/').at(-1) ?? ''
  const { game } = await platform.client.call(getGameById, { params: { game_id } })
  const { namespace_id, version_id } = game.namespaces.find(({ name_id }) => name_id === 'prod')!
  const params = { game_id, namespace_id }
  const { token } = await platform.client.call(createGameNamespaceTokenPublic, { params })
  const { developer_group_id: group_id, name_id } = game
  const player = platform.as(token)
  return { ...GAME_VERBS, group_id, game_id, name_id, namespace_id, version_id, player, public_token: token }
}

async function deployServer({ platform }: OpenHub, game: TestGame, name: string, server: string): Promise<void> {
  const { client, api_url } = platform
  const { game_id, namespace_id } = game
  const image_id = await uploadBuild(client, { api_url, game_id, files: { 'server.mjs': server } })
  const docker = { image_id, args: ['node', 'server.mjs'], ports: { game: { protocol: 'http' as const } } }
  const config = { matchmaker: { docker, game_modes: MODES }, kv: {} }
  const { version_id } = await client.call(createGameVersion, {
    params: { game_id },
    body: { display_name: name, config },
  })
  await client.call(updateGameNamespaceVersion, { params: { game_id, namespace_id }, body: { version_id } })
}

async function rollBackFromHome({ hub, view: { page } }: Scene): Promise<void> {
  const game = await firstGame(hub, page)
  const params = { game_id: game.game_id, namespace_id: game.namespace_id }
  const deployed = async () => (await hub.platform.client.call(getGameNamespaceById, { params })).namespace.version_id
  const good = await deployed()
  await deployServer(hub, game, '1.1.0', CRASHING_SERVER)
  await until('a find on the crashing version to fail', () =>
    game.find().then(
      () => false,
      () => true,
    ),
  )
  const problem = page.getByRole('listitem').filter({ hasText: '1.1.0 crashes in prod' })
  await problem.getByText('error', { exact: true }).waitFor()
  await problem.getByRole('button', { name: 'Roll back to 1.0.0' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back to 1.0.0' }).click()
  await page.getByText('Production runs 1.0.0 from now on.').waitFor()
  assert.equal(await deployed(), good)
}

async function proveDomain({ hub, view: { page } }: Scene): Promise<void> {
  await page.goto(hub.url)
  await page.getByRole('table', { name: 'Games' }).waitFor()
  const { game_id, namespace_id } = await firstGame(hub, page)
  const params = { game_id, namespace_id }
  await hub.platform.client.call(addNamespaceDomain, { params, body: { domain: 'moon.example.com' } })
  const problem = page.getByRole('listitem').filter({ hasText: 'moon.example.com' })
  await problem.getByRole('link', { name: 'Show the DNS record' }).click()
  await page.getByText('moon.example.com', { exact: true }).waitFor()
  await page.getByText('CNAME', { exact: true }).waitFor()
  await page
    .getByText(/^_muster\.moon\.example\.com|moon\.example\.com → /)
    .first()
    .waitFor()
}
