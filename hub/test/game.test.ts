import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import {
  createGameNamespaceTokenPublic,
  createGameVersion,
  getGameById,
  getGameNamespaceById,
  getGameVersionById,
  listGameBuilds,
  listGameCdnSites,
  listGameCloudTokens,
  updateGameNamespaceVersion,
} from '@musterhost/contract'
import { startMailServer } from '../../server/test/identity/mail-server.ts'
import { logIn } from '../../server/test/identity/people.ts'
import { tarGz } from '../../server/test/support/builds.ts'
import { pngOf } from '../../server/test/support/images.ts'
import { until } from '../../server/test/support/until.ts'
import { joined } from './people.ts'
import { openHub, openView, signInAsAdmin, useSession } from './steps.ts'

/** The editor explains what is below the pointer after 0.3 seconds. */
const HOVER_MS_MAX = 2_000
/** Versions of one page of the list. */
const VERSIONS_PAGE = 100

test('the pages of a game', async (t) => {
  const mail = await startMailServer(t)
  const hub = await openHub(t, { env: { MUSTER_SMTP_URL: mail.url, MUSTER_ACCESS: 'public' } })
  if (hub === null) return
  const { platform } = hub
  const { client } = platform
  const game = await platform.game()
  const params = { game_id: game.game_id, namespace_id: game.namespace_id }
  const address = `${hub.url}/games/${game.game_id}`
  const namespace_address = `${address}/namespaces/${game.namespace_id}`
  const { version } = await client.call(getGameVersionById, {
    params: { game_id: game.game_id, version_id: game.version_id },
  })
  const second = await client.call(createGameVersion, {
    params: { game_id: game.game_id },
    body: {
      display_name: 'second <b>bold</b>',
      config: { ...version.config, matchmaker: { ...version.config.matchmaker!, max_players: 7 } },
    },
  })
  await client.call(updateGameNamespaceVersion, { params, body: { version_id: second.version_id, message: 'Try it' } })
  const deployed = async () => (await client.call(getGameNamespaceById, { params })).namespace.version_id

  await t.test('a version is rolled back: the dialog shows what changes, and its command', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(namespace_address)
    await page.getByRole('button', { name: 'Roll back', exact: true }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('~ matchmaker.max_players').or(dialog.getByText('matchmaker.max_players')).first().waitFor()
    await dialog.getByRole('button', { name: 'Copy as …' }).click()
    await page.getByText('muster rollback').waitFor()
    await page.keyboard.press('Escape')
    assert.match(await dialog.getByLabel('Message').inputValue(), /^Rollback from /)
    await dialog.getByLabel('Message').fill('Back')
    await dialog.getByRole('button', { name: /^Roll back to/ }).click()
    await page.getByText(/runs .* from now on/).waitFor()
    assert.equal(await deployed(), game.version_id)
    await page.getByRole('cell', { name: 'Back', exact: true }).waitFor()
    const before = page.getByRole('table', { name: 'Deploys' }).getByRole('row').filter({ hasText: 'Try it' })
    await before.getByText('rolled back', { exact: true }).waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a version is rolled out to a part of the clients, beside the deployed one, and promoted', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(namespace_address)
    await page.getByRole('button', { name: 'Deploy a version' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Version').selectOption(second.version_id)
    await dialog.getByLabel('Clients').selectOption('10 %')
    await dialog.getByLabel('Start a lobby first').uncheck()
    await dialog.getByRole('button', { name: /^Roll out second/ }).click()
    const rows = page.getByRole('table', { name: 'Versions of the roll-out' }).getByRole('row')
    await rows.filter({ hasText: '10 %' }).filter({ hasText: 'second' }).waitFor()
    await rows.filter({ hasText: '90 %' }).waitFor()
    assert.equal(await deployed(), game.version_id)
    await page.getByRole('button', { name: 'Promote' }).click()
    await dialog.getByText('All clients get second').waitFor()
    await dialog.getByRole('button', { name: 'Promote' }).click()
    await rows.first().waitFor({ state: 'detached' })
    assert.equal(await deployed(), second.version_id)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('markup in a name stays text', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/versions`)
    await page.getByRole('link', { name: 'second <b>bold</b>' }).waitFor()
    assert.equal(await page.locator('td b').count(), 0)
    await view.context.close()
  })

  await t.test('the editor names the line of a mistake, and creates the version', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/versions/new?from=${second.version_id}`)
    const editor = page.getByRole('textbox', { name: /^Config, as JSON/ })
    await editor.getByText('"max_players"').first().waitFor()
    const config = { ...version.config, matchmaker: { ...version.config.matchmaker!, max_player: 3 } }
    await editor.fill(JSON.stringify(config, null, 2))
    await page.locator('.cm-lint-marker-error').first().waitFor()
    // A check that ends under the pointer hides the explanation until the pointer moves again.
    await until('the mistake is explained', async () => {
      await page.mouse.move(0, 0)
      await page.locator('.cm-lintRange-error').first().hover()
      const explanation = page.getByText(/matchmaker\.max_player: /)
      return explanation.waitFor({ timeout: HOVER_MS_MAX }).then(
        () => true,
        () => false,
      )
    })
    await editor.fill(JSON.stringify({ ...version.config }, null, 2))
    await page.getByLabel('Name of the version').fill('third')
    await page.getByRole('button', { name: 'Create the version' }).click()
    await page.getByRole('heading', { level: 1, name: 'third' }).waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a dropped picture is the logo, and is shown by the hub', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/settings`)
    await page.getByText('The game has no logo.').waitFor()
    const picture = { name: 'logo.png', mimeType: 'image/png', buffer: pngOf(64, 32) }
    await page.getByLabel('Drop the logo here').setInputFiles(picture)
    const logo = page.getByRole('img', { name: 'The logo' })
    await logo.waitFor()
    await until('the picture is drawn', () => logo.evaluate((image) => (image as HTMLImageElement).naturalWidth === 64))
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a dropped folder becomes a site, and one archive a build', async (step) => {
    const folder = await mkdtemp(join(tmpdir(), 'muster-hub-'))
    step.after(() => rm(folder, { recursive: true, force: true }))
    await mkdir(join(folder, 'site/assets'), { recursive: true })
    await writeFile(join(folder, 'site/index.html'), '<!doctype html><title>Game</title>')
    await writeFile(join(folder, 'site/assets/game.js'), 'export const speed = 1\n')
    await writeFile(join(folder, 'server.tar.gz'), await tarGz({ 'server.mjs': '// a server\n' }))
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/sites`)
    await page.getByLabel(/^Drop the folder/).setInputFiles(join(folder, 'site'))
    await page.getByText('The site is uploaded.').waitFor()
    const { sites } = await client.call(listGameCdnSites, { params: { game_id: game.game_id } })
    assert.equal(sites.filter(({ complete }) => complete).length, 1)
    await page.goto(`${address}/builds`)
    await page.getByLabel(/^Drop the archive/).setInputFiles(join(folder, 'server.tar.gz'))
    await page.getByText('The build is uploaded.').waitFor()
    await page.getByRole('cell', { name: 'server.tar.gz', exact: true }).waitFor()
    const { builds } = await client.call(listGameBuilds, { params: { game_id: game.game_id } })
    assert.equal(builds.find(({ display_name }) => display_name === 'server.tar.gz')?.complete, true)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('an upload that was interrupted continues, and sends only what is missing', async (step) => {
    const folder = await mkdtemp(join(tmpdir(), 'muster-hub-'))
    step.after(() => rm(folder, { recursive: true, force: true }))
    await mkdir(join(folder, 'site'))
    for (const name of ['index.html', 'a.txt', 'b.txt', 'c.txt'])
      await writeFile(join(folder, 'site', name), `this is ${name}`)
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/sites`)
    let refused_at = 3
    await page.route(/\/objects\//, (route) =>
      --refused_at === 0 ? route.fulfill({ status: 403, body: '{}' }) : route.continue(),
    )
    await page.getByLabel(/^Drop the folder/).setInputFiles(join(folder, 'site'))
    await page.getByRole('button', { name: 'Continue', exact: true }).waitFor()
    await page.unroute(/\/objects\//)
    let sent = 0
    page.on('request', (request) => {
      if (request.method() === 'PUT') sent++
    })
    await page.reload()
    await page
      .getByRole('button', { name: /^Continue / })
      .first()
      .click()
    await page.getByText('Choose the same folder again').waitFor()
    await page.getByLabel(/^Drop the folder/).setInputFiles(join(folder, 'site'))
    await page.getByText('The site is uploaded.').waitFor()
    assert.ok(sent > 0 && sent < 4, `${sent} of 4 files were sent again`)
    await view.context.close()
  })

  await t.test('what a proxy or a bucket refuses is named as its refusal, with the remedy', async (step) => {
    const folder = await mkdtemp(join(tmpdir(), 'muster-hub-'))
    step.after(() => rm(folder, { recursive: true, force: true }))
    await mkdir(join(folder, 'site'))
    await writeFile(join(folder, 'site/index.html'), 'a site that does not arrive')
    const view = await openView(hub, { bypassCSP: true })
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/sites`)
    await page.route(/\/objects\//, (route) => route.fulfill({ status: 413, body: '<html>nginx</html>' }))
    await page.getByLabel(/^Drop the folder/).setInputFiles(join(folder, 'site'))
    const { host } = new URL(hub.url)
    const refusal = `Something in front of the platform at ${host} returned status 413, not Muster.`
    await page.getByText(`${refusal} Its operator must allow longer bodies (nginx: client_max_body_size 0).`).waitFor()
    await page.unroute(/\/objects\//)

    // A bucket of another host, which has no rule for the page.
    const bucket = 'http://bucket.test'
    await page.route(`${bucket}/**`, (route) => route.abort())
    await page.route(/\/cdn\/sites$/, async (route) => {
      if (route.request().method() !== 'POST') return route.continue()
      const response = await route.fetch()
      const text = (await response.text()).replaceAll(/"url":"http:\/\/[^/"]+/g, `"url":"${bucket}`)
      await route.fulfill({ response, body: text })
    })
    await page.clock.install()
    await page.goto(`${address}/sites`)
    await page.getByLabel(/^Drop the folder/).setInputFiles(join(folder, 'site'))
    const rule = page.getByText(`The file could not be sent to ${bucket}. It may be unreachable, or the CORS rules`)
    await until('the bucket to be named', async () => {
      await page.clock.fastForward(5_000)
      return rule.isVisible()
    })
    await view.context.close()
  })

  await t.test('a cloud token is shown once, listed and revoked', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/tokens`)
    const row = page.getByRole('table', { name: 'cloud tokens' }).getByRole('row').filter({ hasText: 'the robot' })
    await page.getByLabel('Name of the new cloud token').fill('the robot')
    await page.getByRole('button', { name: 'Create a cloud token' }).click()
    const token = (await page.getByRole('dialog').locator('pre').textContent()) ?? ''
    assert.equal((await platform.as(token).call(getGameById, { params })).game.game_id, game.game_id)
    await page.keyboard.press('Escape')
    const titles = await page.getByRole('table', { name: 'cloud tokens' }).getByRole('columnheader').allTextContents()
    assert.deepEqual(titles.slice(1, 5), ['Name', 'Created by', 'Created', 'Last used'])
    const by = await until('the use of the token to be shown', async () => {
      await page.reload()
      await row.first().waitFor()
      const [, , creator, , used] = await row.getByRole('cell').allTextContents()
      return used !== 'never' && creator
    })
    assert.equal(by, 'test', 'the name of the operator’s token')
    await page.getByRole('button', { name: /^Revoke the cloud token/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('revoked', { exact: true }).waitFor()
    const { tokens } = await client.call(listGameCloudTokens, { params: { game_id: game.game_id } })
    assert.notEqual(tokens[0]?.revoke_ts, undefined)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a limit is changed, and a wrong one is refused at its field', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${namespace_address}/settings`)
    await page.getByLabel('Lobbies at a time').fill('17')
    await page.getByRole('button', { name: 'Change the limits' }).click()
    await page.getByText('The limits are changed.').waitFor()
    const { namespace } = await client.call(getGameNamespaceById, { params })
    assert.equal(namespace.config.matchmaker.lobby_count_max, 17)
    await page.getByRole('textbox', { name: 'Domain' }).fill('localhost')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('alert').waitFor()
    await page.getByRole('textbox', { name: 'Domain' }).fill('play.example.com')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByText('CNAME').waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a deletion asks for the name', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(address)
    await page.getByRole('button', { name: 'New namespace' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name', { exact: true }).fill('Beta')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Beta' }).waitFor()
    await page.goto(`${page.url()}/settings`)
    await page.getByRole('button', { name: 'Delete the namespace' }).click()
    const confirm = dialog.getByRole('button', { name: 'Delete the namespace' })
    assert.equal(await confirm.isDisabled(), true)
    await dialog.getByLabel('Type “beta” to confirm').fill('beta')
    await confirm.click()
    await page.waitForURL(address)
    const { game: now } = await client.call(getGameById, { params })
    assert.ok(!now.namespaces.some(({ name_id }) => name_id === 'beta'))
    await view.context.close()
  })

  await t.test('the list of versions goes on, and every version can be compared', async () => {
    for (let number = 1; number <= VERSIONS_PAGE; number++) {
      const body = { display_name: `more ${number}`, config: version.config }
      await client.call(createGameVersion, { params: { game_id: game.game_id }, body })
    }
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${address}/versions`)
    await page.getByText(`${VERSIONS_PAGE} versions so far`).waitFor()
    const oldest = page.getByRole('link', { name: version.display_name, exact: true })
    assert.equal(await oldest.count(), 0)
    await page.getByRole('button', { name: 'Load more' }).click()
    await oldest.waitFor()
    assert.equal(await page.getByRole('button', { name: 'Load more' }).count(), 0)
    await page.getByLabel('From').selectOption(version.version_id)
    await page.waitForURL(/from=/)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a viewer sees the pages and no button that changes something; a stranger sees nothing', async () => {
    await client.call(createGameNamespaceTokenPublic, { params })
    const viewer = await joined(platform, mail, { group_id: game.group_id, role: 'viewer', email: 'v@example.com' })
    const view = await openView(hub)
    const { page } = view
    await useSession(hub, view, viewer.cookie)
    for (const path of ['', '/versions', '/builds', '/sites', '/tokens', '/settings']) {
      await page.goto(`${address}${path}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      const buttons = page
        .getByRole('main')
        .getByRole('button', { name: /deploy|roll back|create |delete|revoke|rename|new|choose/i })
      assert.deepEqual(await buttons.allTextContents(), [], path)
    }
    await page.goto(namespace_address)
    await page.getByRole('cell', { name: 'Back', exact: true }).waitFor()
    assert.equal(await page.getByRole('button', { name: /deploy a version|roll back/i }).count(), 0)
    assert.deepEqual(view.faults, [])
    await view.context.close()

    const stranger = await logIn(platform, mail, 's@example.com')
    const other = await openView(hub)
    await useSession(hub, other, stranger.cookie)
    for (const path of [address, namespace_address, `${hub.url}/groups/${game.group_id}`]) {
      await other.page.goto(path)
      await other.page.getByRole('alert').waitFor()
      const title = await other.page.getByRole('heading', { level: 1 }).textContent()
      assert.match(title ?? '', /^(Game|Namespace|Group)$/, 'the page names nothing')
    }
    await other.context.close()
  })

  await t.test('a person is invited, joins, and is removed', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}/groups/${game.group_id}`)
    await page.getByRole('button', { name: 'Invite people' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Create an invite' }).click()
    const link = (await dialog.locator('pre').textContent()) ?? ''
    const guest = await logIn(platform, mail, 'guest@example.com')
    const other = await openView(hub)
    await useSession(hub, other, guest.cookie)
    await other.page.goto(link)
    await other.page.getByRole('button', { name: 'Join the group' }).click()
    await other.page.getByText('You are a member now.').waitFor()
    await other.context.close()
    await page.reload()
    const row = page.getByRole('row').filter({ hasText: 'guest@example.com' })
    await row.getByRole('button', { name: 'Remove' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await page.getByText(/ is removed\.$/).waitFor()
    await row.waitFor({ state: 'detached' })
    await view.context.close()
  })
})
