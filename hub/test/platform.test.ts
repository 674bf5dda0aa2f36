import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { createSignInLink, endOtherSessions, listAdminRegions } from '@musterhost/contract'
import { backup, verify } from '../../server/src/backup/command.ts'
import { LONG_MS } from '../../server/test/http/steps.ts'
import { startMailServer } from '../../server/test/identity/mail-server.ts'
import { logIn } from '../../server/test/identity/people.ts'
import { until } from '../../server/test/support/until.ts'
import { openHub, openView, signInAsAdmin, useSession } from './steps.ts'

/** As many as the group of the test has. */
const GAMES_MAX = 1
const MODES = { default: { idle_grace_ms: LONG_MS, player_deadline_ms: LONG_MS } }

test('the pages of the operator', async (t) => {
  const mail = await startMailServer(t)
  const env = { MUSTER_SMTP_URL: mail.url, MUSTER_RATE_LIMIT_CLOUD: '0', MUSTER_QUOTA_GAMES: String(GAMES_MAX) }
  const hub = await openHub(t, { env })
  if (hub === null) return
  const { platform } = hub
  platform.playServers()
  const game = await platform.game({ matchmaker: { game_modes: MODES } })
  await game.find()
  const person = await logIn(platform, mail, 'ada@example.com')

  await t.test('the checks of muster doctor run from the page, what is wrong first', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}/platform`)
    await page.getByRole('cell', { name: 'matchmaker', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Run the checks' }).click()
    const list = page.getByRole('region', { name: 'Checks' }).getByRole('listitem')
    await list.filter({ hasText: 'database' }).first().waitFor()
    const order = ['failed', 'warning', 'ok', 'skipped']
    const found = await list
      .locator('span')
      .first()
      .evaluateAll((marks) => marks.map((mark) => mark.textContent))
    assert.deepEqual(
      found,
      [...found].sort((a, b) => order.indexOf(a) - order.indexOf(b)),
    )
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('groups, people and settings are found by a part of their names', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}/platform/people`)
    await page.getByLabel('Search by name or e-mail address').fill('ada@')
    await page.getByRole('cell', { name: 'ada@example.com' }).waitFor()
    await page.getByText('1 person', { exact: true }).waitFor()
    assert.match(page.url(), /\?text=ada/, 'a link shows the same list')
    await page.goto(`${hub.url}/platform/groups?text=no+such+group`)
    await page.getByText('No group has such a name.').waitFor()
    await page.goto(`${hub.url}/platform/settings?text=MUSTER_SMTP_URL`)
    await page.getByRole('cell', { name: 'MUSTER_SMTP_URL' }).waitFor()
    assert.equal(await page.getByText(mail.url).count(), 0, 'the value of a secret is not shown')
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('regions show their tiers and use, jobs their last run', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    const { lobby_count } = await until('the lobby to run', async () => {
      const { regions } = await platform.client.call(listAdminRegions, {})
      return regions.find((region) => region.region_name_id === 'local' && region.lobby_count > 0)
    })
    await page.goto(`${hub.url}/platform/regions`)
    const region = page.getByRole('region', { name: 'Local (local)' })
    await region.getByText(`${lobby_count} lobby with 1 player`, { exact: true }).waitFor()
    const tier = region.getByRole('table', { name: 'Tiers of Local' }).getByRole('row').filter({ hasText: 'default' })
    await tier.getByRole('cell', { name: String(lobby_count), exact: true }).waitFor()
    await page.goto(`${hub.url}/platform/jobs`)
    const jobs = page.getByRole('table', { name: 'Jobs' }).getByRole('row')
    await jobs.filter({ hasText: 'succeeded' }).first().waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a missing backup is a warning, and a new one is listed with the check of the data', async (step) => {
    const folder = join(await mkdtemp(join(tmpdir(), 'muster-hub-')), 'first')
    step.after(() => rm(dirname(folder), { recursive: true, force: true }))
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}/platform/backups`)
    await page.getByText('There is no backup. A lost disk would lose everything.').waitFor()
    const env = { MUSTER_DATA: platform.data_dir, DATABASE_URL: platform.ctx.config.database_url! }
    await backup(env, folder)
    await verify(env, null)
    await page.reload()
    await page.getByRole('cell', { name: folder, exact: true }).waitFor()
    await page.getByRole('table', { name: 'Backups' }).getByText('whole', { exact: true }).waitFor()
    await page.getByRole('table', { name: 'Runs of muster verify' }).getByText('sound', { exact: true }).waitFor()
    assert.equal(await page.getByText('There is no backup.').count(), 0)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a quota that is nearly used shows at its group, and on the home page with the way there', async () => {
    const { group_id } = game
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    const problem = page.getByRole('listitem').filter({ hasText: `uses 1 of ${GAMES_MAX} games` })
    await problem.getByRole('link', { name: 'Show the quotas' }).click()
    await page.waitForURL(`${hub.url}/groups/${group_id}`)
    await page.getByRole('img', { name: 'games: 100 % used' }).waitFor()
    await page.goto(`${hub.url}/platform/groups`)
    const row = page.getByRole('table', { name: 'Groups' }).getByRole('row').filter({ hasText: 'Developers' })
    await row.getByText(`1 of ${GAMES_MAX}`).waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a person who is no administrator is refused', async () => {
    const view = await openView(hub)
    const { page } = view
    await useSession(hub, view, person.cookie)
    const asked: string[] = []
    page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    await page.goto(`${hub.url}/platform/settings`)
    await page.getByText('These pages are for administrators').waitFor()
    assert.deepEqual(
      asked.filter((path) => path.startsWith('/admin/')),
      [],
    )
    await view.context.close()
  })

  await t.test('a sign-in link works once, after a click', async () => {
    const { url } = await platform.client.call(createSignInLink, {})
    const view = await openView(hub)
    await view.page.goto(url)
    await view.page.getByRole('button', { name: 'Sign in with the link' }).waitFor()
    await view.page.reload()
    await view.page.getByRole('button', { name: 'Sign in with the link' }).click()
    await view.page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
    assert.deepEqual(view.faults, [])
    const other = await openView(hub)
    await other.page.goto(url)
    await other.page.getByRole('button', { name: 'Sign in with the link' }).click()
    await other.page.getByRole('alert').waitFor()
    await other.context.close()
    await view.context.close()
  })

  await t.test('a session is listed and ended, and its browser must sign in again', async () => {
    const second = await logIn(platform, mail, 'ada@example.com')
    await second.client.call(endOtherSessions, {})
    const ended = await openView(hub)
    const view = await openView(hub)
    const third = await logIn(platform, mail, 'ada@example.com')
    await useSession(hub, ended, third.cookie)
    await useSession(hub, view, second.cookie)
    await ended.page.goto(`${hub.url}/account`)
    await ended.page.getByRole('heading', { level: 1 }).waitFor()
    await view.page.goto(`${hub.url}/account`)
    await view.page.getByRole('button', { name: 'End', exact: true }).click()
    await view.page.getByText('The session is ended.').waitFor()
    await ended.page.reload()
    await ended.page.waitForURL(/\/sign-in/)
    assert.deepEqual(view.faults, [])
    await view.context.close()
    await ended.context.close()
  })
})
