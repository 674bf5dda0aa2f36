// The progress of a deploy on the page of its namespace, without a reload: files, the first server, and the older versions.
import assert from 'node:assert/strict'
import test from 'node:test'
import {
  createGameVersion,
  deleteMatchmakerLobby,
  getGameNamespaceById,
  getGameVersionById,
  renameGameVersion,
} from '@musterhost/contract'
import type { Locator, Page } from 'playwright-core'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { uploadBuild } from '../../server/test/support/builds.ts'
import type { TestGame } from '../../server/test/support/platform.ts'
import { until } from '../../server/test/support/until.ts'
import { type OpenHub, openHub, openView, PHONE, signInAsAdmin, type View } from './steps.ts'

const MODES = { default: { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } }
/** Calls ready when the test asks it to. */
const PATIENT_SERVER = `
const http = process.getBuiltinModule('node:http')

const { PLATFORM_API_URL, PLATFORM_TOKEN, PORT_GAME } = process.env
const headers = { authorization: 'Bearer ' + PLATFORM_TOKEN }
http.createServer((_, response) => {
  http.request(PLATFORM_API_URL + '/matchmaker/lobbies/ready', { method: 'POST', headers }).end()
  response.end()
}).listen(Number(PORT_GAME), '127.0.0.1')
`
/** As long as a name may be. */
const LONG_NAME = 'v'.repeat(128)
const CRASHING_SERVER = "console.log('loading the map')\nprocess.exitCode = 3\n"

type Scene = { hub: OpenHub; game: TestGame; view: View }

test('the progress of a deploy', async (t) => {
  const hub = await openHub(t, { roles: 'api,matchmaker,runner,edge', env: { MUSTER_SANDBOX: 'off' } })
  if (hub === null) return
  const game = await hub.platform.game({ matchmaker: { game_modes: MODES } })
  const view = await openView(hub)
  await signInAsAdmin(hub, view)
  await view.page.goto(`${hub.url}/games/${game.game_id}/namespaces/${game.namespace_id}`)
  const scene: Scene = { hub, game, view }
  await t.test('its steps are shown until a server is ready and the older lobbies have ended', () =>
    followDeploy(scene),
  )
  await t.test('a version that crashes says so, and leads to its lobbies', () => followFailure(scene))
  await t.test(
    'a version that crashes is not deployed when a lobby is started first, and the dialog shows its log',
    () => refuseBadVersion(scene),
  )
  await t.test('a version whose server is never ready is given up after half a minute, and its lobby ends', () =>
    giveUpSlowVersion(scene),
  )
  await t.test('on a phone, the longest name of a version fits its button', () => fitLongName(scene))
  assert.deepEqual(view.faults, [])
  await view.context.close()
})

async function refuseBadVersion(scene: Scene): Promise<void> {
  const { hub, game, view } = scene
  const { page } = view
  await createVersion(scene, 'bad', CRASHING_SERVER)
  const params = { game_id: game.game_id, namespace_id: game.namespace_id }
  const deployed = async () => (await hub.platform.client.call(getGameNamespaceById, { params })).namespace.version_id
  const before = await deployed()
  await page.goto(`${hub.url}/games/${game.game_id}/namespaces/${game.namespace_id}`)
  await page.getByRole('button', { name: 'Deploy a version' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Version').selectOption('bad')
  await dialog.getByRole('button', { name: 'Deploy bad' }).click()
  await dialog.getByText('its server exited with code 3').waitFor()
  await dialog.getByRole('group', { name: 'The last lines of its log' }).getByText('loading the map').waitFor()
  await dialog.getByText(/^Nothing was deployed: .* still runs 1\.2\.0\.$/).waitFor()
  assert.equal(await deployed(), before)
  await page.keyboard.press('Escape')
}

async function giveUpSlowVersion(scene: Scene): Promise<void> {
  const { hub, game, view } = scene
  await createVersion(scene, 'slow', PATIENT_SERVER)
  const running = hub.platform.ctx.db.selectFrom('lobbies').where('stop_ts', 'is', null).select('lobby_id')
  const before = await running.execute()
  const page = await view.context.newPage()
  await page.clock.install()
  await page.goto(`${hub.url}/games/${game.game_id}/namespaces/${game.namespace_id}`)
  await page.getByRole('button', { name: 'Deploy a version' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Version').selectOption('slow')
  await dialog.getByRole('button', { name: 'Deploy slow' }).click()
  await dialog
    .getByRole('status')
    .getByText(/did not call ready\. .* needs `ready: listening`/)
    .waitFor()
  await page.clock.fastForward(30_000)
  await dialog.getByText('The first lobby of slow was not ready within 30 s of its start.').waitFor()
  await dialog.getByText('A server that takes longer to start says so by ready_deadline_ms').waitFor()
  assert.equal(await dialog.getByText('The server is not ready:').count(), 0, 'the reason stands there once')
  await dialog.getByText(/^Nothing was deployed: .* still runs 1\.2\.0\.$/).waitFor()
  await until('the lobby of the check to end', async () => (await running.execute()).length === before.length)
  await page.close()
}

/** A version of the game with this server. */
async function createVersion({ hub, game }: Scene, display_name: string, server: string): Promise<void> {
  const { client, api_url } = hub.platform
  const { game_id, version_id } = game
  const image_id = await uploadBuild(client, { api_url, game_id, files: { 'server.mjs': server } })
  const { version } = await client.call(getGameVersionById, { params: { game_id, version_id } })
  const matchmaker = version.config.matchmaker!
  const config = { ...version.config, matchmaker: { ...matchmaker, docker: { ...matchmaker.docker!, image_id } } }
  await client.call(createGameVersion, { params: { game_id }, body: { display_name, config } })
}

async function deploy({ view: { page }, hub }: Scene, name: string): Promise<void> {
  await page.reload()
  await page.getByRole('button', { name: 'Deploy a version' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Version').selectOption(name)
  await dialog.getByLabel('Start a lobby first').uncheck()
  await dialog.getByRole('button', { name: `Deploy ${name}` }).click()
  await page.getByText(`Production runs ${name} from now on.`).waitFor()
  assert.ok(page.url().startsWith(hub.url))
}

const stepsOf = (page: Page, name: string): Locator =>
  page.getByRole('region', { name: `Deploy of ${name}` }).getByRole('listitem')

async function followDeploy(scene: Scene): Promise<void> {
  const { hub, game, view } = scene
  const { page } = view
  const { platform } = hub
  const old = await game.find()
  await createVersion(scene, '1.1.0', PATIENT_SERVER)
  await deploy(scene, '1.1.0')
  const steps = stepsOf(page, '1.1.0')
  await steps.filter({ hasText: 'The config is checked. (done)' }).waitFor()
  await steps.filter({ hasText: /The build is stored\. \(done\).* kB|The build is stored\. \(done\).* B/ }).waitFor()
  await steps.filter({ hasText: 'A runner unpacks the build and starts the first server. (not yet)' }).waitFor()
  await steps.filter({ hasText: 'The first server becomes ready. (not yet)' }).waitFor()
  await steps.filter({ hasText: 'older versions end. (now)' }).getByText('1 lobby with 1 player left.').waitFor()

  const finding = game.find()
  await steps
    .filter({ hasText: /A runner unpacked the build and started a server\. \(done\).* after its request/ })
    .waitFor()
  await steps.filter({ hasText: 'The first server becomes ready. (now)' }).waitFor()
  const { port } = await until('the server to listen', async () => {
    const rows = await platform.ctx.db
      .selectFrom('lobby_runs')
      .select('ports')
      .where('lobby_id', '<>', old.lobby.lobby_id)
      .execute()
    return rows[0]?.ports.game
  })
  await fetch(`http://127.0.0.1:${port}/`)
  await finding
  await steps.filter({ hasText: /The first server is ready\. \(done\).* after the deploy/ }).waitFor()
  await steps.filter({ hasText: 'older versions end. (now)' }).getByRole('link', { name: 'Show them' }).click()
  await page
    .getByRole('table', { name: 'Running lobbies' })
    .getByRole('link', { name: old.lobby.lobby_id.slice(-8) })
    .waitFor()
  assert.equal(await page.getByRole('table', { name: 'Running lobbies' }).getByRole('row').count(), 2)
  await page.goBack()
  const params = { game_id: game.game_id, lobby_id: old.lobby.lobby_id }
  await platform.client.call(deleteMatchmakerLobby, { params })
  await steps.filter({ hasText: 'No lobby of an older version runs. (done)' }).waitFor()
  await page.getByRole('region', { name: 'Deploy of 1.1.0' }).getByText('complete', { exact: true }).waitFor()
}

async function followFailure(scene: Scene): Promise<void> {
  const {
    game,
    view: { page },
  } = scene
  await createVersion(scene, '1.2.0', CRASHING_SERVER)
  await deploy(scene, '1.2.0')
  const steps = stepsOf(page, '1.2.0')
  await steps.filter({ hasText: 'The first server becomes ready. (not yet)' }).waitFor()
  await assert.rejects(game.find())
  const step = steps.filter({ hasText: 'The first server becomes ready. (failed)' })
  await step.getByText(/^\d+ servers? failed\. The last: exit code 3\.$/).waitFor()
  await step.getByRole('link', { name: 'Show the failed lobbies' }).click()
  await page.waitForURL(/\/lobbies\/history\?outcome=failed$/)
  await page.getByRole('table', { name: 'History of lobbies' }).getByText('failed', { exact: true }).first().waitFor()
}

async function fitLongName({ hub, game, view: { page } }: Scene): Promise<void> {
  const { game_id, namespace_id, version_id } = game
  const params = { game_id, version_id }
  await hub.platform.client.call(renameGameVersion, { params, body: { display_name: LONG_NAME } })
  await page.setViewportSize(PHONE)
  await page.goto(`${hub.url}/games/${game_id}/namespaces/${namespace_id}`)
  const rows = page.getByRole('table', { name: 'Deploys' }).getByRole('row')
  await rows.filter({ hasText: LONG_NAME }).getByRole('button', { name: 'Roll back', exact: true }).click()
  const submit = page.getByRole('dialog').getByRole('button', { name: `Roll back to ${LONG_NAME}` })
  await submit.waitFor()
  const box = await submit.boundingBox()
  assert.ok(box !== null && box.x >= 0 && box.x + box.width <= PHONE.width, JSON.stringify(box))
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= PHONE.width)
}
