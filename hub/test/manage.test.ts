// What a team does with its game and its group in the hub, beside deploys: game.test.ts has those.
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import {
  getGameNamespaceById,
  getGroupMembers,
  listGameCdnSites,
  listGameSecrets,
  listGameVersions,
} from '@musterhost/contract'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { type MailServer, startMailServer } from '../../server/test/identity/mail-server.ts'
import type { TestGame } from '../../server/test/support/platform.ts'
import { failureOf } from '../../server/test/support/refusal.ts'
import { until } from '../../server/test/support/until.ts'
import { joined } from './people.ts'
import { type OpenHub, openHub, openView, signInAsAdmin, type View } from './steps.ts'

const MODES = { default: { max_players: 4, idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } }
/** Of no password: only its form is checked. */
const HASH = `$2b$10$${'a'.repeat(53)}`
type Scene = { hub: OpenHub; mail: MailServer; game: TestGame; url: string }

async function openPage({ hub, url }: Scene, path: string): Promise<View> {
  const view = await openView(hub)
  await signInAsAdmin(hub, view)
  await view.page.goto(url + path)
  return view
}

async function close(view: View): Promise<void> {
  assert.deepEqual(view.faults, [])
  await view.context.close()
}

test('a team manages its game', async (t) => {
  const mail = await startMailServer(t)
  const hub = await openHub(t, { env: { MUSTER_SMTP_URL: mail.url, MUSTER_ACCESS: 'public' } })
  if (hub === null) return
  hub.platform.playServers()
  const game = await hub.platform.game({ matchmaker: { game_modes: MODES } })
  const scene: Scene = { hub, mail, game, url: `${hub.url}/games/${game.game_id}` }

  await t.test('the difference of two versions is in the address, and a version is deployed from its page', () =>
    compareAndDeploy(scene),
  )
  await t.test('a version that drains takes no new players', () => drain(scene))
  await t.test('a version is renamed, and deleted by its name', () => renameAndDelete(scene))
  await t.test('a site asks for a name and a password', () => requirePassword(scene))
  await t.test('a folder that is dropped on the page becomes a site', (step) => dropFolder(step, scene))
  await t.test('the config editor completes the names of members, also those of a rule of matching', () =>
    completeConfig(scene),
  )
  await t.test('a secret is set, replaced and removed, and its value is on no page', () => manageSecrets(scene))
  await t.test('roles are changed, and the group gets another owner', () => changeRoles(scene))
})

const namespacePath = ({ game }: Scene, tab = ''): string => `/namespaces/${game.namespace_id}${tab}`

async function deployed({ hub, game }: Scene): Promise<string> {
  const params = { game_id: game.game_id, namespace_id: game.namespace_id }
  return (await hub.platform.client.call(getGameNamespaceById, { params })).namespace.version_id
}

async function versionNames({ hub, game }: Scene): Promise<Map<string, string>> {
  const { versions } = await hub.platform.client.call(listGameVersions, { params: { game_id: game.game_id } })
  return new Map(versions.map(({ version_id, display_name }) => [version_id, display_name]))
}

async function compareAndDeploy(scene: Scene): Promise<void> {
  const { hub, game } = scene
  const second_id = await hub.platform.deploy(game, { default: { ...MODES.default, max_players: 7 } })
  const view = await openPage(scene, '/versions')
  const { page } = view
  await page.getByLabel('From').selectOption(second_id)
  await page.getByLabel('To', { exact: true }).selectOption(game.version_id)
  await page.waitForURL(new RegExp(`from=${second_id}&to=${game.version_id}`))
  await page
    .getByRole('main')
    .getByText(/max_players: 7 → 4|max_players.*7.*4/)
    .waitFor()
  await page.reload()
  await page
    .getByRole('main')
    .getByText(/max_players: 7 → 4|max_players.*7.*4/)
    .waitFor()
  await page.getByRole('table', { name: 'Versions' }).getByRole('link', { name: '1.0.0' }).click()
  await page.getByRole('button', { name: 'Deploy to Production' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Message').fill('From its page')
  await dialog.getByRole('button', { name: 'Deploy 1.0.0' }).click()
  await page.getByText('Production runs 1.0.0 from now on.').waitFor()
  assert.equal(await deployed(scene), game.version_id)
  await close(view)
}

async function drain(scene: Scene): Promise<void> {
  const { hub, game } = scene
  const { lobby } = await game.find()
  const other_id = await hub.platform.deploy(game, { default: { ...MODES.default, max_players: 5 } })
  await game.join(lobby.lobby_id)
  const view = await openPage(scene, namespacePath(scene))
  const { page } = view
  const row = page.getByRole('table', { name: 'Deploys' }).getByRole('row').filter({ hasText: 'From its page' })
  await row.getByRole('button', { name: 'Drain' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Drain', exact: true }).click()
  await page.getByText('1.0.0 drains in Production.').waitFor()
  const { code } = await failureOf(game.join(lobby.lobby_id))
  assert.equal(code, 'MATCHMAKER_VERSION_DRAINING')
  assert.equal(await deployed(scene), other_id)
  await close(view)
}

async function renameAndDelete(scene: Scene): Promise<void> {
  const running_id = await deployed(scene)
  const { game } = scene
  const unused = [...(await versionNames(scene)).keys()].find((id) => id !== running_id && id !== game.version_id)
  assert.ok(unused !== undefined)
  const view = await openPage(scene, `/versions/${unused}`)
  const { page } = view
  await page.getByRole('button', { name: 'Rename' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name', { exact: true }).fill('Old rules')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Old rules' }).waitFor()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  const confirm = dialog.getByRole('button', { name: /^Delete/ })
  await dialog.getByRole('textbox').waitFor()
  assert.equal(await confirm.isDisabled(), true)
  await dialog.getByRole('textbox').fill('Old rules')
  await confirm.click()
  await page.waitForURL(`${scene.url}/versions`)
  assert.equal((await versionNames(scene)).has(unused), false)
  await close(view)
}

async function requirePassword(scene: Scene): Promise<void> {
  const { hub, game } = scene
  const params = { game_id: game.game_id, namespace_id: game.namespace_id }
  const view = await openPage(scene, namespacePath(scene, '/settings'))
  const { page } = view
  const read = async () => (await hub.platform.client.call(getGameNamespaceById, { params })).namespace.config.cdn
  await page.getByLabel('Visitors need a name and a password').click()
  await page.getByText('The access to the site is changed.').waitFor()
  await page.getByRole('region', { name: 'Access to the site' }).getByRole('textbox', { name: 'Name' }).fill('tester')
  await page.getByLabel('bcrypt hash of the password').fill('secret')
  await page.getByRole('button', { name: 'Add or change the user' }).click()
  await page.getByRole('alert').waitFor()
  await page.getByLabel('bcrypt hash of the password').fill(HASH)
  await page.getByRole('button', { name: 'Add or change the user' }).click()
  await page.getByText('tester may open the site.').waitFor()
  await page.getByRole('button', { name: 'Remove the user tester' }).waitFor()
  const { auth_type, auth_user_list } = await read()
  assert.deepEqual([auth_type, auth_user_list.map(({ user }) => user)], ['basic', ['tester']])
  await page.getByRole('button', { name: 'Remove the user tester' }).click()
  await page.getByText('The user is removed.').waitFor()
  await page.getByLabel('Visitors need a name and a password').click()
  await until('the site to be open again', async () => (await read()).auth_type === 'none')
  await close(view)
}

async function temporaryFolder(step: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-hub-'))
  step.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** The browser itself drops the folder, as when a person lets it go over the page. */
async function dropFolder(step: TestContext, scene: Scene): Promise<void> {
  const { hub, game } = scene
  const folder = join(await temporaryFolder(step), 'site')
  await mkdir(join(folder, 'assets'), { recursive: true })
  await writeFile(join(folder, 'index.html'), '<!doctype html><title>Game</title>')
  await writeFile(join(folder, 'assets/game.js'), 'export const speed = 1\n')
  const view = await openPage(scene, '/sites')
  const { page, context } = view
  const box = await page.getByText(/^Drop the folder/).boundingBox()
  assert.ok(box !== null)
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
  const cdp = await context.newCDPSession(page)
  const data = { items: [], files: [folder], dragOperationsMask: 1 }
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
    await cdp.send('Input.dispatchDragEvent', { type, x, y, data })
  await page.getByText('The site is uploaded.').waitFor()
  const { sites } = await hub.platform.client.call(listGameCdnSites, { params: { game_id: game.game_id } })
  assert.equal(sites.filter(({ complete }) => complete).length, 1)
  await close(view)
}

async function completeConfig(scene: Scene): Promise<void> {
  const view = await openPage(scene, `/versions/new?from=${scene.game.version_id}`)
  const { page } = view
  const editor = page.getByRole('textbox', { name: /^Config, as JSON/ })
  await editor.getByText('"max_players"').first().waitFor()
  await editor.fill('{"matchmaker": {}}')
  await editor.press('Control+End')
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.type('"game_mo')
  const option = page.locator('.cm-tooltip-autocomplete').getByRole('option', { name: '"game_modes"' })
  await option.waitFor()
  await option.click()
  await editor.getByText('"game_modes"').waitFor()
  const [before, after] = ['{"matchmaker": {"game_modes": {"duel": {"matching": {"rules": [{', '}]}}}}}']
  await editor.fill(`${before}${after}`)
  await editor.press('Control+End')
  for (const _ of after!) await page.keyboard.press('ArrowLeft')
  await page.keyboard.type('"nea')
  await page.locator('.cm-tooltip-autocomplete').getByRole('option', { name: '"near"' }).click()
  await editor.getByText('"near": ""').waitFor()
  await close(view)
}

async function manageSecrets(scene: Scene): Promise<void> {
  const { hub, game } = scene
  const view = await openPage(scene, '/secrets')
  const { page } = view
  const secrets = async () => {
    const list = await hub.platform.client.call(listGameSecrets, { params: { game_id: game.game_id } })
    return list.secrets.map(({ name, namespace_id }) => [name, namespace_id])
  }
  await page.getByText('The game has no secret.').waitFor()
  await page.getByRole('button', { name: 'Set a secret' }).click()
  const dialog = page.getByRole('dialog', { name: 'Set a secret' })
  await dialog.getByLabel('Name', { exact: true }).fill('PORT')
  await dialog.getByLabel('Value').fill('first planted value\n')
  await dialog.getByRole('button', { name: 'Set', exact: true }).click()
  await dialog.getByText('Choose another name, for example GAME_PORT.').waitFor()
  await dialog.getByLabel('Name', { exact: true }).fill('PAYMENT_KEY')
  await dialog.getByLabel('Namespace', { exact: true }).selectOption('Production')
  await dialog.getByRole('button', { name: 'Copy as …' }).click()
  const command = page.getByRole('dialog', { name: /^As a command/ })
  await command.getByText('muster secrets set PAYMENT_KEY --namespace prod < FILE').waitFor()
  assert.equal(await command.getByText('planted').count(), 0)
  await command.getByRole('button', { name: 'Close' }).click()
  await dialog.getByRole('button', { name: 'Set', exact: true }).click()
  await page.getByText('PAYMENT_KEY is set.').waitFor()
  assert.deepEqual(await secrets(), [['PAYMENT_KEY', game.namespace_id]])
  const row = page.getByRole('table', { name: 'Secrets' }).getByRole('row').filter({ hasText: 'PAYMENT_KEY' })
  await row.getByText('Production').waitFor()
  await row.getByText('test', { exact: true }).waitFor()
  await row.getByRole('button', { name: /^Replace/ }).click()
  const replace = page.getByRole('dialog', { name: 'Replace the value of PAYMENT_KEY' })
  assert.equal(await replace.getByLabel('Value').inputValue(), '')
  await replace.getByLabel('Value').fill('second planted value')
  await replace.getByRole('button', { name: 'Replace', exact: true }).click()
  await replace.waitFor({ state: 'detached' })
  assert.ok(!(await page.content()).includes('planted'))
  await row.getByRole('button', { name: /^Remove/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByText('PAYMENT_KEY is removed.').waitFor()
  await page.getByText('The game has no secret.').waitFor()
  assert.deepEqual(await secrets(), [])
  await close(view)
}

async function changeRoles(scene: Scene): Promise<void> {
  const { hub, mail, game } = scene
  const { platform } = hub
  const { group_id } = game
  const params = { group_id }
  const ada = await joined(platform, mail, { group_id, role: 'viewer', email: 'ada@example.com' })
  const roleOf = async () => {
    const { members } = await platform.client.call(getGroupMembers, { params })
    return members.find(({ identity }) => identity.identity_id === ada.user_id)?.role
  }
  const view = await openView(hub)
  const { page } = view
  await signInAsAdmin(hub, view)
  await page.goto(`${hub.url}/groups/${group_id}`)
  const row = page.getByRole('row').filter({ hasText: 'ada@example.com' })
  await row.getByRole('combobox').selectOption('developer')
  await page.getByText('The role is changed.').waitFor()
  assert.equal(await roleOf(), 'developer')
  await row.getByRole('button', { name: 'Make owner' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Transfer the group' }).click()
  await page.getByText(/ owns the group\.$/).waitFor()
  assert.equal(await roleOf(), 'owner')
  await close(view)
}
