import assert from 'node:assert/strict'
import test from 'node:test'
import { createSignInLink, endOtherSessions } from '@muster/contract'
import { startMailServer } from '../../server/test/identity/mail-server.ts'
import { logIn } from '../../server/test/identity/people.ts'
import { openHub, openView, signInAsAdmin, useSession } from './steps.ts'

test('the pages of the operator', async (t) => {
  const mail = await startMailServer(t)
  const hub = await openHub(t, { env: { MUSTER_SMTP_URL: mail.url, MUSTER_RATE_LIMIT_CLOUD: '0' } })
  if (hub === null) return
  const { platform } = hub
  await platform.game()
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
    for (const tab of ['regions', 'backups', 'jobs']) {
      await page.goto(`${hub.url}/platform/${tab}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
    }
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
