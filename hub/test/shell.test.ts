import assert from 'node:assert/strict'
import test from 'node:test'
import { getGameById } from '@musterhost/contract'
import { openHub, openView, PHONE, signInAsAdmin } from './steps.ts'

test('the frame of the hub', async (t) => {
  const hub = await openHub(t)
  if (hub === null) return
  const game = await hub.platform.game()

  await t.test('a stranger reaches nothing but the sign-in, and continues where the link led', async () => {
    const view = await openView(hub)
    const { page } = view
    await page.goto(`${hub.url}/games/${game.game_id}`)
    await page.waitForURL(/\/sign-in\?/)
    await page.getByRole('button', { name: "Sign in with the operator's access token" }).click()
    await page.getByLabel('Access token').fill('wrong')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Access token').fill(hub.platform.token)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.waitForURL(`${hub.url}/games/${game.game_id}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('an address of no page says so once, and a malformed id is something that is not there', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    const { game_id, namespace_id, group_id } = game
    for (const frame of [
      '',
      '/platform',
      `/games/${game_id}`,
      `/games/${game_id}/namespaces/${namespace_id}`,
      `/groups/${group_id}`,
    ]) {
      await page.goto(`${hub.url}${frame}/nope`)
      await page.getByRole('heading', { level: 1, name: 'There is no such page' }).waitFor()
      assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, frame)
    }
    for (const [path, what] of [
      ['/games/nope', 'game'],
      [`/games/${game_id}/versions/nope`, 'version'],
      [`/games/${game_id}/rays/nope`, 'request'],
      [`/games/${game_id}/namespaces/nope`, 'namespace'],
      [`/games/${game_id}/namespaces/${namespace_id}/lobbies/nope`, 'lobby'],
      ['/groups/nope', 'group'],
      ['/invites/nope', 'invite'],
    ] as const) {
      await page.goto(`${hub.url}${path}`)
      await page.getByText(`There is no such ${what}.`).first().waitFor()
      assert.equal(await page.getByRole('button', { name: 'Try again' }).count(), 0, path)
    }
    await view.context.close()
  })

  await t.test('the header leads to the guides of the platform', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Docs', exact: true }).click()
    await page.waitForURL(/\/docs\/?$/)
    await page.getByRole('link', { name: 'Your first game' }).first().waitFor()
    await view.context.close()
  })

  await t.test('a mistyped address is a page for a browser, and an error of the API for a program', async () => {
    const statusOf = async (path: string, accept: string) => {
      const response = await fetch(`${hub.url}${path}`, { headers: { accept } })
      await response.arrayBuffer()
      return [response.status, response.headers.get('content-type')?.split(';')[0]]
    }
    assert.deepEqual(await statusOf('/nope/x', 'text/html,*/*;q=0.8'), [404, 'text/html'])
    assert.deepEqual(await statusOf('/nope/x', '*/*'), [404, 'application/json'])
    assert.deepEqual(await statusOf('/cloud/nope', 'text/html'), [404, 'application/json'])
  })

  await t.test('the sign-in leads only to pages of the hub', async () => {
    const view = await openView(hub)
    const { page } = view
    await page.goto(`${hub.url}/sign-in?to=//example.com/`)
    await page.getByRole('button', { name: "Sign in with the operator's access token" }).click()
    await page.getByLabel('Access token').fill(hub.platform.token)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
    assert.equal(page.url(), `${hub.url}/`)
    await view.context.close()
  })

  await t.test('signing out ends the session for this browser', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL(/\/sign-in/)
    await page.goto(`${hub.url}/account`)
    await page.waitForURL(/\/sign-in\?/)
    await view.context.close()
  })

  await t.test('the palette goes to a game by keyboard alone', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.keyboard.press('Control+k')
    await page.getByRole('searchbox').waitFor()
    const option = page.getByRole('menuitem').filter({ has: page.getByText('game', { exact: true }) })
    await page.keyboard.type((await option.locator('span').first().textContent()) ?? '')
    await page.keyboard.press('Enter')
    await page.waitForURL(`${hub.url}/games/${game.game_id}`)
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a question mark lists the keys and the actions of the page, but is text in a field', async () => {
    const view = await openView(hub)
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}/games/${game.game_id}/namespaces/${game.namespace_id}/analytics`)
    await page.getByRole('heading', { level: 1, name: 'Analytics' }).waitFor()
    await page.keyboard.press('?')
    const dialog = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
    await dialog.getByText('Open the command palette').waitFor()
    await dialog.getByText('Compare with the previous period').waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await page.goto(`${hub.url}/games/${game.game_id}/search`)
    const field = page.getByLabel('Id or address')
    await field.focus()
    await page.keyboard.press('?')
    assert.equal(await field.inputValue(), '?')
    assert.equal(await dialog.count(), 0)
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog', { name: 'Command palette' }).waitFor()
    await page.keyboard.type('Keyboard shortcuts')
    await page.keyboard.press('Enter')
    await dialog.waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test(
    'one navigation has the pages of the game and of a namespace, and leads to the same page of another',
    async () => {
      const view = await openView(hub)
      const { page } = view
      await signInAsAdmin(hub, view)
      const of_game = `${hub.url}/games/${game.game_id}`
      await page.goto(`${of_game}/rays`)
      await page.getByRole('link', { name: 'Analytics', exact: true }).click()
      await page.waitForURL(`${of_game}/namespaces/${game.namespace_id}/analytics`)
      // The address changes before the page does, and the page before has a field of the same name.
      await page.getByRole('form', { name: 'Filter requests' }).waitFor({ state: 'detached' })
      const { namespaces } = (await hub.platform.client.call(getGameById, { params: game })).game
      const other = namespaces.find(({ namespace_id }) => namespace_id !== game.namespace_id)!
      await page.getByLabel('Namespace', { exact: true }).selectOption({ label: other.display_name })
      await page.waitForURL(`${of_game}/namespaces/${other.namespace_id}/analytics`)
      await page.getByRole('link', { name: 'Versions', exact: true }).click()
      await page.waitForURL(`${of_game}/versions`)
      const lobbies = page.getByRole('link', { name: 'Lobbies', exact: true })
      assert.match((await lobbies.getAttribute('href')) ?? '', new RegExp(`/${other.namespace_id}/lobbies$`))
      assert.deepEqual(view.faults, [])
      await view.context.close()
    },
  )

  await t.test('the tab of the open page is in view on a phone', async () => {
    const view = await openView(hub, { viewport: PHONE })
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}/games/${game.game_id}/namespaces/${game.namespace_id}/settings`)
    const tab = page.getByRole('link', { name: 'Settings', exact: true })
    await tab.and(page.locator('[aria-current=page]')).waitFor()
    const box = await tab.boundingBox()
    assert.ok(box !== null && box.x >= 0 && Math.floor(box.x + box.width) <= PHONE.width, JSON.stringify(box))
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('a phone shows the columns that matter, and all of them after a press', async () => {
    const view = await openView(hub, { viewport: PHONE })
    const { page } = view
    await signInAsAdmin(hub, view)
    await page.goto(`${hub.url}/games/${game.game_id}/namespaces/${game.namespace_id}`)
    const table = page.getByRole('table', { name: 'Deploys' })
    await table.getByRole('columnheader', { name: 'Version' }).waitFor()
    assert.equal(await table.getByRole('columnheader', { name: 'Message' }).count(), 0)
    await page.getByRole('button', { name: 'Show 3 more columns' }).click()
    await table.getByRole('columnheader', { name: 'Message' }).waitFor()
    await page.goto(`${hub.url}/groups/${game.group_id}/audit`)
    const filter = page.getByRole('button', { name: 'Filter …' })
    await filter.waitFor()
    assert.equal(await page.getByLabel('Operation', { exact: true }).isVisible(), false)
    await filter.click()
    await page.getByLabel('Operation', { exact: true }).waitFor()
    assert.deepEqual(view.faults, [])
    await view.context.close()
  })

  await t.test('no script, style or frame of a stranger runs in a page', async () => {
    const response = await fetch(`${hub.url}/`, { headers: { host: new URL(hub.url).host } })
    const policy = response.headers.get('content-security-policy') ?? ''
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self' 'nonce-[^']+'; /)
    assert.doesNotMatch(policy, /unsafe|https?:|\*/)
    const again = await fetch(`${hub.url}/`)
    assert.notEqual(again.headers.get('content-security-policy'), policy, 'each response has a nonce of its own')
    await response.body?.cancel()
    await again.body?.cancel()
  })
})
