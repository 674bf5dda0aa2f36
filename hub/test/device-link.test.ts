// The page of a device link, as the person uses it who runs `muster login` on another machine.
import assert from 'node:assert/strict'
import test from 'node:test'
import { getDeviceLink, inspectAuth, prepareDeviceLink } from '@musterhost/contract'
import { createClient } from '@musterhost/contract/client'
import { violationsOf } from './axe.ts'
import { openHub, openView } from './steps.ts'

const NAME = '<b>ada-laptop'

test('a person lets a program in by its link, and refuses another one, by keyboard alone', async (t) => {
  const hub = await openHub(t)
  if (hub === null) return
  const { platform } = hub
  const game = await platform.game()
  const anyone = createClient({ url: platform.api_url })
  const prepare = () => anyone.call(prepareDeviceLink, { body: { name: NAME } })
  const view = await openView(hub, { bypassCSP: true, reducedMotion: 'reduce' })
  const { page } = view
  const confirm = page.getByRole('button', { name: 'Let it in' })

  await t.test('a person who is not signed in comes back to the link after the sign-in', async () => {
    const { device_link_url, device_link_id } = await prepare()
    await page.goto(device_link_url)
    await page.getByRole('button', { name: "Sign in with the operator's access token" }).click()
    await page.getByLabel('Access token').fill(platform.token)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Let a program in' }).waitFor()
    assert.equal(page.url(), device_link_url)
    await confirm.waitFor()
    const text = (await page.locator('main').textContent()) ?? ''
    assert.ok(text.includes(NAME), text)
    assert.ok(text.includes(`…${device_link_id.slice(-8)}`), text)
    assert.match(text, /127\.0\.0\.1|::1/)
    assert.match(text, /everything in the chosen game that a developer may do, for/)
    assert.equal(await page.locator('main b').count(), 0)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      assert.deepEqual(await violationsOf(page), [])
    }
  })

  await t.test('by keyboard: the number is confirmed first, and the program receives a token of the game', async () => {
    const { device_link_url, device_link_token } = await prepare()
    await page.goto(device_link_url)
    await confirm.waitFor()
    assert.ok(await confirm.isDisabled())
    await page.getByLabel('Game').focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Space')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByText('The program is let in.').waitFor()
    const { cloud_token } = await anyone.call(getDeviceLink, { query: { device_link_token } })
    const { agent } = await createClient({ url: platform.api_url, token: cloud_token! }).call(inspectAuth, {})
    assert.equal(agent.game_cloud?.game_id, game.game_id)
    await page.goto(device_link_url)
    await page.getByText('A person has completed this link already.').waitFor()
  })

  await t.test('a refused link is not valid afterwards', async () => {
    const { device_link_url, device_link_token } = await prepare()
    await page.goto(device_link_url)
    await page.getByRole('button', { name: 'Refuse' }).press('Enter')
    await page.getByText('The program is refused.').waitFor()
    await assert.rejects(anyone.call(getDeviceLink, { query: { device_link_token } }), {
      code: 'CLOUD_DEVICE_LINK_INVALID',
    })
    for (const url of [device_link_url, `${hub.url}/devices/link/nonsense`]) {
      await page.goto(url)
      await page.getByText('This link is not valid.').waitFor()
    }
  })

  assert.deepEqual(view.faults, [])
})
