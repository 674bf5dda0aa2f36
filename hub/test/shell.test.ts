import assert from 'node:assert/strict'
import test from 'node:test'
import { openHub, openView, signInAsAdmin } from './steps.ts'

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
